/* SPDX-License-Identifier: Apache-2.0 */
/* Row kernels: sums and maxima over a thread block of FM__ROW_THREADS, vector loads and stores. */
#ifndef FM_LLM_KERNEL_CUDA_ROWS_BLOCK_CUH
#define FM_LLM_KERNEL_CUDA_ROWS_BLOCK_CUH

#include "llm/kernel/cuda/ptx/ptx.cuh"

enum { FM__ROW_THREADS = 256, FM__ROW_WARPS = FM__ROW_THREADS / 32 };

/* Every row kernel begins with this: the next one may start, and what the
 * last one wrote is there. */
FM_DEVICE void fm__row_begin()
{
    fm_grid_release();
    fm_grid_wait();
}

/* Pairwise within warps, then warps in ascending order: the same bits in every
 * thread.  `part` is shared and free again after the next barrier. */
FM_DEVICE float fm__block_sum(float x, float part[FM__ROW_WARPS])
{
    x = fm_warp_sum(x);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = x;
    __syncthreads();
    float sum = 0;
    for (int w = 0; w < FM__ROW_WARPS; w++) sum += part[w];
    return sum;
}

FM_DEVICE float fm__block_max(float x, float part[FM__ROW_WARPS])
{
    x = fm_warp_max(x);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = x;
    __syncthreads();
    float most = part[0];
    for (int w = 1; w < FM__ROW_WARPS; w++) most = fmaxf(most, part[w]);
    return most;
}

/* Blocks for n pieces of work, one per thread. */
static inline unsigned fm__row_blocks(int n)
{
    return (unsigned)((n + FM__ROW_THREADS - 1) / FM__ROW_THREADS);
}

/* The columns of four that a thread has when the blocks along y share a row. */
FM_DEVICE int fm__column4()
{
    return ((int)blockIdx.y * FM__ROW_THREADS + (int)threadIdx.x) * 4;
}

FM_DEVICE float4 fm__load4(const float *p)
{
    return *(const float4 *)p;
}

FM_DEVICE void fm__store4(float *p, float4 v)
{
    *(float4 *)p = v;
}

FM_DEVICE void fm__store4_bf16(uint16_t *p, float4 v)
{
    *(uint2 *)p = make_uint2(fm_bf16x2_of_f32(v.x, v.y), fm_bf16x2_of_f32(v.z, v.w));
}

/* Four bf16. */
FM_DEVICE float4 fm__widen4(uint2 v)
{
    return make_float4(fm_f32_of_bf16_lo(v.x), fm_f32_of_bf16_hi(v.x), fm_f32_of_bf16_lo(v.y),
                       fm_f32_of_bf16_hi(v.y));
}

FM_DEVICE float4 fm__load4_bf16(const uint16_t *p)
{
    return fm__widen4(*(const uint2 *)p);
}

#endif
