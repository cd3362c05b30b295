/* SPDX-License-Identifier: Apache-2.0 */
/* Two kernels for each shape, by the number of parts:
 *
 *     few       scores of all keys         ->  values, and the merge
 *     many      parts through the ring     ->  the merge of rows with several
 *               (or 64 heads at a time) */
#include "llm/kernel/cuda/attention/absorbed_few.cuh"
#include "llm/kernel/cuda/attention/absorbed_ring.cuh"
#include "llm/kernel/cuda/attention/mla_internal.h"

enum {
    MERGE_COLUMNS = 8,  /* of a thread */
    MERGE_HEAD    = FM_MLA_LATENT_MAX / MERGE_COLUMNS, /* threads of a head */
    MERGE_THREADS = 256,
    MERGE_BLOCKS  = 2,  /* of a multiprocessor: more have too few registers */
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

template <bool FIXED, bool E4M3>
FM_KERNEL(THREADS, 1) score_few(const fm_mla_absorbed_args a)
{
    FM_SHARED_BYTES(memory);
    fm_grid_wait();
    fm_grid_release(); /* PDL: the kernel of the values may be scheduled */
    const place u = place_of<FIXED>(a, TILE_HEADS);
    run_scores(a, layout<shape<FIXED, E4M3>>(memory, u.width), u);
}

template <bool E4M3> FM_KERNEL(THREADS, 1) sum_few(const fm_mla_absorbed_args a)
{
    FM_SHARED_BYTES(memory);
    run_values(a, slice_layout<E4M3>(memory, fm_mla_last_max(a.rows.part)),
               place_of<false>(a, TILE_HEADS));
}

template <bool FIXED, bool E4M3>
FM_KERNEL(THREADS, 1) attend_ring(const fm_mla_absorbed_args a)
{
    FM_SHARED_BYTES(memory);
    fm_grid_wait();
    fm_grid_release(); /* PDL: the merge may be scheduled */
    const place u = place_of<FIXED>(a, TILE_HEADS);
    run_ring(a, layout<shape<FIXED, E4M3>>(memory, u.width), u);
}

/* The row of a head that a warp's threads merge: they look for the largest maximum together, and
 * the first parts come meanwhile. */
FM_DEVICE void merge_head(const fm_mla_absorbed_args &a, int row, int first, int end, int head,
                          int col)
{
    const int at = min(col, a.kv_lora - MERGE_COLUMNS); /* some threads have no columns */
    const some_parts<MERGE_COLUMNS> now = load_parts<MERGE_COLUMNS>(a, first, end, head, at);
    float                           max = -INFINITY;
    for (int i = first + threadIdx.x % 32; i < end; i += 32)
        max = fmaxf(max, max_of_part(a, i, head));
    max = fm_warp_max(max);
    if (col < a.kv_lora) merge_columns(a, row, first, end, head, col, now, max);
}

/* Rows of several parts, a few heads at a time. */
FM_KERNEL(MERGE_THREADS, MERGE_BLOCKS) merge_parts(const fm_mla_absorbed_args a)
{
    fm_grid_wait();
    fm_grid_release();
    const int n_row = min(*a.rows.n_row, a.rows.max_row), heads = MERGE_THREADS / MERGE_HEAD;
    const int mine = threadIdx.x / MERGE_HEAD, col = threadIdx.x % MERGE_HEAD * MERGE_COLUMNS;
    if (a.rows.unit0[n_row + 1] == 0) return;
    for (int i = heads * blockIdx.x + mine; i < n_row * a.n_head; i += heads * gridDim.x) {
        const int row = i / a.n_head, first = a.rows.unit0[row], end = a.rows.unit0[row + 1];
        if (end - first > 1 && end <= a.rows.max_unit)
            merge_head(a, row, first, end, i % a.n_head, col);
    }
}

/* --- launches ------------------------------------------------------------------------ */

template <class M, class... A> static int bytes_of(A... arg)
{
    unsigned char *const base = (unsigned char *)1024; /* any address: only the end counts */
    return (int)(M(base, arg...).end() - base);
}

template <bool FIXED, bool E4M3> static fm_status allow(void)
{
    const int width = FM_MLA_WIDTH_MAX;
    FM_CUDA(fm_allow_shared(attend_ring<FIXED, E4M3>,
                            (bytes_of<layout<shape<FIXED, E4M3>>>(width))));
    FM_CUDA(fm_allow_shared(score_few<FIXED, E4M3>,
                            (bytes_of<layout<shape<FIXED, E4M3>>>(width))));
    return FM_OK;
}

fm_status fm__mla_absorbed_init(void)
{
    FM_TRY((allow<true, false>()));
    FM_TRY((allow<true, true>()));
    FM_TRY((allow<false, false>()));
    FM_TRY((allow<false, true>()));
    FM_TRY(fm__mla_absorbed_wide_init());
    FM_CUDA(fm_allow_shared(sum_few<false>, bytes_of<slice_layout<false>>(FM_MLA_LAST_MAX)));
    FM_CUDA(fm_allow_shared(sum_few<true>, bytes_of<slice_layout<true>>(FM_MLA_LAST_MAX)));
    return FM_OK;
}

template <bool FIXED, bool E4M3>
static fm_status launch_few(const fm_mla_absorbed_args *a, fm_stream stream)
{
    typedef layout<shape<FIXED, E4M3>> L;
    FM_LAUNCH_EARLY((score_few<FIXED, E4M3>), (unsigned)a->n_sm, THREADS,
                    bytes_of<L>(a->cache.width), stream, *a);
    FM_TRY(fm_cuda_launched("mla scores"));
    FM_LAUNCH_EARLY(sum_few<E4M3>, (unsigned)a->n_sm, THREADS,
                    bytes_of<slice_layout<E4M3>>(fm_mla_last_max(a->rows.part)), stream, *a);
    return fm_cuda_launched("mla values");
}

template <bool FIXED, bool E4M3>
static fm_status launch(const fm_mla_absorbed_args *a, fm_stream stream)
{
    if (a->few) return launch_few<FIXED, E4M3>(a, stream);
    if (FIXED && a->n_head > RING_HEADS) {
        FM_TRY(fm__mla_absorbed_wide(a, stream));
    } else {
        FM_LAUNCH_EARLY((attend_ring<FIXED, E4M3>), (unsigned)a->n_sm, THREADS,
                        (bytes_of<layout<shape<FIXED, E4M3>>>(a->cache.width)), stream, *a);
        FM_TRY(fm_cuda_launched("mla absorbed"));
    }
    FM_LAUNCH_EARLY(merge_parts, (unsigned)(MERGE_BLOCKS * a->n_sm), MERGE_THREADS, 0, stream,
                    *a);
    return fm_cuda_launched("mla merge");
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
    if (a->few && a->rows.part > FM_MLA_FEW_PART)
        return fm_fail(FM_E_NOSUP, "attention: parts of %d keys are not divided; want at most %d",
                       a->rows.part, FM_MLA_FEW_PART);
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
    if (a->cache.width == FM_MLA_WIDTH_MAX && a->kv_lora == FM_MLA_LATENT_MAX)
        return a->cache.e4m3 ? launch<true, true>(a, stream) : launch<true, false>(a, stream);
    return a->cache.e4m3 ? launch<false, true>(a, stream) : launch<false, false>(a, stream);
}
