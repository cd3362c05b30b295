/* SPDX-License-Identifier: Apache-2.0 */
/* Register tiles of up to 16 sums: four panels of one or two rows, two of up to four, one of up to
 * eight.  VPDPBUSD multiplies four k of 16 words with four broadcast bytes of a row. */
#include <immintrin.h>
#include <string.h>

#include "llm/kernel/draft_head/draft_head.h"

#define INLINE static inline __attribute__((always_inline))

enum { HALF = FM_PANEL / 2, LINE = 64, SUMS = 16 };

typedef struct {
    const uint8_t *const *q;
    const float          *row_scale;
    const fm_draft_head  *h;
    int                   panel; /* the first */
} operands;

typedef void tile_fn(float *c, const operands *o);

INLINE __m512i broadcast(const uint8_t *from)
{
    int32_t four;
    memcpy(&four, from, sizeof four);
    return _mm512_set1_epi32(four);
}

INLINE void add_four(__m512i *sum, const operands *o, const int8_t *w, int k, int panels, int rows)
{
    const size_t step = fm_draft_panel_bytes(o->h->k);
#pragma GCC unroll 4
    for (int p = 0; p < panels; p++) {
        const __m512i w0 = _mm512_load_si512(w + (size_t)p * step);
        const __m512i w1 = _mm512_load_si512(w + (size_t)p * step + LINE);
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++) {
            const __m512i a = broadcast(o->q[i] + k);
            __m512i      *s = sum + (p * rows + i) * 2;

            s[0] = _mm512_dpbusd_epi32(s[0], a, w0);
            s[1] = _mm512_dpbusd_epi32(s[1], a, w1);
        }
    }
}

INLINE void store(float *c, __m512i sum, float row_scale, const fm_draft_words *of, int half)
{
    const __m512i exact = _mm512_sub_epi32(sum, _mm512_loadu_si512(of->shift + half * HALF));
    const __m512  scale = _mm512_mul_ps(_mm512_loadu_ps(of->scale + half * HALF),
                                        _mm512_set1_ps(row_scale));
    _mm512_storeu_ps(c + half * HALF, _mm512_mul_ps(_mm512_cvtepi32_ps(exact), scale));
}

INLINE void run_tile(float *c, const operands *o, int panels, int rows)
{
    const int8_t *w = o->h->panel + (size_t)o->panel * fm_draft_panel_bytes(o->h->k);
    __m512i       sum[SUMS];
#pragma GCC unroll 16
    for (int i = 0; i < panels * rows * 2; i++) sum[i] = _mm512_setzero_si512();
    for (int k = 0; k < o->h->k; k += 8, w += 4 * LINE) {
        add_four(sum, o, w, k, panels, rows);
        add_four(sum, o, w + 2 * LINE, k + 4, panels, rows);
    }
#pragma GCC unroll 16
    for (int i = 0; i < panels * rows * 2; i++)
        store(c + i / 2 * FM_PANEL, sum[i], o->row_scale[i / 2 % rows], &o->h->words[o->panel + i / 2 / rows], i % 2);
}

/* clang-format off */
#define TILES(panels, rows) \
    static void by_##panels##_##rows(float *c, const operands *o) { run_tile(c, o, panels, rows); }
TILES(1, 1) TILES(1, 2) TILES(1, 3) TILES(1, 4) TILES(1, 5) TILES(1, 6) TILES(1, 7) TILES(1, 8)
TILES(2, 1) TILES(2, 2) TILES(2, 3) TILES(2, 4)
TILES(4, 1) TILES(4, 2)

enum { ROWS = 8 };

/* By rows; of one, two and four panels. */
static tile_fn *const tile[ROWS + 1][3] = {
    {0},
    {by_1_1, by_2_1, by_4_1}, {by_1_2, by_2_2, by_4_2}, {by_1_3, by_2_3}, {by_1_4, by_2_4},
    {by_1_5}, {by_1_6}, {by_1_7}, {by_1_8},
};
/* clang-format on */

/* One panel, any number of rows. */
static void many_rows(float *c, operands o, int m)
{
    for (int left = (m + ROWS - 1) / ROWS; left; left--) {
        const int rows = (m + left - 1) / left;
        tile[rows][0](c, &o);
        c += (size_t)rows * FM_PANEL;
        o.q += rows;
        o.row_scale += rows;
        m -= rows;
    }
}

void fm__draft_head_avx512(float *restrict c, const uint8_t *const *restrict q,
                           const float *restrict row_scale, const fm_draft_head *h, int first,
                           int n, int m)
{
    operands o = {.q = q, .row_scale = row_scale, .h = h, .panel = first};
    for (int how; n; n -= 1 << how) {
        how = m <= 2 && n >= 4 ? 2 : m <= 4 && n >= 2;
        if (m > 4) many_rows(c, o, m);
        else tile[m][how](c, &o);
        c += (size_t)(m << how) * FM_PANEL;
        o.panel += 1 << how;
    }
}
