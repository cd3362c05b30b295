/* SPDX-License-Identifier: Apache-2.0 */
/* INT4 panels with f32 arithmetic: a group of 32 k is widened into L1 once for all rows, summed
 * by itself for two rows at a time in ascending k, then c += scale * sum. */
#include <immintrin.h>

#include "llm/kernel/gemm/gemm_internal.h"

#define INLINE static inline __attribute__((always_inline))

enum { EIGHTS = FM_PANEL / 8, ROWS = 2, AHEAD = 4096 };

/* A lane is an output: bytes k, k, k + 1, k + 1 of either half, and in the upper four bits
 * k + 2, k + 2, k + 3, k + 3. */
INLINE __m256 f32_of_int4(__m256i lanes, int k, int half)
{
    const int     bit = (k % 2 * 2 + half) * 8 + k / 2 * 4;
    const __m256i top = _mm256_slli_epi32(lanes, 28 - bit);
    return _mm256_cvtepi32_ps(_mm256_srai_epi32(top, 28));
}

/* to[k][32], 32 k */
static void widen_group(float *restrict to, const char *restrict group)
{
    for (int q = 0; q < FM__GROUP_K; q += 4, group += 64, to += 4 * FM_PANEL) {
        _mm_prefetch(group + AHEAD, _MM_HINT_T0);
#pragma GCC unroll 2
        for (int b = 0; b < 2; b++) {
            const __m256i lanes = _mm256_loadu_si256((const __m256i *)(group + b * 32));
#pragma GCC unroll 4
            for (int k = 0; k < 4; k++)
#pragma GCC unroll 2
                for (int half = 0; half < 2; half++)
                    _mm256_store_ps(to + k * FM_PANEL + half * FM__HALF + b * 8,
                                    f32_of_int4(lanes, k, half));
        }
    }
}

static void widen_x(float *restrict to, const fm_bf16 *restrict x)
{
    for (int p = 0; p < FM__GROUP_K; p += 8) {
        const __m256i a = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(x + p)));
        _mm256_store_ps(to + p, _mm256_castsi256_ps(_mm256_slli_epi32(a, 16)));
    }
}

INLINE __m256 factors(const char *group, int v)
{
    const __m128i s = _mm_loadu_si128((const __m128i *)(fm__group_scales(group) + v * 8));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(s), 16));
}

/* c[rows, 32] += scale * (x w) over the group */
INLINE void run_rows(float *c, const void *const *x, int from, const float *w, const char *group,
                     int rows)
{
    _Alignas(32) float wide[ROWS][FM__GROUP_K];
    __m256             sum[ROWS][EIGHTS];
#pragma GCC unroll 2
    for (int i = 0; i < rows; i++) {
        widen_x(wide[i], (const fm_bf16 *)x[i] + from);
#pragma GCC unroll 4
        for (int v = 0; v < EIGHTS; v++) sum[i][v] = _mm256_setzero_ps();
    }
    for (int p = 0; p < FM__GROUP_K; p++, w += FM_PANEL)
#pragma GCC unroll 2
        for (int i = 0; i < rows; i++) {
            const __m256 a = _mm256_broadcast_ss(&wide[i][p]);
#pragma GCC unroll 4
            for (int v = 0; v < EIGHTS; v++)
                sum[i][v] = _mm256_fmadd_ps(a, _mm256_load_ps(w + v * 8), sum[i][v]);
        }
#pragma GCC unroll 2
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int v = 0; v < EIGHTS; v++) {
            float *to = c + i * FM_PANEL + v * 8;
            _mm256_storeu_ps(to,
                             _mm256_fmadd_ps(factors(group, v), sum[i][v], _mm256_loadu_ps(to)));
        }
}

void fm__gemm_int4_avx2(float *restrict c, const void *const *restrict x, const void *restrict w,
                        const float *restrict scale, int m, int k)
{
    _Alignas(32) float wide[FM__GROUP_K * FM_PANEL];
    (void)scale;
    memset(c, 0, (size_t)m * FM_PANEL * sizeof *c);
    for (int p = 0; p < k; p += FM__GROUP_K) {
        const char *group = fm__group_at(w, p);
        int         i     = 0;
        widen_group(wide, group);
        for (; i + ROWS <= m; i += ROWS)
            run_rows(c + (size_t)i * FM_PANEL, x + i, p, wide, group, ROWS);
        if (i < m) run_rows(c + (size_t)i * FM_PANEL, x + i, p, wide, group, 1);
    }
}
