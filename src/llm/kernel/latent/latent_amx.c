/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of 16 x 16, 32 products deep:
 *
 *     score [32 tokens, 16 heads] = cached tokens as they lie   x  q
 *     value [16 heads, 32 columns] = p turned to [heads, tokens] x  tokens interleaved
 *
 * q is a row of tiles as it is packed.  Every tile is full, so n changes how
 * many there are and nothing else. */
#include <immintrin.h>

#include "llm/kernel/latent/columns_avx512.h"
#include "llm/kernel/latent/latent_internal.h"
#include "llm/kernel/tiles_amx.h"
#include "llm/kernel/turn_avx512.h"

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

/* 32 tokens meet q; the 32 after them are fetched meanwhile. */
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
            _tile_loadd(6, q, LINE);
            _tile_loadd(4, a.base + d * 2, a.stride);
            _tile_loadd(5, b.base + d * 2, b.stride);
            _tile_dpbf16ps(0, 4, 6);
            _tile_dpbf16ps(1, 5, 6);
            fetch(next, from + d);
        }
    }
    _tile_stored(0, score, LINE);
    _tile_stored(1, score + FM__TILE_ROWS * LANES, LINE);
}

void fm__latent_score_bf16_amx(float *restrict score, const void *restrict q,
                               const void *const *restrict row, int n, int width)
{
    fm__shape_tiles();
    for (int t = 0; t < n; t += FM_LATENT_STEP) {
        const int soon = t + FM_LATENT_STEP < n ? t + FM_LATENT_STEP : t;
        score_step(score + t * LANES, q, row + t, row + soon, width);
    }
    fm__memory_is_written();
}

/* [16 pairs of tokens][16 heads] to [16 heads][16 pairs], step by step */
static void turn_weights(char *to, const char *p, int n)
{
    for (int t = 0; t < n; t += FM_LATENT_STEP, to += TILE, p += TILE) {
        __m512i r[16];
        for (int i = 0; i < 16; i++) r[i] = _mm512_loadu_si512(p + i * LINE);
        fm__turn(r);
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

static void value_columns(float *z, const char *weights, const char *tokens, int n, int width)
{
    _Alignas(64) float sum[2][LANES][16];
    fm__memory_is_written();
    _tile_zero(0);
    _tile_zero(1);
    for (int t = 0; t < n; t += DEPTH, weights += TILE, tokens += 2 * TILE) {
        _tile_loadd(4, weights, LINE);
        _tile_loadd(6, tokens, 2 * LINE);
        _tile_loadd(7, tokens + LINE, 2 * LINE);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
    }
    _tile_stored(0, sum[0], LINE);
    _tile_stored(1, sum[1], LINE);
    fm__memory_is_written();
    for (int h = 0; h < LANES; h++)
        fm__store_columns(z + (size_t)h * (size_t)width, _mm512_load_ps(sum[0][h]),
                          _mm512_load_ps(sum[1][h]));
}

void fm__latent_value_bf16_amx(float *restrict z, const void *restrict p,
                               const void *const *restrict row, int n, int heads, int width)
{
    _Alignas(64) char weights[FM_LATENT_KEYS / DEPTH * TILE];
    _Alignas(64) char tokens[FM_LATENT_KEYS / 2 * 2 * LINE];
    const int         whole = fm__whole_steps(n);
    (void)heads; /* a tile has 16 */
    fm__shape_tiles();
    turn_weights(weights, p, whole);
    for (int at = 0; at < width; at += COLUMNS) {
        interleave(tokens, row, whole, at);
        value_columns(z + at, weights, tokens, whole, width);
    }
}
