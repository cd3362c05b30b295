/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernel takes which shape, and the merge of the parts. */
#include "llm/kernel/cuda/mla_absorbed.cuh"

#include "llm/kernel/cuda/mla_internal.h"

enum { MERGE_THREADS = 128 };

/* z[row, head] from its parts, ascending; a row of one part is there already. */
FM_KERNEL(MERGE_THREADS) merge_parts(const fm_mla_absorbed_args a)
{
    fm_grid_wait();
    const int row = blockIdx.x, head = blockIdx.y;
    if (row >= min(*a.rows.n_row, a.rows.max_row)) return;
    const int first = a.rows.unit0[row], end = a.rows.unit0[row + 1];
    if (end - first < 2 || end > a.rows.max_unit) return;

    float max = -INFINITY;
    for (int i = first; i < end; i++)
        max = fmaxf(max, a.part_sum[((int64_t)i * a.n_head + head) * 2]);
    for (int col = threadIdx.x * 4; col < a.kv_lora; col += MERGE_THREADS * 4) {
        float4 z   = make_float4(0, 0, 0, 0);
        float  sum = 0;
        for (int i = first; i < end; i++) {
            const int64_t at   = (int64_t)i * a.n_head + head;
            const float4  part = *(const float4 *)(a.part_z + at * a.kv_lora + col);
            const float   w    = fm_exp2_fast(a.part_sum[at * 2] - max);
            sum                = fmaf(a.part_sum[at * 2 + 1], w, sum);
            z.x = fmaf(part.x, w, z.x), z.y = fmaf(part.y, w, z.y);
            z.z = fmaf(part.z, w, z.z), z.w = fmaf(part.w, w, z.w);
        }
        const float f = 1.0f / sum;
        *(uint2 *)(a.z + ((int64_t)row * a.n_head + head) * a.kv_lora + col) =
            make_uint2(fm_bf16x2_of_f32(z.x * f, z.y * f), fm_bf16x2_of_f32(z.z * f, z.w * f));
    }
}

template <class S> static int shared_bytes(int width, int part)
{
    unsigned char *const base = (unsigned char *)1024; /* any address: only the end counts */
    const layout<S>      m(base, width, part);
    return (int)(m.end(part) - base);
}

template <int TILES, bool FIXED, bool E4M3> static fm_status allow(void)
{
    typedef shape<TILES, FIXED, E4M3> S;
    FM_CUDA(fm_allow_shared(attend_absorbed<TILES, FIXED, E4M3>,
                            shared_bytes<S>(FM_MLA_WIDTH_MAX, FM_MLA_PART_MAX)));
    return FM_OK;
}

fm_status fm__mla_absorbed_init(void)
{
    FM_TRY((allow<1, true, false>()));
    FM_TRY((allow<1, true, true>()));
    FM_TRY((allow<1, false, false>()));
    FM_TRY((allow<1, false, true>()));
    FM_TRY((allow<4, true, false>()));
    FM_TRY((allow<4, true, true>()));
    FM_TRY((allow<4, false, false>()));
    return allow<4, false, true>();
}

template <int TILES, bool FIXED, bool E4M3>
static void launch(const fm_mla_absorbed_args *a, fm_stream stream)
{
    typedef shape<TILES, FIXED, E4M3> S;
    const int groups = (a->n_head + S::heads - 1) / S::heads;
    const int places = (a->n_sm * S::per_sm + groups - 1) / groups;
    const int deep   = a->rows.max_unit < places ? a->rows.max_unit : places;
    FM_LAUNCH((attend_absorbed<TILES, FIXED, E4M3>), dim3((unsigned)groups, (unsigned)deep),
              S::threads, shared_bytes<S>(a->cache.width, a->rows.part), stream, *a);
}

template <int TILES> static void launch_shape(const fm_mla_absorbed_args *a, fm_stream stream)
{
    const bool fixed = a->cache.width == FM_MLA_WIDTH_MAX && a->kv_lora == FM_MLA_LATENT_MAX;
    if (fixed && a->cache.e4m3) launch<TILES, true, true>(a, stream);
    else if (fixed)             launch<TILES, true, false>(a, stream);
    else if (a->cache.e4m3)     launch<TILES, false, true>(a, stream);
    else                        launch<TILES, false, false>(a, stream);
}

static fm_status check(const fm_mla_absorbed_args *a)
{
    const int width = a->cache.width;
    if (a->kv_lora < 16 || a->kv_lora > FM_MLA_LATENT_MAX || a->kv_lora % 16)
        return fm_fail(FM_E_NOSUP, "attention: kv_lora %d; want a multiple of 16 up to %d",
                       a->kv_lora, FM_MLA_LATENT_MAX);
    if (width < a->kv_lora || width > FM_MLA_WIDTH_MAX || width % 32)
        return fm_fail(FM_E_NOSUP, "attention: cached width %d; want a multiple of 32 up to %d",
                       width, FM_MLA_WIDTH_MAX);
    if (a->rows.part < 1 || a->rows.part > FM_MLA_PART_MAX || a->rows.part % FM_MLA_LATENT_KEYS)
        return fm_fail(FM_E_NOSUP, "attention: parts of %d keys", a->rows.part);
    if (a->cache.page_size < 1 || a->n_head < 1 || a->n_sm < 1 || !(a->scale > 0))
        return fm_fail(FM_E_NOSUP,
                       "attention: page size %d, %d heads, %d multiprocessors, scale %g",
                       a->cache.page_size, a->n_head, a->n_sm, (double)a->scale);
    return FM_OK;
}

extern "C" fm_status fm_cuda_mla_absorbed(const fm_mla_absorbed_args *a, fm_stream stream)
{
    FM_TRY(check(a));
    if (a->rows.max_row < 1 || a->rows.max_unit < 1) return FM_OK;
    if (a->n_head > 32) launch_shape<4>(a, stream);
    else                launch_shape<1>(a, stream);
    FM_TRY(fm_cuda_launched("mla absorbed"));
    FM_LAUNCH_EARLY(merge_parts, dim3((unsigned)a->rows.max_row, (unsigned)a->n_head),
                    MERGE_THREADS, 0, stream, *a);
    return fm_cuda_launched("mla merge");
}
