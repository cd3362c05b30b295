/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of up to 16 rows x 32 words in the first four tiles of tiles_amx.h, 64 k at a time: TDPBUSD
 * multiplies a tile of bytes in the 16 cycles that TDPBF16PS takes for half as many numbers.  The last
 * rows are covered by a block that begins 16 rows before the end. */
#include <immintrin.h>

#include "llm/kernel/draft_head/draft_head.h"
#include "llm/kernel/tiles_amx.h"

enum {
    ROWS  = FM__TILE_ROWS,
    HALF  = FM_PANEL / 2,
    DEPTH = 64, /* k of a product */
    FEW   = 4,  /* rows that AVX-512 multiplies as fast as their words come from memory */
    LINE  = 64,
    AHEAD = 8192, /* bytes between reading and prefetching */
};

typedef struct {
    _Alignas(64) int32_t of[ROWS][FM_PANEL];
} sums;

static void multiply(sums *s, fm__tile_source q, const int8_t *w, int k)
{
    fm__memory_is_written();
    _tile_zero(0);
    _tile_zero(1);
    for (int p = 0; p < k; p += DEPTH, w += DEPTH * FM_PANEL) {
        _tile_loadd(2, q.base + p, q.stride);
        _tile_loadd(3, w, 2 * LINE);
        _tile_dpbusd(0, 2, 3);
        _tile_loadd(3, w + LINE, 2 * LINE);
        _tile_dpbusd(1, 2, 3);
        _tile_zero(3);
        _tile_zero(2);
        for (int line = 0; line < DEPTH * FM_PANEL; line += LINE)
            _mm_prefetch((const char *)w + AHEAD + line, _MM_HINT_T1);
    }
    _tile_stored(0, s->of[0], sizeof s->of[0]);
    _tile_stored(1, s->of[0] + HALF, sizeof s->of[0]);
    fm__memory_is_written();
}

static void scale_row(float *c, const int32_t *sum, float row_scale, const fm_draft_words *of)
{
    for (int j = 0; j < FM_PANEL; j += HALF) {
        const __m512i shift = _mm512_loadu_si512(of->shift + j);
        const __m512i exact = _mm512_sub_epi32(_mm512_load_si512(sum + j), shift);
        const __m512  scale = _mm512_mul_ps(_mm512_loadu_ps(of->scale + j), _mm512_set1_ps(row_scale));
        _mm512_storeu_ps(c + j, _mm512_mul_ps(_mm512_cvtepi32_ps(exact), scale));
    }
}

/* A panel times m rows, the first of which begins at q. */
static void one_panel(float *c, fm__tile_source q, const float *row_scale, const fm_draft_head *h,
                      int panel, int m)
{
    const int8_t *w    = h->panel + (size_t)panel * fm_draft_panel_bytes(h->k);
    const int     rows = m < ROWS ? m : ROWS;
    sums          s;
    for (int i = 0; i < m; i += ROWS) {
        const int at = i + rows <= m ? i : m - rows;
        multiply(&s, (fm__tile_source){q.base + at * q.stride, q.stride}, w, h->k);
        for (int r = 0; r < rows; r++)
            scale_row(c + (size_t)(at + r) * FM_PANEL, s.of[r], row_scale[at + r], &h->words[panel]);
    }
}

void fm__draft_head_amx(float *restrict c, const uint8_t *const *restrict q,
                        const float *restrict row_scale, const fm_draft_head *h, int first, int n,
                        int m)
{
    const void *const *row = (const void *const *)q;
    if (m <= FEW || h->k % DEPTH || !fm__evenly_spaced(row, m)) {
        fm__draft_head_avx512(c, q, row_scale, h, first, n, m);
        return;
    }
    fm__shape_tiles(m < ROWS ? m : ROWS);
    for (int p = 0; p < n; p++, c += (size_t)m * FM_PANEL)
        one_panel(c, fm__even_rows(row, m, 0), row_scale, h, first + p, m);
}
