/* SPDX-License-Identifier: Apache-2.0 */
/* Rounding weights to 4 and 8 bits: to the nearest value, with the better of two scales.
 *
 *     INT4  each 32 of a row: the largest magnitude becomes 7, or 8 with the positive end cut off
 *     FP8   each 128 x 128: the largest becomes 448, or the scale is the next power of two
 *
 * "Better" is the smaller sum of squared errors, the first one at a tie.  Pure functions. */
#ifndef FM_LLM_CONVERT_QUANTISE_H
#define FM_LLM_CONVERT_QUANTISE_H

#include "base/number.h"

/* A row of k values, k a multiple of 32, to k/2 bytes (FM_INT4) and k/32 scales. */
void fm_quantise_int4(uint8_t *restrict out, fm_bf16 *restrict scale, const float *restrict row,
                      int64_t k);

/* At most 128 rows of k values, side by side, to as many bytes and ceil(k/128) scales. */
void fm_quantise_fp8(fm_fp8 *restrict out, float *restrict scale, const float *restrict rows,
                     int n_row, int64_t k);

/* The nearest e4m3, ties to even; beyond 448 it is 448. */
fm_fp8 fm_fp8_of_f32(float f);

#endif
