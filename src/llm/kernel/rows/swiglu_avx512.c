/* SPDX-License-Identifier: Apache-2.0 */
/* Gating between the two products of an expert, a tile row at a time. */
#include "llm/kernel/exp_avx512.h"
#include "llm/kernel/rows/rows_internal.h"

enum { HALF = 16 };

/* 1 / x from 14 bits, doubled once; x is normal. */
static inline __m512 reciprocal(__m512 x)
{
    const __m512 r = _mm512_rcp14_ps(x), error = _mm512_fnmadd_ps(x, r, _mm512_set1_ps(1.0f));
    return _mm512_fmadd_ps(r, error, r);
}

/* x / (1 + e^-x); beyond the limit the exponential counts as at it, which is as good
 * as 0 or infinity here. */
static inline __m512 silu(__m512 x)
{
    const __m512 limit = _mm512_set1_ps(FM__EXP2_LIMIT), least = _mm512_set1_ps(-FM__EXP2_LIMIT);
    const __m512 y = _mm512_mul_ps(x, _mm512_set1_ps(-1.44269504f));
    const __m512 e = fm__exp2_avx512(_mm512_min_ps(limit, _mm512_max_ps(least, y)));
    return _mm512_mul_ps(x, reciprocal(_mm512_add_ps(_mm512_set1_ps(1.0f), e)));
}

void fm__tile_swiglu_avx512(fm_bf16 *dst, size_t ld, const float *c, int m)
{
    for (int i = 0; i < m; i++, dst += ld, c += 2 * HALF) {
        const __m512 y = _mm512_mul_ps(silu(_mm512_loadu_ps(c)), _mm512_loadu_ps(c + HALF));
        _mm256_storeu_si256((__m256i *)dst, (__m256i)_mm512_cvtneps_pbh(y));
    }
}
