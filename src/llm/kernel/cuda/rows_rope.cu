/* SPDX-License-Identifier: Apache-2.0 */
/* Rotation of queries, and where a step's tokens go in the cache. */
#include "base/number.h"
#include "llm/kernel/cuda/rows.h"
#include "llm/kernel/cuda/rows_block.cuh"

FM_DEVICE void rotate(float *x, float *y, float c, float s)
{
    const float a = *x, b = *y;
    *x = a * c - b * s;
    *y = a * s + b * c;
}

/* One thread per pair; blocks along y share a row. */
FM_KERNEL(FM__ROW_THREADS) rope_rows(const fm_cuda_rope_args a)
{
    fm__row_begin();
    const int half = a.rope / 2, n = (int)blockIdx.y * FM__ROW_THREADS + (int)threadIdx.x;
    if (n >= a.n_head * half) return;
    const int head = n / half, i = n % half, width = a.nope + a.rope;
    uint16_t *part =
        a.q + ((size_t)blockIdx.x * (size_t)a.n_head + (size_t)head) * (size_t)width + a.nope;
    const size_t at    = (size_t)a.pos[blockIdx.x] * (size_t)half + (size_t)i;
    uint16_t    *first = part + (a.interleaved ? 2 * i : i),
             *second   = first + (a.interleaved ? 1 : half);
    float x = fm_f32_of_bf16(*first), y = fm_f32_of_bf16(*second);
    rotate(&x, &y, a.cos[at], a.sin[at]);
    const uint32_t both = fm_bf16x2_of_f32(x, y);
    *first              = (uint16_t)both;
    *second             = (uint16_t)(both >> 16);
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
    FM_BUG_UNLESS(a->rope > 0 && a->rope % 2 == 0 && a->n_head > 0);
    if (a->n_row == 0) return FM_OK;
    const dim3 grid((unsigned)a->n_row, fm__row_blocks(a->n_head * (a->rope / 2)));
    FM_LAUNCH_EARLY(rope_rows, grid, FM__ROW_THREADS, 0, stream, *a);
    return fm_cuda_launched("rope_rows");
}

fm_status fm_cuda_slots(const fm_cuda_slots_args *a, fm_stream stream)
{
    FM_BUG_UNLESS(a->page_size > 0);
    if (a->n_row == 0) return FM_OK;
    FM_LAUNCH_EARLY(find_slots, fm__row_blocks(a->n_row), FM__ROW_THREADS, 0, stream, *a);
    return fm_cuda_launched("find_slots");
}
