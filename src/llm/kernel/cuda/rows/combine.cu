/* SPDX-License-Identifier: Apache-2.0 */
/* The sum of a row's experts, alone. */
#include "llm/kernel/cuda/rows/combine.cuh"

FM_KERNEL(FM__ROW_THREADS) combine_rows(const fm_cuda_combine_args a)
{
    __shared__ fm__slots slots;
    fm__row_begin();
    fm__slots_begin(slots, a, blockIdx.x);
    const int col = fm__column4();
    if (col >= a.width) return;
    float4 sum[1];
    fm__combined<1>(sum, slots, a, blockIdx.x, col, 0);
    fm__store4(a.y + (size_t)blockIdx.x * (size_t)a.width + col, sum[0]);
}

fm_status fm_cuda_combine(const fm_cuda_combine_args *a, fm_stream stream)
{
    FM_BUG_UNLESS(a->width > 0 && a->width % 4 == 0);
    if (a->n_row == 0) return FM_OK;
    const dim3 grid((unsigned)a->n_row, fm__row_blocks(a->width / 4));
    FM_LAUNCH_EARLY(combine_rows, grid, FM__ROW_THREADS, 0, stream, *a);
    return fm_cuda_launched("combine_rows");
}
