/* SPDX-License-Identifier: Apache-2.0 */
/* Hidden states for drafts: one block per row.  The row is read again for each of the two norms,
 * which is cheap: it is in the cache, and the rows of a pass are few or take long elsewhere. */
#include "llm/kernel/cuda/rows/block.cuh"
#include "llm/kernel/cuda/rows/rows.h"

enum { STRIDE = 4 * FM__ROW_THREADS };

FM_DEVICE float squares(float4 v)
{
    return (v.x * v.x + v.y * v.y) + (v.z * v.z + v.w * v.w);
}

FM_DEVICE float4 scaled(float4 v, float s, float4 w)
{
    return make_float4(v.x * s * w.x, v.y * s * w.y, v.z * s * w.z, v.w * s * w.w);
}

FM_DEVICE float4 rounded(float4 v)
{
    const uint32_t lo = fm_bf16x2_of_f32(v.x, v.y), hi = fm_bf16x2_of_f32(v.z, v.w);
    return make_float4(fm_f32_of_bf16_lo(lo), fm_f32_of_bf16_hi(lo), fm_f32_of_bf16_lo(hi),
                       fm_f32_of_bf16_hi(hi));
}

FM_DEVICE float factor(const fm_cuda_hidden_args &a, float sum, float part[FM__ROW_WARPS])
{
    const float s = 1.0f / sqrtf(fm__block_sum(sum, part) / (float)a.width + a.eps);
    __syncthreads(); /* part is free again */
    return s;
}

/* What the norm of x[row] multiplies by. */
FM_DEVICE float factor_of(const fm_cuda_hidden_args &a, size_t row, float part[FM__ROW_WARPS])
{
    const float *x   = a.x + row * (size_t)a.width;
    float        sum = 0;
    for (int c = 4 * (int)threadIdx.x; c < a.width; c += STRIDE) sum += squares(fm__load4(x + c));
    return factor(a, sum, part);
}

FM_DEVICE float4 state_of(const fm_cuda_hidden_args &a, size_t row, float s, int c)
{
    return rounded(scaled(fm__load4(a.x + row * (size_t)a.width + c), s, fm__load4(a.norm + c)));
}

FM_DEVICE float4 state_before(const fm_cuda_hidden_args &a, int before, float s, int c)
{
    if (before >= 0) return state_of(a, (size_t)before, s, c);
    if (before == FM_CUDA_NO_STATE) return make_float4(0, 0, 0, 0);
    return fm__load4_bf16(a.kept + (size_t)(-1 - before) * (size_t)a.width + c);
}

FM_KERNEL(FM__ROW_THREADS) hidden_rows(const fm_cuda_hidden_args a)
{
    __shared__ float part[FM__ROW_WARPS];
    fm__row_begin();
    const int   before = a.before[blockIdx.x], keep = a.x ? a.keep[blockIdx.x] : -1;
    const float s      = before >= 0 ? factor_of(a, (size_t)before, part) : 0;
    float       sum    = 0;
    for (int c = 4 * (int)threadIdx.x; c < a.width; c += STRIDE)
        sum += squares(state_before(a, before, s, c));
    const float t = factor(a, sum, part);
    uint16_t   *y = a.y + (size_t)blockIdx.x * (size_t)a.width;
    for (int c = 4 * (int)threadIdx.x; c < a.width; c += STRIDE)
        fm__store4_bf16(y + c, scaled(state_before(a, before, s, c), t, fm__load4(a.w + c)));
    if (keep < 0) return;
    const float own = factor_of(a, blockIdx.x, part);
    for (int c = 4 * (int)threadIdx.x; c < a.width; c += STRIDE)
        fm__store4_bf16(a.kept + (size_t)keep * (size_t)a.width + c,
                        state_of(a, blockIdx.x, own, c));
}

fm_status fm_cuda_hidden(const fm_cuda_hidden_args *a, fm_stream stream)
{
    FM_BUG_UNLESS(a->width > 0 && a->width % 4 == 0);
    if (a->n_row == 0) return FM_OK;
    FM_LAUNCH_EARLY(hidden_rows, (unsigned)a->n_row, FM__ROW_THREADS, 0, stream, *a);
    return fm_cuda_launched("hidden_rows");
}
