/* SPDX-License-Identifier: Apache-2.0 */
/* There is no product of short numbers here, so everything becomes f32 on its
 * way into the sums, of which twelve stay in registers:
 *
 *     score   6 tokens x 16 heads; 96 d of the tokens are widened into L1, where
 *             they are broadcast from; q is split from its pairs in registers
 *     value   6 heads x 16 columns; interleaved with zeros, a token's columns are
 *             f32 as they stand, and each head's weight, widened once, is broadcast
 *
 * Sums run over d and over tokens in ascending order whatever n is. */
#include <immintrin.h>

#include "llm/kernel/latent/latent_internal.h"

#define INLINE static inline __attribute__((always_inline))

enum {
    LANES   = FM_LATENT_LANES,
    TOKENS  = 6,
    HEADS   = 6,
    COLUMNS = 16,
    SLICE   = 96, /* of d, widened at once */
    LINE    = 64,
};

INLINE __m256 first_of_pairs(__m256i pairs)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16));
}

INLINE __m256 second_of_pairs(__m256i pairs)
{
    return _mm256_castsi256_ps(_mm256_and_si256(pairs, _mm256_set1_epi32((int)0xffff0000)));
}

/* r[i] lane j to r[j] lane i */
INLINE void transpose(__m256i r[8])
{
    __m256i pairs[8], fours[8];
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {
        pairs[i]     = _mm256_unpacklo_epi32(r[i], r[i + 1]);
        pairs[i + 1] = _mm256_unpackhi_epi32(r[i], r[i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const int half = i / 2 * 4, at = half + i % 2, to = half + i % 2 * 2;

        fours[to]     = _mm256_unpacklo_epi64(pairs[at], pairs[at + 2]);
        fours[to + 1] = _mm256_unpackhi_epi64(pairs[at], pairs[at + 2]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        r[i]     = _mm256_permute2x128_si256(fours[i], fours[i + 4], 0x20);
        r[i + 4] = _mm256_permute2x128_si256(fours[i], fours[i + 4], 0x31);
    }
}

INLINE __m256i load_query(const void *const *q, int h, int heads, int d)
{
    return h < heads ? _mm256_loadu_si256((const __m256i *)((const fm_bf16 *)q[h] + d))
                     : _mm256_setzero_si256();
}

void fm__latent_pack_bf16_avx2(void *restrict dst, const void *const *restrict q, int heads,
                               int width)
{
    char *to = dst;
    for (int d = 0; d < width; d += 16, to += 8 * LINE)
        for (int h = 0; h < LANES; h += 8) {
            __m256i r[8];
#pragma GCC unroll 8
            for (int i = 0; i < 8; i++) r[i] = load_query(q, h + i, heads, d);
            transpose(r);
#pragma GCC unroll 8
            for (int i = 0; i < 8; i++)
                _mm256_store_si256((__m256i *)(to + i * LINE + h * 4), r[i]);
        }
}

/* Two registers of heads for each token. */
typedef __m256 sums[TOKENS][2];
typedef float  singles[TOKENS][SLICE];

/* d from `from` on of each token as f32.  The tokens after them are fetched
 * meanwhile: across so many rows at once they would come from memory one wait
 * after the other. */
INLINE void widen_tokens(singles to, const void *const *row, const void *const *next, int from,
                         int n, int tokens)
{
    for (int i = 0; i < tokens; i++) {
        const fm_bf16 *token = (const fm_bf16 *)row[i] + from;
        for (int d = 0; d < n; d += 8) {
            const __m256i a = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(token + d)));
            _mm256_store_ps(to[i] + d, first_of_pairs(a));
        }
        for (int d = 0; d < n; d += 32)
            _mm_prefetch((const fm_bf16 *)next[i] + from + d, _MM_HINT_T0);
    }
}

INLINE void add_products(sums sum, __m256 low, __m256 high, singles token, int d, int tokens)
{
#pragma GCC unroll 6
    for (int i = 0; i < tokens; i++) {
        const __m256 a = _mm256_broadcast_ss(token[i] + d);

        sum[i][0] = _mm256_fmadd_ps(low, a, sum[i][0]);
        sum[i][1] = _mm256_fmadd_ps(high, a, sum[i][1]);
    }
}

INLINE void score_tile(float *score, const char *q, const void *const *row, const void *const *next,
                       int width, int tokens)
{
    _Alignas(32) singles token;
    sums                 sum;
#pragma GCC unroll 6
    for (int i = 0; i < tokens; i++) sum[i][0] = sum[i][1] = _mm256_setzero_ps();
    for (int from = 0; from < width; from += SLICE) {
        const int n = width - from < SLICE ? width - from : SLICE;
        widen_tokens(token, row, next, from, n, tokens);
        for (int d = 0; d < n; d += 2, q += LINE) {
            const __m256i low  = _mm256_load_si256((const __m256i *)q);
            const __m256i high = _mm256_load_si256((const __m256i *)q + 1);
            add_products(sum, first_of_pairs(low), first_of_pairs(high), token, d, tokens);
            add_products(sum, second_of_pairs(low), second_of_pairs(high), token, d + 1, tokens);
        }
    }
#pragma GCC unroll 6
    for (int i = 0; i < tokens; i++) {
        _mm256_store_ps(score + i * LANES, sum[i][0]);
        _mm256_store_ps(score + i * LANES + 8, sum[i][1]);
    }
}

/* What is left behind whole tiles is rounded up to 2, 4 or 6 tokens, which are
 * there since n rounded up to 32 is even. */
void fm__latent_score_bf16_avx2(float *restrict score, const void *restrict q,
                                const void *const *restrict row, int n, int width)
{
    const int last = fm__whole_steps(n) - TOKENS;
    int       t    = 0;
    for (; t + 4 < n; t += TOKENS, score += TOKENS * LANES) {
        const int next = t + TOKENS < last ? t + TOKENS : last;
        score_tile(score, q, row + t, row + next, width, TOKENS);
    }
    if (t + 2 < n) score_tile(score, q, row + t, row + t, width, 4);
    else if (t < n) score_tile(score, q, row + t, row + t, width, 2);
}

/* p as [n][16] f32, n rounded up to even */
INLINE void widen_weights(float *to, const char *p, int n)
{
    for (int t = 0; t < n; t += 2, p += LINE, to += 2 * LANES)
        for (int h = 0; h < LANES; h += 8) {
            const __m256i pairs = _mm256_load_si256((const __m256i *)(p + h * 4));
            _mm256_store_ps(to + h, first_of_pairs(pairs));
            _mm256_store_ps(to + LANES + h, second_of_pairs(pairs));
        }
}

/* Interleaving works within 128 bits: `low` has columns 0..3 and 8..11. */
INLINE void store_columns(float *z, __m256 low, __m256 high)
{
    _mm256_storeu_ps(z, _mm256_permute2f128_ps(low, high, 0x20));
    _mm256_storeu_ps(z + 8, _mm256_permute2f128_ps(low, high, 0x31));
}

INLINE void value_tile(float *z, const float *p, const void *const *row, int n, int at, int width,
                       int heads)
{
    const __m256i zero = _mm256_setzero_si256();
    __m256        low[HEADS], high[HEADS];
#pragma GCC unroll 6
    for (int i = 0; i < heads; i++) low[i] = high[i] = _mm256_setzero_ps();
    for (int t = 0; t < n; t++, p += LANES) {
        const __m256i token = _mm256_loadu_si256((const __m256i *)((const fm_bf16 *)row[t] + at));
        const __m256  a     = _mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, token));
        const __m256  b     = _mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, token));
#pragma GCC unroll 6
        for (int i = 0; i < heads; i++) {
            const __m256 weight = _mm256_broadcast_ss(p + i);

            low[i]  = _mm256_fmadd_ps(a, weight, low[i]);
            high[i] = _mm256_fmadd_ps(b, weight, high[i]);
        }
    }
#pragma GCC unroll 6
    for (int i = 0; i < heads; i++) store_columns(z + (size_t)i * (size_t)width, low[i], high[i]);
}

void fm__latent_value_bf16_avx2(float *restrict z, const void *restrict p,
                                const void *const *restrict row, int n, int heads, int width)
{
    _Alignas(32) float weight[FM_LATENT_KEYS * LANES];
    widen_weights(weight, p, n);
    for (int at = 0; at < width; at += COLUMNS)
        for (int h = 0; h < heads; h += HEADS) {
            float *to = z + (size_t)h * (size_t)width + at;
            if (h + HEADS <= LANES) value_tile(to, weight + h, row, n, at, width, HEADS);
            else value_tile(to, weight + h, row, n, at, width, LANES % HEADS);
        }
}
