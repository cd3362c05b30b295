/* SPDX-License-Identifier: Apache-2.0 */
/* The operations on rows that have an AVX-512 variant beside the plain C one. */
#ifndef FM_LLM_KERNEL_ROWS_INTERNAL_H
#define FM_LLM_KERNEL_ROWS_INTERNAL_H

#include "llm/kernel/rows/rows.h"

/* For bf16 results, with an exponential good to 2^-18: other bits than the plain ones. */
void fm__tile_softmax_avx512(const fm_softmax_step *s);
void fm__tile_swiglu_avx512(fm_bf16 *dst, size_t ld, const float *c, int m);

/* The plain bits but for numbers below 2^-126, which become zeros in bf16. */
void fm__tile_store_avx512(fm_bf16 *dst, size_t ld, const float *c, int m);
void fm__tile_scatter_avx512(void *const *to, fm_dtype t, const float *c, int m);
void fm__scatter_end_avx512(void);

#endif
