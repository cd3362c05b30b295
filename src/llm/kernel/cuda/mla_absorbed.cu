/* SPDX-License-Identifier: Apache-2.0 */
/* Two kernels for each shape: the parts, then their end.  Which way they take is
 * decided on the device by the number of parts, since a recorded step serves
 * texts of all lengths:
 *
 *     few       scores of all keys        ->  values, and the merge
 *     many      parts through the ring    ->  the merge of rows with several */
#include "llm/kernel/cuda/mla_absorbed_few.cuh"
#include "llm/kernel/cuda/mla_absorbed_ring.cuh"
#include "llm/kernel/cuda/mla_absorbed_wide.cuh"
#include "llm/kernel/cuda/mla_internal.h"

enum {
    MERGE_THREADS = FM_MLA_LATENT_MAX / 4,
    RING_HEADS    = 32, /* up to these, reading the keys once for each 16 is no loss */
};

template <bool FIXED> FM_DEVICE place place_of(const fm_mla_absorbed_args &a, int heads)
{
    place u;
    u.lane    = threadIdx.x & 31;
    u.warp    = threadIdx.x >> 5;
    u.width   = FIXED ? FM_MLA_WIDTH_MAX : a.cache.width;
    u.kv_lora = FIXED ? FM_MLA_LATENT_MAX : a.kv_lora;
    u.n_group = (a.n_head + heads - 1) / heads;
    u.n_work  = min(a.rows.unit0[min(*a.rows.n_row, a.rows.max_row)], a.rows.max_unit) * u.n_group;
    return u;
}

FM_DEVICE bool is_few(const fm_mla_absorbed_args &a, const place &u)
{
    return u.n_work <= a.few_unit * u.n_group;
}

template <bool FIXED, bool E4M3>
FM_KERNEL(THREADS, 1) attend_absorbed(const fm_mla_absorbed_args a)
{
    typedef shape<FIXED, E4M3> S;
    FM_SHARED_BYTES(memory);
    fm_grid_wait();
    fm_grid_release(); /* the end may line up */
    const place     u = place_of<FIXED>(a, TILE_HEADS);
    const layout<S> m(memory, u.width);
    if (is_few(a, u)) run_scores(a, m, u);
    else              run_ring(a, m, u);
}

/* The same of many heads. */
template <bool E4M3> FM_KERNEL(THREADS, 1) attend_wide(const fm_mla_absorbed_args a)
{
    FM_SHARED_BYTES(memory);
    fm_grid_wait();
    fm_grid_release();
    const place u = place_of<true>(a, TILE_HEADS);
    if (is_few(a, u)) run_scores(a, layout<shape<true, E4M3>>(memory, u.width), u);
    else run_wide(a, wide_layout<wide_shape<E4M3>>(memory), place_of<true>(a, WIDE_HEADS));
}

/* Rows of several parts; half a block takes one head. */
FM_DEVICE void merge_rows(const fm_mla_absorbed_args &a)
{
    const int n_row = min(*a.rows.n_row, a.rows.max_row);
    const int half = threadIdx.x / MERGE_THREADS, col = threadIdx.x % MERGE_THREADS * 4;
    if (a.rows.unit0[n_row + 1] == 0 || col >= a.kv_lora) return;
    for (int i = 2 * blockIdx.x + half; i < n_row * a.n_head; i += 2 * gridDim.x) {
        const int row = i / a.n_head, first = a.rows.unit0[row], end = a.rows.unit0[row + 1];
        if (end - first > 1 && end <= a.rows.max_unit)
            merge_columns(a, row, first, end, i % a.n_head, col);
    }
}

template <bool E4M3> FM_KERNEL(THREADS, 2) end_absorbed(const fm_mla_absorbed_args a)
{
    FM_SHARED_BYTES(memory);
    const place              u = place_of<false>(a, TILE_HEADS);
    const slice_layout<E4M3> m(memory, a.rows.part);
    if (is_few(a, u)) {
        run_values(a, m, u);
    } else {
        fm_grid_wait();
        fm_grid_release();
        merge_rows(a);
    }
}

template <class M, class... A> static int bytes_of(A... arg)
{
    unsigned char *const base = (unsigned char *)1024; /* any address: only the end counts */
    return (int)(M(base, arg...).end() - base);
}

template <bool E4M3> static int wide_bytes(void)
{
    const int few = bytes_of<layout<shape<true, E4M3>>>(FM_MLA_WIDTH_MAX);
    const int all = bytes_of<wide_layout<wide_shape<E4M3>>>();
    return few < all ? all : few;
}

template <bool FIXED, bool E4M3> static fm_status allow(void)
{
    FM_CUDA(fm_allow_shared(attend_absorbed<FIXED, E4M3>,
                            (bytes_of<layout<shape<FIXED, E4M3>>>(FM_MLA_WIDTH_MAX))));
    return FM_OK;
}

fm_status fm__mla_absorbed_init(void)
{
    FM_TRY((allow<true, false>()));
    FM_TRY((allow<true, true>()));
    FM_TRY((allow<false, false>()));
    FM_TRY((allow<false, true>()));
    FM_CUDA(fm_allow_shared(attend_wide<false>, wide_bytes<false>()));
    FM_CUDA(fm_allow_shared(attend_wide<true>, wide_bytes<true>()));
    FM_CUDA(fm_allow_shared(end_absorbed<false>, bytes_of<slice_layout<false>>(FM_MLA_PART_MAX)));
    FM_CUDA(fm_allow_shared(end_absorbed<true>, bytes_of<slice_layout<true>>(FM_MLA_PART_MAX)));
    return FM_OK;
}

template <bool FIXED, bool E4M3>
static void launch(const fm_mla_absorbed_args *a, fm_stream stream)
{
    typedef layout<shape<FIXED, E4M3>> L;
    FM_LAUNCH_EARLY((attend_absorbed<FIXED, E4M3>), (unsigned)a->n_sm, THREADS,
                    bytes_of<L>(a->cache.width), stream, *a);
}

template <bool E4M3> static void launch_wide(const fm_mla_absorbed_args *a, fm_stream stream)
{
    FM_LAUNCH_EARLY(attend_wide<E4M3>, (unsigned)a->n_sm, THREADS, wide_bytes<E4M3>(), stream, *a);
}

static void launch_shape(const fm_mla_absorbed_args *a, fm_stream stream)
{
    const bool fixed = a->cache.width == FM_MLA_WIDTH_MAX && a->kv_lora == FM_MLA_LATENT_MAX;
    if (fixed && a->n_head > RING_HEADS)
        return a->cache.e4m3 ? launch_wide<true>(a, stream) : launch_wide<false>(a, stream);
    if (fixed && a->cache.e4m3) launch<true, true>(a, stream);
    else if (fixed)             launch<true, false>(a, stream);
    else if (a->cache.e4m3)     launch<false, true>(a, stream);
    else                        launch<false, false>(a, stream);
}

template <bool E4M3> static void launch_end(const fm_mla_absorbed_args *a, fm_stream stream)
{
    FM_LAUNCH_EARLY(end_absorbed<E4M3>, (unsigned)(2 * a->n_sm), THREADS,
                    bytes_of<slice_layout<E4M3>>(a->rows.part), stream, *a);
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
    launch_shape(a, stream);
    FM_TRY(fm_cuda_launched("mla absorbed"));
    if (a->cache.e4m3) launch_end<true>(a, stream);
    else               launch_end<false>(a, stream);
    return fm_cuda_launched("mla end");
}
