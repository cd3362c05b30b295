/* SPDX-License-Identifier: Apache-2.0 */
/* Page tables travel as one list and are spread out here. */
#include "llm/kernel/cuda/rows/rows.h"
#include "llm/kernel/cuda/rows/block.cuh"

FM_KERNEL(FM__ROW_THREADS) spread_pages(const fm_cuda_pages_args a)
{
    fm__row_begin();
    const int t = (int)blockIdx.x, first = a.begin[t], n = a.begin[t + 1] - first;
    for (int i = (int)threadIdx.x; i < n; i += FM__ROW_THREADS)
        a.page[(size_t)t * (size_t)a.max_page + (size_t)i] = a.list[first + i];
    if (n == 0 && threadIdx.x == 0) a.page[(size_t)t * (size_t)a.max_page] = -1;
}

fm_status fm_cuda_pages(const fm_cuda_pages_args *a, fm_stream stream)
{
    if (a->n_table == 0) return FM_OK;
    FM_LAUNCH_EARLY(spread_pages, (unsigned)a->n_table, FM__ROW_THREADS, 0, stream, *a);
    return fm_cuda_launched("spread_pages");
}
