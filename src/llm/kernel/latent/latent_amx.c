/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of 16 x 16, 32 products deep:
 *
 *     score [32 tokens, 16 heads] = cached tokens in place           x  q
 *     value [16 heads, 32 columns] = p transposed to [heads, tokens] x  tokens interleaved
 *
 * q is a row of tiles as it is packed.  Every tile is full, so n changes how
 * many there are and nothing else. */
#include <immintrin.h>

#include "llm/kernel/latent/columns_avx512.h"
#include "llm/kernel/latent/latent_internal.h"
#include "llm/kernel/tiles_amx.h"
#include "llm/kernel/transpose_avx512.h"

enum {
    LANES   = FM_LATENT_LANES,
    DEPTH   = 32,        /* products of a tile */
    COLUMNS = 32,
    LINE    = 64,
    TILE    = 16 * LINE, /* bytes */
};

static void fetch(const void *const *row, int at)
{
    for (int i = 0; i < FM_LATENT_STEP; i++)
        _mm_prefetch((const char *)row[i] + at * 2, _MM_HINT_T1);
}

/* Scores of 32 tokens; the 32 after them are prefetched meanwhile. */
static void score_step(float *score, const char *q, const void *const *row,
                       const void *const *next, int width)
{
    fm__gathered g[2];
    _tile_zero(0);
    _tile_zero(1);
    for (int from = 0; from < width; from += FM__TILE_SLICE) {
        const int k = width - from < FM__TILE_SLICE ? width - from : FM__TILE_SLICE;
        const fm__tile_source a = fm__tile_rows(&g[0], row, FM__TILE_ROWS, from, k);
        const fm__tile_source b = fm__tile_rows(&g[1], row + FM__TILE_ROWS, FM__TILE_ROWS, from, k);
        fm__memory_is_written();
        for (int d = 0; d < k; d += DEPTH, q += TILE) {
            _tile_loadd(3, q, LINE);
            _tile_loadd(2, a.base + d * 2, a.stride);
            _tile_dpbf16ps(0, 2, 3);
            _tile_zero(2);
            _tile_loadd(4, b.base + d * 2, b.stride);
            _tile_dpbf16ps(1, 4, 3);
            _tile_zero(4);
            _tile_zero(3);
            fetch(next, from + d);
        }
    }
    _tile_stored(0, score, LINE);
    _tile_stored(1, score + FM__TILE_ROWS * LANES, LINE);
}

void fm__latent_score_bf16_amx(float *restrict score, const void *restrict q,
                               const void *const *restrict row, int n, int width)
{
    fm__shape_tiles(LANES);
    for (int t = 0; t < n; t += FM_LATENT_STEP) {
        const int soon = t + FM_LATENT_STEP < n ? t + FM_LATENT_STEP : t;
        score_step(score + t * LANES, q, row + t, row + soon, width);
    }
    fm__memory_is_written();
}

/* [16 pairs of tokens][16 heads] to [16 heads][16 pairs], step by step */
static void transpose_weights(char *to, const char *p, int n)
{
    for (int t = 0; t < n; t += FM_LATENT_STEP, to += TILE, p += TILE) {
        __m512i r[16];
        for (int i = 0; i < 16; i++) r[i] = _mm512_loadu_si512(p + i * LINE);
        fm__transpose(r);
        for (int i = 0; i < 16; i++) _mm512_store_si512(to + i * LINE, r[i]);
    }
}

/* A row of 32 columns for each pair of tokens. */
static void interleave(char *to, const void *const *row, int n, int at)
{
    for (int t = 0; t < n; t += 2, to += 2 * LINE) {
        const fm__columns two = fm__interleave(row[t], row[t + 1], at);
        _mm512_store_si512(to, two.low);
        _mm512_store_si512(to + LINE, two.high);
    }
}

/* Two tiles of sums, [which][head][16 columns] */
typedef struct {
    _Alignas(64) float half[2][LANES][16];
} sums;

static void multiply(sums *to, const char *weights, const char *tokens, int n)
{
    fm__memory_is_written();
    _tile_zero(0);
    _tile_zero(1);
    for (int t = 0; t < n; t += DEPTH, weights += TILE, tokens += 2 * TILE)
        fm__add_pair(weights, LINE, tokens);
    _tile_stored(0, to->half[0], LINE);
    _tile_stored(1, to->half[1], LINE);
    fm__memory_is_written();
}

static void store_sums(float *z, const sums *s, int width)
{
    for (int h = 0; h < LANES; h++)
        fm__store_columns(z + (size_t)h * (size_t)width, _mm512_load_ps(s->half[0][h]),
                          _mm512_load_ps(s->half[1][h]));
}

/* Stores are not forwarded between tile and vector instructions, so three groups of 32 columns
 * are in flight (software pipelining): while one is multiplied, the next is interleaved and the
 * one before is put in order. */
void fm__latent_value_bf16_amx(float *restrict z, const void *restrict p,
                               const void *const *restrict row, int n, int heads, int width)
{
    _Alignas(64) char weights[FM_LATENT_KEYS / DEPTH * TILE];
    _Alignas(64) char tokens[2][FM_LATENT_KEYS / 2 * 2 * LINE];
    sums              sum[2];
    const int         whole = fm__whole_steps(n);
    (void)heads; /* a tile has 16 */
    fm__shape_tiles(LANES);
    transpose_weights(weights, p, whole);
    interleave(tokens[0], row, whole, 0);
    for (int at = 0, now = 0; at < width; at += COLUMNS, now = !now) {
        if (at + COLUMNS < width) interleave(tokens[!now], row, whole, at + COLUMNS);
        multiply(&sum[now], weights, tokens[now], whole);
        if (at) store_sums(z + at - COLUMNS, &sum[!now], width);
    }
    store_sums(z + width - COLUMNS, &sum[(width / COLUMNS + 1) % 2], width);
}
