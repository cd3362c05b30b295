/* SPDX-License-Identifier: Apache-2.0 */
/* The variants of the panel kernel (gemm.h), one per type and instruction set, and the index of a
 * weight in each panel layout. */
#ifndef FM_LLM_KERNEL_GEMM_INTERNAL_H
#define FM_LLM_KERNEL_GEMM_INTERNAL_H

#include "llm/kernel/gemm/gemm.h"

enum {
    FM__HALF    = FM_PANEL / 2, /* outputs that share a zmm or a tile */
    FM__BLOCK   = 32,           /* k comes in multiples of this */
    FM__SCALE_K = 128,          /* k under one FP8 scale */

    FM__GROUP_K     = FM_INT4_GROUP, /* k under one INT4 scale */
    FM__GROUP_BYTES = FM__GROUP_K * FM_PANEL / 2 + FM_PANEL * 2,
};

fm_gemm_fn fm__gemm_bf16_ref, fm__gemm_fp8_ref, fm__gemm_f32_ref;
fm_gemm_fn fm__gemm_bf16_avx2, fm__gemm_fp8_avx2, fm__gemm_f32_avx2;
fm_gemm_fn fm__gemm_bf16_avx512, fm__gemm_fp8_avx512, fm__gemm_f32_avx512;
fm_gemm_fn fm__gemm_fp8_vbmi;
fm_gemm_fn fm__gemm_bf16_amx, fm__gemm_fp8_amx;
fm_gemm_fn fm__gemm_int4_ref, fm__gemm_int4_avx2, fm__gemm_int4_avx512, fm__gemm_int4_amx;
fm_gemm_telling_fn fm__telling_bf16_amx, fm__telling_fp8_amx, fm__telling_int4_amx;
fm_gemm_scaled_fn fm__gemm_scaled_ref, fm__gemm_scaled_avx2, fm__gemm_scaled_avx512;
fm_gemm_scaled_fn fm__gemm_scaled_vbmi, fm__gemm_scaled_amx;

fm_widen_fn fm__widen_vbmi;

enum { FM__INT4_FEW = 4 }; /* rows, at most, of the following */
void fm__gemm_int4_few_amx(float *restrict c, const void *const *restrict x, const void *restrict w,
                           int m, int k);

void fm__gemm_int4_one_amx(float *restrict c, const void *restrict x, const void *restrict w,
                           int k);

/* 17 to 128 rows, and more: one panel of 512 k in L2 and 64 rows 1450 and 1760 ns, 256 rows 5560
 * and 5120 ns (FP8).  done may be NULL: there is no callback. */
enum { FM__BLOCKS_MOST = 128 };
fm_gemm_telling_fn fm__blocks_fp8_amx, fm__blocks_int4_amx;
fm_gemm_telling_fn fm__many_fp8_amx, fm__many_int4_amx;

fm_pack_fn fm__across_bf16_ref, fm__across_fp8_ref, fm__across_f32_ref;
fm_pack_fn fm__across_bf16_avx512, fm__across_fp8_avx512, fm__across_f32_avx512;
fm_pack_fn fm__along_bf16_ref, fm__along_f32_ref, fm__along_bf16_avx512, fm__along_f32_avx512;

/* Index of w[j, k] in a panel. */
static inline size_t fm__at_bf16(int j, int k)
{
    return (size_t)(k / 2 * 64 + j * 2 + k % 2);
}
static inline size_t fm__at_fp8(int j, int k)
{
    return (size_t)(k / 2 * 64 + j % FM__HALF * 4 + k % 2 * 2 + j / FM__HALF);
}
/* Byte of w[j, k] in a group of INT4; the upper four bits where k % 4 > 1. */
static inline size_t fm__at_int4(int j, int k)
{
    return (size_t)(k % FM__GROUP_K / 4 * 64 + j % FM__HALF * 4 + k % 2 * 2 + j / FM__HALF);
}
static inline const char *fm__group_at(const void *panel, int k)
{
    return (const char *)panel + (size_t)(k / FM__GROUP_K) * FM__GROUP_BYTES;
}
static inline const fm_bf16 *fm__group_scales(const char *group)
{
    return (const fm_bf16 *)(group + FM__GROUP_BYTES - FM_PANEL * 2);
}
static inline size_t fm__at_f32(int j, int k)
{
    return (size_t)(k * FM_PANEL + j);
}

/* FP8 becomes BF16 times 2^8, which its scale takes back. */
static inline float fm__scale_of_wide(float scale)
{
    return scale * 0x1p-8f;
}

/* The factor of row i's x in a slice of 128 k; 1 where rows are not quantised. */
static inline float fm__factor_of_row(const float *const *x_scale, int i, int slice)
{
    return x_scale ? x_scale[i][slice] : 1;
}

static inline int fm__least(int a, int b)
{
    return a < b ? a : b;
}

#endif
