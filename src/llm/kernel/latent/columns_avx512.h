/* SPDX-License-Identifier: Apache-2.0 */
/* 32 columns of two cached tokens as pairs.  Interleaving works within 128
 * bits, so `low` has columns 0..3, 8..11, 16..19, 24..27 and `high` the others;
 * the sums are put in order once, when they are stored. */
#ifndef FM_LLM_KERNEL_LATENT_COLUMNS_AVX512_H
#define FM_LLM_KERNEL_LATENT_COLUMNS_AVX512_H

#include <immintrin.h>

#include "base/number.h"

typedef struct {
    __m512i low, high; /* [16 columns][2 tokens] */
} fm__columns;

static inline __attribute__((always_inline)) fm__columns fm__interleave(const void *even,
                                                                        const void *odd, int at)
{
    const __m512i a = _mm512_loadu_si512((const fm_bf16 *)even + at);
    const __m512i b = _mm512_loadu_si512((const fm_bf16 *)odd + at);
    return (fm__columns){_mm512_unpacklo_epi16(a, b), _mm512_unpackhi_epi16(a, b)};
}

static inline __attribute__((always_inline)) void fm__store_columns(float *z, __m512 low,
                                                                    __m512 high)
{
    const __m512i first = _mm512_set_epi32(23, 22, 21, 20, 7, 6, 5, 4, 19, 18, 17, 16, 3, 2, 1, 0);
    const __m512i second = _mm512_add_epi32(first, _mm512_set1_epi32(8));
    _mm512_storeu_ps(z, _mm512_permutex2var_ps(low, first, high));
    _mm512_storeu_ps(z + 16, _mm512_permutex2var_ps(low, second, high));
}

#endif
