/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a query in the latent space: its rotated part, then zeros. */
#include "llm/kernel/cuda/rows.h"
#include "llm/kernel/cuda/rows_block.cuh"

FM_KERNEL(FM__ROW_THREADS) end_queries(const fm_cuda_query_end_args a)
{
    fm__row_begin();
    const int tail = a.width - a.kv_lora, n = (int)blockIdx.y * FM__ROW_THREADS + (int)threadIdx.x;
    if (n >= a.n_head * tail) return;
    const int    head = n / tail, i = n % tail;
    const size_t at   = (size_t)blockIdx.x * (size_t)a.n_head + (size_t)head;
    a.latent[at * (size_t)a.width + (size_t)(a.kv_lora + i)] =
        i < a.rope ? a.q[at * (size_t)(a.nope + a.rope) + (size_t)(a.nope + i)] : (uint16_t)0;
}

fm_status fm_cuda_query_end(const fm_cuda_query_end_args *a, fm_stream stream)
{
    FM_BUG_UNLESS(a->width >= a->kv_lora + a->rope);
    if (a->n_row == 0 || a->width == a->kv_lora) return FM_OK;
    const dim3 grid((unsigned)a->n_row, fm__row_blocks(a->n_head * (a->width - a->kv_lora)));
    FM_LAUNCH_EARLY(end_queries, grid, FM__ROW_THREADS, 0, stream, *a);
    return fm_cuda_launched("end_queries");
}
