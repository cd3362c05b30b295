/* SPDX-License-Identifier: Apache-2.0 */
/* The quantisation of 128 columns, as kernel/rows/quantise.c defines it: what several row kernels
 * share. */
#ifndef FM_LLM_KERNEL_CUDA_FP8_QUANTISE_CUH
#define FM_LLM_KERNEL_CUDA_FP8_QUANTISE_CUH

#include "llm/kernel/cuda/ptx/ptx.cuh"

/* Values times `factor` are rounded to E4M3, and those times `scale` are the values again. */
typedef struct {
    float factor, scale;
} fm_quantum;

/* Of the largest magnitude; below 2^-100 a block counts as zeros. */
FM_DEVICE fm_quantum fm__quantum(float most)
{
    const float      m = fmaxf(most, 0x1p-100f);
    const fm_quantum q = {448.0f / m, m / 448.0f};
    return q;
}

FM_DEVICE float fm__more(float most, uint32_t bf16x2)
{
    return fmaxf(most, fmaxf(fabsf(fm_f32_of_bf16_lo(bf16x2)), fabsf(fm_f32_of_bf16_hi(bf16x2))));
}

/* The largest of 16 neighbouring lanes. */
FM_DEVICE float fm__most_of_16(float x)
{
#pragma unroll
    for (int lanes = 8; lanes; lanes /= 2) x = fmaxf(x, fm_shfl_xor(x, lanes));
    return x;
}

FM_DEVICE uint32_t fm__quantised2(uint32_t bf16x2, fm_quantum q)
{
    return fm_e4m3x2_of_f32(fm_f32_of_bf16_lo(bf16x2) * q.factor,
                            fm_f32_of_bf16_hi(bf16x2) * q.factor);
}

FM_DEVICE uint32_t fm__quantised4(uint32_t lower, uint32_t upper, fm_quantum q)
{
    return fm__quantised2(lower, q) | fm__quantised2(upper, q) << 16;
}

#endif
