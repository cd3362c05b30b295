/* SPDX-License-Identifier: Apache-2.0 */
/* The gate of an MLP, and the sum of a row's experts. */
#include "llm/kernel/cuda/rows.h"
#include "llm/kernel/cuda/rows_block.cuh"
#include "llm/kernel/rows/exp.h"

FM_DEVICE float gate(float x, float up)
{
    return x / (1.0f + fm_exp(-x)) * up;
}

template <bool BF16> FM_DEVICE float4 middle4(const void *c, size_t at)
{
    return BF16 ? fm__load4_bf16((const uint16_t *)c + at) : fm__load4((const float *)c + at);
}

template <bool BF16> FM_KERNEL(FM__ROW_THREADS) gate_rows(const fm_cuda_swiglu_args a)
{
    fm__row_begin();
    const int col = fm__column4();
    if (col >= a.inter) return;
    const size_t row  = blockIdx.x,
                 from = row * 2 * (size_t)a.inter + (size_t)(col / 16 * 32 + col % 16);
    const float4 x = middle4<BF16>(a.c, from), up = middle4<BF16>(a.c, from + 16);
    fm__store4_bf16(
        a.y + row * (size_t)a.inter + col,
        make_float4(gate(x.x, up.x), gate(x.y, up.y), gate(x.z, up.z), gate(x.w, up.w)));
}

FM_KERNEL(FM__ROW_THREADS) combine_rows(const fm_cuda_combine_args a)
{
    fm__row_begin();
    const int col = fm__column4();
    if (col >= a.width) return;
    const size_t row = blockIdx.x;
    float       *y   = a.y + row * (size_t)a.width + col;
    float4       sum = make_float4(0, 0, 0, 0);
    for (int slot = 0; slot < a.top_k; slot++) {
        const int pair = a.pair_of[row * (size_t)a.top_k + (size_t)slot];
        if (pair < 0) continue;
        const float  w = a.weight[row * (size_t)a.top_k + (size_t)slot];
        const float4 v = fm__load4(a.pair_out + (size_t)pair * (size_t)a.width + col);
        sum = make_float4(sum.x + w * v.x, sum.y + w * v.y, sum.z + w * v.z, sum.w + w * v.w);
    }
    if (a.accumulate) {
        const float4 had = fm__load4(y);
        sum = make_float4(had.x + sum.x, had.y + sum.y, had.z + sum.z, had.w + sum.w);
    }
    fm__store4(y, sum);
}

fm_status fm_cuda_swiglu(const fm_cuda_swiglu_args *a, fm_stream stream)
{
    FM_BUG_UNLESS(a->inter > 0 && a->inter % 16 == 0);
    if (a->n_row == 0) return FM_OK;
    const dim3 grid((unsigned)a->n_row, fm__row_blocks(a->inter / 4));
    if (a->c_is_bf16)
        FM_LAUNCH_EARLY(gate_rows<true>, grid, FM__ROW_THREADS, 0, stream, *a);
    else
        FM_LAUNCH_EARLY(gate_rows<false>, grid, FM__ROW_THREADS, 0, stream, *a);
    return fm_cuda_launched("gate_rows");
}

fm_status fm_cuda_combine(const fm_cuda_combine_args *a, fm_stream stream)
{
    FM_BUG_UNLESS(a->width > 0 && a->width % 4 == 0);
    if (a->n_row == 0) return FM_OK;
    const dim3 grid((unsigned)a->n_row, fm__row_blocks(a->width / 4));
    FM_LAUNCH_EARLY(combine_rows, grid, FM__ROW_THREADS, 0, stream, *a);
    return fm_cuda_launched("combine_rows");
}
