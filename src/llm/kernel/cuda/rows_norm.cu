/* SPDX-License-Identifier: Apache-2.0 */
/* One block per row: thread t takes columns 4t, 4t + 1024, …, so the order of
 * the sum follows from the width alone. */
#include "llm/kernel/cuda/rows.h"
#include "llm/kernel/cuda/rows_block.cuh"

enum { STRIDE = 4 * FM__ROW_THREADS };

/* Four values of the row, after the residual sum if there is one. */
FM_DEVICE float4 take(const fm_cuda_rmsnorm_args &a, float *x, size_t row, int col)
{
    float4 v = fm__load4(x + col);
    if (!a.add) return v;
    const float4 y = fm__load4(a.add + row * (size_t)a.width + col);
    v              = make_float4(v.x + y.x, v.y + y.y, v.z + y.z, v.w + y.w);
    fm__store4(x + col, v);
    return v;
}

FM_KERNEL(FM__ROW_THREADS) norm_rows(const fm_cuda_rmsnorm_args a)
{
    __shared__ float part[FM__ROW_WARPS];
    fm__row_begin();
    const size_t row = a.gather ? (size_t)a.gather[blockIdx.x] : blockIdx.x;
    float       *x   = a.x + row * (size_t)a.width;
    uint16_t    *y   = a.y + (size_t)blockIdx.x * (size_t)a.width;
    float        sum = 0;
    for (int col = 4 * (int)threadIdx.x; col < a.width; col += STRIDE) {
        const float4 v = take(a, x, row, col);
        sum += (v.x * v.x + v.y * v.y) + (v.z * v.z + v.w * v.w);
    }
    const float s = 1.0f / sqrtf(fm__block_sum(sum, part) / (float)a.width + a.eps);
    for (int col = 4 * (int)threadIdx.x; col < a.width; col += STRIDE) {
        const float4 v = fm__load4(x + col), w = fm__load4(a.w + col);
        fm__store4_bf16(y + col,
                        make_float4(v.x * s * w.x, v.y * s * w.y, v.z * s * w.z, v.w * s * w.w));
    }
}

fm_status fm_cuda_rmsnorm(const fm_cuda_rmsnorm_args *a, fm_stream stream)
{
    FM_BUG_UNLESS(a->width > 0 && a->width % 4 == 0);
    FM_BUG_UNLESS(!(a->add && a->gather));
    if (a->n_row == 0) return FM_OK;
    FM_LAUNCH_EARLY(norm_rows, (unsigned)a->n_row, FM__ROW_THREADS, 0, stream, *a);
    return fm_cuda_launched("norm_rows");
}
