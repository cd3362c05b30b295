/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that are copied or added: embedding and residual sums. */
#include "llm/kernel/cuda/rows/rows.h"
#include "llm/kernel/cuda/rows/block.cuh"

FM_KERNEL(FM__ROW_THREADS) embed_rows(const fm_cuda_embed_args a)
{
    fm__row_begin();
    const int col = fm__column4();
    int       token = a.token[blockIdx.x];
    if (col >= a.width) return;
    if (token < 0 && a.chosen) token = a.chosen[-1 - token];
    float *x = a.x + (size_t)blockIdx.x * (size_t)a.width + col;
    if (token < 0 || token >= a.vocab)
        fm__store4(x, make_float4(0, 0, 0, 0));
    else
        fm__store4(x, fm__load4_bf16(a.table + (size_t)token * (size_t)a.width + col));
}

FM_KERNEL(FM__ROW_THREADS) add_rows(const fm_cuda_add_args a)
{
    fm__row_begin();
    const int    col = fm__column4();
    const size_t at  = (size_t)blockIdx.x * (size_t)a.width + (size_t)col;
    if (col >= a.width) return;
    const float4 x = fm__load4(a.x + at), y = fm__load4(a.y + at);
    fm__store4(a.x + at, make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w));
}

fm_status fm_cuda_embed(const fm_cuda_embed_args *a, fm_stream stream)
{
    FM_BUG_UNLESS(a->width > 0 && a->width % 4 == 0);
    if (a->n_row == 0) return FM_OK;
    const dim3 grid((unsigned)a->n_row, fm__row_blocks(a->width / 4));
    FM_LAUNCH_EARLY(embed_rows, grid, FM__ROW_THREADS, 0, stream, *a);
    return fm_cuda_launched("embed_rows");
}

fm_status fm_cuda_add(const fm_cuda_add_args *a, fm_stream stream)
{
    FM_BUG_UNLESS(a->width > 0 && a->width % 4 == 0);
    if (a->n_row == 0) return FM_OK;
    const dim3 grid((unsigned)a->n_row, fm__row_blocks(a->width / 4));
    FM_LAUNCH_EARLY(add_rows, grid, FM__ROW_THREADS, 0, stream, *a);
    return fm_cuda_launched("add_rows");
}
