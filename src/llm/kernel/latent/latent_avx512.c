/* SPDX-License-Identifier: Apache-2.0 */
/* The heads are the 16 lanes of scores and the rows of values:
 *
 *     score   16 or 8 tokens x 16 heads in registers; each pair of d is one load of q
 *             and, for each token, one broadcast from where it is cached.  A sum waits six
 *             cycles for its last term: Zen 5, which starts two a cycle, needs 12 sums
 *     value   8 heads x 32 columns; two tokens are interleaved in registers and
 *             each head's pair of weights is broadcast
 *
 * Sums run over d and over tokens in ascending order whatever n is. */
#include <immintrin.h>

#include "llm/kernel/latent/columns_avx512.h"
#include "llm/kernel/latent/latent_internal.h"
#include "llm/kernel/transpose_avx512.h"

#define INLINE static inline __attribute__((always_inline))

enum {
    LANES   = FM_LATENT_LANES,
    TOKENS  = 12, /* at most */
    HEADS   = 8,
    COLUMNS = 32,
    LINE    = 64,
};

INLINE __m512i load_query(const void *const *q, int h, int heads, int d)
{
    return h < heads ? _mm512_loadu_si512((const fm_bf16 *)q[h] + d) : _mm512_setzero_si512();
}

void fm__latent_pack_bf16_avx512(void *restrict dst, const void *const *restrict q, int heads,
                                 int width)
{
    char *to = dst;
    for (int d = 0; d < width; d += 2 * LANES, to += LANES * LINE) {
        __m512i r[LANES];
        for (int h = 0; h < LANES; h++) r[h] = load_query(q, h, heads, d);
        fm__transpose(r);
        for (int i = 0; i < LANES; i++) _mm512_storeu_si512(to + i * LINE, r[i]);
    }
}

INLINE __m512bh broadcast_pair(const char *from)
{
    int32_t pair;
    memcpy(&pair, from, sizeof pair);
    return (__m512bh)_mm512_set1_epi32(pair);
}

/* Scores of up to 12 tokens; the 12 after them are fetched meanwhile, since across so
 * many rows at once they would come from memory one wait after the other. */
INLINE void score_tile(float *score, const char *q, const void *const *row,
                       const void *const *next, int tokens, int width)
{
    enum { PAIRS = 4 };
    __m512 sum[TOKENS];
#pragma GCC unroll 12
    for (int i = 0; i < tokens; i++) sum[i] = _mm512_setzero_ps();
    for (int at = 0; at < width * 2; at += PAIRS * 4, q += PAIRS * LINE) {
        __m512bh lane[PAIRS];
#pragma GCC unroll 4
        for (int p = 0; p < PAIRS; p++) lane[p] = (__m512bh)_mm512_load_si512(q + p * LINE);
#pragma GCC unroll 3
        for (int i = at / 16 % 4; i < tokens; i += 4)
            _mm_prefetch((const char *)next[i] + at / LINE * LINE, _MM_HINT_T1);
#pragma GCC unroll 12
        for (int i = 0; i < tokens; i++)
#pragma GCC unroll 4
            for (int p = 0; p < PAIRS; p++)
                sum[i] = _mm512_dpbf16_ps(
                    sum[i], lane[p], broadcast_pair((const char *)row[i] + at + p * 4));
    }
#pragma GCC unroll 12
    for (int i = 0; i < tokens; i++) _mm512_store_ps(score + i * LANES, sum[i]);
}

/* Tiles end at multiples of 4: `row` and `score` go on to the next multiple of 32. */
void fm__latent_score_bf16_avx512(float *restrict score, const void *restrict q,
                                  const void *const *restrict row, int n, int width)
{
    for (int t = 0; t < n; t += TOKENS) {
        float             *to   = score + t * LANES;
        const void *const *from = row + t, *const *next = t + 2 * TOKENS <= n ? from + TOKENS : from;
        if (n - t > 8) score_tile(to, q, from, next, TOKENS, width);
        else if (n - t > 4) score_tile(to, q, from, from, 8, width);
        else score_tile(to, q, from, from, 4, width);
    }
}

INLINE void value_tile(float *z, const char *p, const void *const *row, int n, int at, int width)
{
    __m512 low[HEADS], high[HEADS];
#pragma GCC unroll 8
    for (int i = 0; i < HEADS; i++) low[i] = high[i] = _mm512_setzero_ps();
    for (int t = 0; t < n; t += 2, p += LINE) {
        const fm__columns two = fm__interleave(row[t], row[t + 1], at);
#pragma GCC unroll 8
        for (int i = 0; i < HEADS; i++) {
            const __m512bh weight = broadcast_pair(p + i * 4);

            low[i]  = _mm512_dpbf16_ps(low[i], (__m512bh)two.low, weight);
            high[i] = _mm512_dpbf16_ps(high[i], (__m512bh)two.high, weight);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < HEADS; i++)
        fm__store_columns(z + (size_t)i * (size_t)width, low[i], high[i]);
}

void fm__latent_value_bf16_avx512(float *restrict z, const void *restrict p,
                                  const void *const *restrict row, int n, int heads, int width)
{
    for (int at = 0; at < width; at += COLUMNS)
        for (int h = 0; h < heads; h += HEADS)
            value_tile(z + (size_t)h * (size_t)width + at, (const char *)p + h * 4, row, n, at,
                       width);
}
