/* SPDX-License-Identifier: Apache-2.0 */
/* What belongs to one output and one step of k is a 32-bit lane (a float, a bf16
 * pair, a pair of two halves in fp8), so every `across` is a 16 x 16 transpose of
 * lanes; `along` interleaves or copies rows. */
#include <immintrin.h>

#include "llm/kernel/gemm/gemm_internal.h"
#include "llm/kernel/transpose_avx512.h"

#define INLINE static inline __attribute__((always_inline))

/* 16 rows, `step` bytes apart. */
INLINE void store_turned(void *dst, int step, __m512i r[16])
{
    fm__transpose(r);
    for (int i = 0; i < 16; i++) _mm512_storeu_si512((char *)dst + i * step, r[i]);
}

INLINE __mmask32 first(int n)
{
    return n >= 32 ? ~(__mmask32)0 : n > 0 ? ((__mmask32)1 << n) - 1 : 0;
}

/* 64 bytes of row i from byte `at`; `live` units of 2 bytes of them are real. */
INLINE __m512i load_words(const void *const *rows, int i, int m, size_t at, __mmask32 live)
{
    if (i >= m || !rows[i]) return _mm512_setzero_si512();
    return _mm512_maskz_loadu_epi16(live, (const char *)rows[i] + at);
}

/* 32 bytes, each in the lower half of a word. */
INLINE __m512i load_bytes(const void *const *rows, int i, int m, size_t at, __mmask32 live)
{
    if (i >= m || !rows[i]) return _mm512_setzero_si512();
    return _mm512_cvtepu8_epi16(_mm256_maskz_loadu_epi8(live, (const char *)rows[i] + at));
}

void fm__across_bf16_avx512(void *restrict dst, const void *const *restrict rows, int m, int n)
{
    for (int p = 0; p < n; p += FM__BLOCK)
        for (int j = 0; j < FM_PANEL; j += FM__HALF) {
            __m512i r[16];
            for (int i = 0; i < 16; i++)
                r[i] = load_words(rows, j + i, m, (size_t)p * 2, first(n - p));
            store_turned((fm_bf16 *)dst + fm__at_bf16(j, p), 128, r);
        }
}

/* A lane is an output of each half at a pair of k. */
void fm__across_fp8_avx512(void *restrict dst, const void *const *restrict rows, int m, int n)
{
    for (int p = 0; p < n; p += FM__BLOCK) {
        __m512i r[16];
        for (int i = 0; i < 16; i++) {
            const __m512i a = load_bytes(rows, i, m, (size_t)p, first(n - p));
            const __m512i b = load_bytes(rows, FM__HALF + i, m, (size_t)p, first(n - p));
            r[i]            = _mm512_or_si512(a, _mm512_slli_epi16(b, 8));
        }
        store_turned((fm_fp8 *)dst + fm__at_fp8(0, p), 64, r);
    }
}

void fm__across_f32_avx512(void *restrict dst, const void *const *restrict rows, int m, int n)
{
    const int k = (int)fm_round_up((size_t)n, FM__BLOCK);
    for (int p = 0; p < k; p += 16)
        for (int j = 0; j < FM_PANEL; j += FM__HALF) {
            __m512i r[16];
            for (int i = 0; i < 16; i++)
                r[i] = load_words(rows, j + i, m, (size_t)p * 4, first(2 * (n - p)));
            store_turned((float *)dst + fm__at_f32(j, p), 128, r);
        }
}

void fm__along_bf16_avx512(void *restrict dst, const void *const *restrict rows, int m, int n)
{
    const __m512i low =
        _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6,
                         37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
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
