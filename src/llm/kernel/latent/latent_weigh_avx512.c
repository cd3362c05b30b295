/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax weights, 16 heads in a register and two tokens at a time: their
 * weights leave as pairs. */
#include <immintrin.h>
#include <math.h>

#include "llm/kernel/exp_avx512.h"
#include "llm/kernel/latent/latent_internal.h"

#define INLINE static inline __attribute__((always_inline))

enum { LANES = FM_LATENT_LANES, PAIR = 2 * LANES };

/* Four maxima, since each waits four cycles for the one before.  A NaN is passed over here; its own
 * weight will be NaN. */
INLINE __m512 largest(const float *score, int n)
{
    enum { CHAINS = 4 };
    __m512 top[CHAINS];
    for (int i = 0; i < CHAINS; i++) top[i] = _mm512_set1_ps(-INFINITY);
    int t = 0;
    for (; t + CHAINS <= n; t += CHAINS)
        for (int i = 0; i < CHAINS; i++)
            top[i] = _mm512_max_ps(_mm512_load_ps(score + (t + i) * LANES), top[i]);
    for (; t < n; t++) top[0] = _mm512_max_ps(_mm512_load_ps(score + t * LANES), top[0]);
    return _mm512_max_ps(_mm512_max_ps(top[0], top[1]), _mm512_max_ps(top[2], top[3]));
}

/* Lanes of two tokens, interleaved. */
INLINE __m512i pairs_of(__m512 even, __m512 odd)
{
    const __m512i order =
        _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                         21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    return _mm512_permutexvar_epi16(order, (__m512i)_mm512_cvtne2ps_pbh(odd, even));
}

void fm__latent_weigh_bf16_avx512(void *restrict p, float *restrict score, int n, float scale,
                                  float max[FM_LATENT_LANES], float sum[FM_LATENT_LANES])
{
    const __m512 by  = _mm512_set1_ps(scale), top = _mm512_mul_ps(largest(score, n), by);
    __m512       all = _mm512_setzero_ps();
    char        *to  = p;
    for (int t = 0; t < fm__whole_steps(n); t += 2, score += PAIR, to += PAIR * sizeof(fm_bf16)) {
        const __m512 a = _mm512_sub_ps(_mm512_mul_ps(_mm512_load_ps(score), by), top);
        const __m512 b = _mm512_sub_ps(_mm512_mul_ps(_mm512_load_ps(score + LANES), by), top);
        const __m512 even = t < n ? fm__exp_avx512(a) : _mm512_setzero_ps();
        const __m512 odd  = t + 1 < n ? fm__exp_avx512(b) : _mm512_setzero_ps();
        all               = _mm512_add_ps(_mm512_add_ps(all, even), odd);
        _mm512_store_si512(to, pairs_of(even, odd));
    }
    _mm512_storeu_ps(max, top);
    _mm512_storeu_ps(sum, all);
}
