/* SPDX-License-Identifier: Apache-2.0 */
/* Rotation of queries alone, and where a step's tokens go in the cache. */
#include "llm/kernel/cuda/rows/rope.cuh"

template <int PAIRS> FM_KERNEL(FM__ROW_THREADS) rotate_queries(const fm_cuda_rope_args a)
{
    fm_grid_release();
    fm__rotate_query<PAIRS>(a, (int)(blockIdx.x * FM__ROW_THREADS + threadIdx.x));
}

FM_KERNEL(FM__ROW_THREADS) find_slots(const fm_cuda_slots_args a)
{
    fm__row_begin();
    const int i = (int)blockIdx.x * FM__ROW_THREADS + (int)threadIdx.x;
    if (i >= a.n_row) return;
    const int pos = a.pos[i], at = pos < 0 ? -1 : pos / a.page_size;
    const int page = at >= 0 && at < a.max_page
                         ? a.page[(size_t)a.table[i] * (size_t)a.max_page + (size_t)at]
                         : -1;
    a.slot[i]      = page < 0 ? -1 : page * a.page_size + pos % a.page_size;
}

fm_status fm_cuda_rope(const fm_cuda_rope_args *a, fm_stream stream)
{
    fm__rope_check(a);
    if (a->n_row == 0) return FM_OK;
    if (fm__rope_pairs(a) == 4)
        FM_LAUNCH_EARLY(rotate_queries<4>, fm__rope_blocks(a), FM__ROW_THREADS, 0, stream, *a);
    else
        FM_LAUNCH_EARLY(rotate_queries<1>, fm__rope_blocks(a), FM__ROW_THREADS, 0, stream, *a);
    return fm_cuda_launched("rotate_queries");
}

fm_status fm_cuda_slots(const fm_cuda_slots_args *a, fm_stream stream)
{
    FM_BUG_UNLESS(a->page_size > 0);
    if (a->n_row == 0) return FM_OK;
    FM_LAUNCH_EARLY(find_slots, fm__row_blocks(a->n_row), FM__ROW_THREADS, 0, stream, *a);
    return fm_cuda_launched("find_slots");
}
