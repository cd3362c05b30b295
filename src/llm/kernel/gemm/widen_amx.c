/* SPDX-License-Identifier: Apache-2.0 */
/* FP8 panels to BF16 panels with their scales, 64 weights at a time: under one scale there are 128
 * magnitudes, so their BF16 numbers are computed once for each 128 k and then looked up byte by
 * byte.  A panel takes about as long as reading it from memory does, which happens meanwhile. */
#include "llm/kernel/gemm/widen_amx.h"

enum {
    LINE     = 64,
    PREFETCH = 16384, /* bytes between widening and prefetching */
};

/* Lower and upper bytes of the BF16 numbers of E4M3 codes 0 .. 127. */
typedef struct {
    __m512i lower[2], upper[2];
} magnitudes;

/* bf16(factor * w) of 32 numbers */
static __m512i times(__m512i w, __m512 factor)
{
    __m256i half[2];
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
        const __m256i part = h ? _mm512_extracti64x4_epi64(w, 1) : _mm512_castsi512_si256(w);
        const __m512i wide = _mm512_slli_epi32(_mm512_cvtepu16_epi32(part), 16);
        half[h] = (__m256i)_mm512_cvtneps_pbh(_mm512_mul_ps(_mm512_castsi512_ps(wide), factor));
    }
    return _mm512_inserti64x4(_mm512_castsi256_si512(half[0]), half[1], 1);
}

static __m512i bytes_of(__m512i first, __m512i second)
{
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi16_epi8(first)),
                              _mm512_cvtepi16_epi8(second), 1);
}

static magnitudes magnitudes_of(float scale)
{
    const __m512 factor = _mm512_set1_ps(fm__scale_of_wide(scale));
    magnitudes   t;
    for (int i = 0; i < 2; i++) {
        /* Codes 64 i + 0 .. 31 in the even bytes, the 32 after them in the odd ones. */
        const __m512i word   = _mm512_cvtepu8_epi16(_mm256_add_epi8(
              _mm256_set1_epi8((char)(64 * i)),
              _mm256_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19,
                               20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31)));
        const __m512i codes  = _mm512_add_epi16(_mm512_or_si512(word, _mm512_slli_epi16(word, 8)),
                                                _mm512_set1_epi16(32 << 8));
        const fm__pair_row r = fm__widen_fp8(codes);
        const __m512i      a = times(r.half[0], factor), b = times(r.half[1], factor);
        t.lower[i] = bytes_of(a, b);
        t.upper[i] = bytes_of(_mm512_srli_epi16(a, 8), _mm512_srli_epi16(b, 8));
    }
    return t;
}

/* The lookup reads seven bits of a weight; its sign joins the upper byte. */
static inline fm__pair_row look_up(const magnitudes *t, __m512i b)
{
    const __m512i sign  = _mm512_set1_epi8((char)0x80);
    const __m512i lower = _mm512_permutex2var_epi8(t->lower[0], b, t->lower[1]);
    const __m512i upper = _mm512_permutex2var_epi8(t->upper[0], b, t->upper[1]);
    return fm__pair_row_of(lower, _mm512_ternarylogic_epi32(upper, b, sign, 0xf8));
}

void fm__widen_amx(void *restrict bf16, const void *restrict w, const float *restrict scale, int k)
{
    const char *from = w;
    char       *to   = bf16;
    for (int p = 0; p < k; p += FM__SCALE_K) {
        const magnitudes t     = magnitudes_of(scale[p / FM__SCALE_K * 2]);
        const int        pairs = fm__least(FM__SCALE_K, k - p) / 2;
        for (int q = 0; q < pairs; q++, from += LINE, to += 2 * LINE) {
            fm__fetch_soon(from + PREFETCH);
            fm__put_pair_row(to, look_up(&t, _mm512_loadu_si512(from)));
        }
    }
}
