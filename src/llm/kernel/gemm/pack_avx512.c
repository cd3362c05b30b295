/* SPDX-License-Identifier: Apache-2.0 */
/* A bf16 pair is a 32-bit lane, so both kinds of `across` are 16 x 16
 * transposes of such lanes; `along` interleaves or copies rows. */
#include <immintrin.h>

#include "llm/kernel/gemm/gemm_internal.h"

#define INLINE static inline __attribute__((always_inline))

/* r[i] lane p  <->  r[p] lane i.  Steps of 1, 2, 4 and 8: the first two
 * within 128 bits, the last two across. */
INLINE void transpose(__m512i r[16])
{
    __m512i t[16];
    for (int i = 0; i < 16; i += 2) {
        t[i]     = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) { /* r[4g + q]: lane q of each 128 bits, rows 4g .. 4g+3 */
        r[i]     = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    for (int q = 0; q < 4; q++) {
        t[q]      = _mm512_shuffle_i32x4(r[q], r[4 + q], 0x88);
        t[4 + q]  = _mm512_shuffle_i32x4(r[q], r[4 + q], 0xdd);
        t[8 + q]  = _mm512_shuffle_i32x4(r[8 + q], r[12 + q], 0x88);
        t[12 + q] = _mm512_shuffle_i32x4(r[8 + q], r[12 + q], 0xdd);
    }
    for (int q = 0; q < 4; q++) {
        r[q]      = _mm512_shuffle_i32x4(t[q], t[8 + q], 0x88);
        r[4 + q]  = _mm512_shuffle_i32x4(t[4 + q], t[12 + q], 0x88);
        r[8 + q]  = _mm512_shuffle_i32x4(t[q], t[8 + q], 0xdd);
        r[12 + q] = _mm512_shuffle_i32x4(t[4 + q], t[12 + q], 0xdd);
    }
}

/* 64 bytes from byte `at` of each of the rows j .. j+15, `live` units of 2
 * bytes of them real, turned into 16 rows of a half panel. */
INLINE void turn(void *dst, const void *const *rows, int j, int m, size_t at, __mmask32 live)
{
    __m512i r[16];
    for (int i = 0; i < 16; i++)
        r[i] = j + i < m && rows[j + i]
                   ? _mm512_maskz_loadu_epi16(live, (const char *)rows[j + i] + at)
                   : _mm512_setzero_si512();
    transpose(r);
    for (int i = 0; i < 16; i++) _mm512_storeu_si512((char *)dst + i * 128, r[i]);
}

static inline __mmask32 first(int n)
{
    return n >= 32 ? ~(__mmask32)0 : ((__mmask32)1 << n) - 1;
}

void fm__across_bf16_avx512(void *restrict dst, const void *const *restrict rows, int m, int n)
{
    for (int p = 0; p < n; p += FM__BLOCK)
        for (int j = 0; j < FM_PANEL; j += FM__HALF) {
            fm_bf16 *out = (fm_bf16 *)dst + fm__at_bf16(j, p);
            turn(out, rows, j, m, (size_t)p * 2, first(n - p));
        }
}

void fm__across_f32_avx512(void *restrict dst, const void *const *restrict rows, int m, int n)
{
    const int k = (int)fm_round_up((size_t)n, FM__BLOCK);
    for (int p = 0; p < k; p += 16)
        for (int j = 0; j < FM_PANEL; j += FM__HALF) {
            float *out = (float *)dst + fm__at_f32(j, p);
            turn(out, rows, j, m, (size_t)p * 4, p < n ? first(2 * (n - p)) : 0);
        }
}

void fm__along_bf16_avx512(void *restrict dst, const void *const *restrict rows, int m, int n)
{
    const __m512i low  = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40,
                                          8, 39, 7, 38, 6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
    const __m512i high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
    const int     k    = (int)fm_round_up((size_t)m, FM__BLOCK);
    for (int p = 0; p < k; p += 2) {
        const fm_bf16 *even = p < m ? rows[p] : NULL, *odd = p + 1 < m ? rows[p + 1] : NULL;
        fm_bf16       *out = (fm_bf16 *)dst + fm__at_bf16(0, p);
        for (int j = 0; j < n; j += FM_PANEL, out += (size_t)FM_PANEL * (size_t)k) {
            const __m512i a = even ? _mm512_loadu_si512(even + j) : _mm512_setzero_si512();
            const __m512i b = odd ? _mm512_loadu_si512(odd + j) : _mm512_setzero_si512();
            _mm512_storeu_si512(out, _mm512_permutex2var_epi16(a, low, b));
            _mm512_storeu_si512(out + 32, _mm512_permutex2var_epi16(a, high, b));
        }
    }
}

void fm__along_f32_avx512(void *restrict dst, const void *const *restrict rows, int m, int n)
{
    const int k = (int)fm_round_up((size_t)m, FM__BLOCK);
    for (int p = 0; p < k; p++) {
        const float *row = p < m ? rows[p] : NULL;
        float       *out = (float *)dst + fm__at_f32(0, p);
        for (int j = 0; j < n; j += FM_PANEL, out += (size_t)FM_PANEL * (size_t)k) {
            const __m512 a = row ? _mm512_loadu_ps(row + j) : _mm512_setzero_ps();
            const __m512 b = row ? _mm512_loadu_ps(row + j + 16) : _mm512_setzero_ps();
            _mm512_storeu_ps(out, a);
            _mm512_storeu_ps(out + 16, b);
        }
    }
}
