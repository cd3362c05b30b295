/* SPDX-License-Identifier: Apache-2.0 */
/* A few rows times several neighbouring BF16 panels at once:
 *
 *     c[p][i, j] = sum_k x[i, k] * w[p][j, k]      p < n_panel,  i < m <= 4,  j < 32
 *
 * The bits are those of fm_gemm.bf16, panel by panel.  One row times one panel is two chains of
 * sums, each of which waits for its last term (six cycles of VDPBF16PS on Zen 4 and 5), while
 * weights that lie in a cache come faster; several panels are as many chains more. */
#ifndef FM_LLM_KERNEL_GEMM_GEMM_FEW_H
#define FM_LLM_KERNEL_GEMM_GEMM_FEW_H

#include "llm/kernel/gemm/gemm.h"

enum { FM_GEMM_FEW_ROWS = 4 };

/* c is [n_panel][m, 32]; panels lie one behind the other; the rest as in gemm.h. */
typedef void fm_gemm_few_fn(float *restrict c, const void *const *restrict x,
                            const void *restrict w, int n_panel, int m, int k);

/* The same of FP8 panels whose weights count as BF16 numbers: the bits of fm_gemm.widen and then
 * fm_gemm.bf16.  scale is the first panel's and that of all, as it is for panels of the same 128
 * outputs. */
typedef void fm_gemm_few_fp8_fn(float *restrict c, const void *const *restrict x,
                                const void *restrict w, const float *restrict scale, int n_panel,
                                int m, int k);

fm_gemm_few_fn     fm__gemm_few_avx512;
fm_gemm_few_fp8_fn fm__gemm_few_fp8_vbmi, fm__gemm_few_fp8_amx;

/* What has the bits of g->bf16; NULL: nothing gains. */
fm_gemm_few_fn     *fm_gemm_few(const fm_gemm *g);
fm_gemm_few_fp8_fn *fm_gemm_few_fp8(const fm_gemm *g);

#endif
