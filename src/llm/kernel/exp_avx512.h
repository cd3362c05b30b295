/* SPDX-License-Identifier: Apache-2.0 */
/* Exponentials for softmax and gating, 16 at a time.  Results below 2^-126 are to be
 * avoided: some CPUs take a hundred times as long for each of them. */
#ifndef FM_LLM_KERNEL_EXP_AVX512_H
#define FM_LLM_KERNEL_EXP_AVX512_H

#include <immintrin.h>

/* 2^y for |y| <= FM__EXP2_LIMIT as 2^n 2^f with |f| <= 1/2 and (2^f - 1) / f a
 * polynomial, 2^-18: enough for what becomes bf16.  A NaN stays one. */
#define FM__EXP2_LIMIT 125.0f

static inline __attribute__((always_inline)) __m512 fm__exp2_avx512(__m512 y)
{
    const __m512 n = _mm512_roundscale_ps(y, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m512 f = _mm512_sub_ps(y, n);
    __m512       g = _mm512_set1_ps(9.582853e-3f);
    g              = _mm512_fmadd_ps(g, f, _mm512_set1_ps(5.5906426e-2f));
    g              = _mm512_fmadd_ps(g, f, _mm512_set1_ps(2.4024099e-1f));
    g              = _mm512_fmadd_ps(g, f, _mm512_set1_ps(6.9312418e-1f));
    return _mm512_scalef_ps(_mm512_fmadd_ps(g, f, _mm512_set1_ps(1.0f)), n);
}

/* e^x for x < 88 as 2^n 2^f with |f| <= 1/2 and (2^f - 1) / f a polynomial, 2^-23.
 * Minus infinity gives 0.  A NaN stays one: it is the second operand of the maximum. */
static inline __attribute__((always_inline)) __m512 fm__exp_avx512(__m512 x)
{
    const __m512 y =
        _mm512_max_ps(_mm512_set1_ps(-200.0f), _mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)));
    const __m512 n = _mm512_roundscale_ps(y, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m512 f = _mm512_sub_ps(y, n);
    __m512       g = _mm512_set1_ps(1.3264738e-3f);
    g              = _mm512_fmadd_ps(g, f, _mm512_set1_ps(9.671513e-3f));
    g              = _mm512_fmadd_ps(g, f, _mm512_set1_ps(5.5507336e-2f));
    g              = _mm512_fmadd_ps(g, f, _mm512_set1_ps(2.4022242e-1f));
    g              = _mm512_fmadd_ps(g, f, _mm512_set1_ps(6.93147e-1f));
    return _mm512_scalef_ps(_mm512_fmadd_ps(g, f, _mm512_set1_ps(1.0f)), n);
}

#endif
