/* SPDX-License-Identifier: Apache-2.0 */
/* INT4 panels times more than 128 rows on AMX tiles.  A step is 32 k of a block of 16 rows.
 *
 *     panel ──widened──> ring of two passes in L1 ──tile loads──> products ──> sums of slices ──> c
 *
 * All blocks take a pass of k before the next one.  Each step of all blocks but the first widens
 * a few lines of the next pass, so that products do not wait for weights; only the first block of
 * all widens its own pass, two steps ahead.
 *
 * Slices (what lies under one scale) are summed by themselves in tiles, as in gemm_quant_amx.c.
 * A pass has several: while a block is multiplied, the sums of the block before it are scaled and
 * added to c, all slices of a row at once, so that c is read and written once in a pass. */
#include <immintrin.h>

#include "llm/kernel/gemm/gemm_internal.h"
#include "llm/kernel/gemm/listener_amx.h"
#include "llm/kernel/gemm/widen_amx.h"
#include "llm/kernel/tiles_amx.h"

#define INLINE static inline __attribute__((always_inline))

enum {
    ROWS     = FM__TILE_ROWS, /* of a block */
    DEPTH    = FM__STEP_K,
    LINE     = 64,
    AHEAD    = 2, /* steps between widening and use in the first block */
    PASS     = 4, /* steps of a pass, each a slice */
    LINES    = 8, /* of a step */
    GROUP    = 4, /* rows whose sums are scaled together */
    RING     = 2 * PASS * FM__STEP_WIDE,
    PREFETCH = 16384, /* bytes between widening and prefetching */
};

/* What all blocks share. */
typedef struct {
    const char        *panel;
    _Alignas(64) char  ring[RING];
    _Alignas(64) float slice_scale[2][PASS][FM_PANEL]; /* of this pass and the one before */
} product;

INLINE char *place_of(product *p, int step)
{
    return p->ring + (size_t)(step % (2 * PASS)) * FM__STEP_WIDE;
}

/* Lines of the panel on their way to the ring.  By itself, so that it stays in registers. */
typedef struct {
    const char *from;
    char       *to;
    int         line, room; /* the next one; how many the ring has room for */
} widening;

INLINE void widen_lines(widening *v, int n)
{
    for (int i = fm__least(n, v->room); i > 0; i--) {
        fm__widen_line_int4(v->to, v->from, PREFETCH);
        v->to += FM__STEP_WIDE / LINES;
        v->from += LINE;
        v->line++;
        v->room--;
        if (v->line % LINES == 0) v->from += LINE; /* scales */
    }
}

/* Lines up to step `end` may be widened now; the next one belongs to step s or one behind it. */
INLINE void make_room(widening *v, product *p, int s, int end)
{
    v->to   = place_of(p, s);
    v->room = end * LINES - v->line;
}

/* A block's sums over the slices of a pass. */
typedef struct {
    float              *c;          /* of the first row that counts */
    const float        *part;       /* its sums over the first slice */
    const float        *scale;      /* [n_slice][FM_PANEL] */
    int                 row, n_row; /* the next one, all that count */
    int                 slice, n_slice;
} pending;

/* The scales of the slices from step s on. */
INLINE float *read_scales(product *p, int s, int n_slice)
{
    float (*to)[FM_PANEL] = p->slice_scale[s / PASS % 2];
    for (int i = 0; i < n_slice; i++)
        for (int h = 0; h < 2; h++) {
            const char *at = p->panel + (size_t)(s + i + 1) * FM__STEP_INT4 - FM_PANEL * 2;
            _mm512_store_ps(to[i] + h * FM__HALF, fm__scales_of_group(at + h * FM__HALF * 2));
        }
    return to[0];
}

/* c[row, 32] += scale * part, slice by slice, for n rows. */
INLINE void settle_rows(pending *a, int n)
{
    const __mmask16 added = a->slice ? 0xffff : 0; /* the first slice begins from zero */
    float          *c     = a->c + (size_t)a->row * FM_PANEL;
    const float    *part  = a->part + (size_t)a->row * FM_PANEL;
#pragma GCC unroll 2
    for (int h = 0; h < FM_PANEL; h += FM__HALF) {
        __m512 sum[GROUP];
        for (int r = 0; r < n; r++) sum[r] = _mm512_maskz_loadu_ps(added, c + r * FM_PANEL + h);
        for (int s = 0; s < a->n_slice; s++) {
            const __m512 scale = _mm512_load_ps(a->scale + s * FM_PANEL + h);
            for (int r = 0; r < n; r++) {
                sum[r] = _mm512_fmadd_ps(
                    scale, _mm512_loadu_ps(part + (s * ROWS + r) * FM_PANEL + h), sum[r]);
            }
        }
        for (int r = 0; r < n; r++) _mm512_storeu_ps(c + r * FM_PANEL + h, sum[r]);
    }
    a->row += n;
}

INLINE void settle(pending *a, int n)
{
    const int end = fm__least(a->row + n, a->n_row);
    while (a->row + GROUP <= end) settle_rows(a, GROUP);
    while (a->row < end) settle_rows(a, 1);
}

/* The sums of a block over n steps from s on, slice by slice.  `lines`: widened in each step. */
INLINE void multiply_block(product *p, float *part, fm__tile_source x, int s, int n,
                           widening *v, int lines, pending *last)
{
    for (int t = 0; t < n; t++) {
        _tile_zero(0);
        _tile_zero(1);
        widen_lines(v, lines);
        fm__memory_is_written();
        fm__add_passing(x.base + t * DEPTH * 2, x.stride, place_of(p, s + t));
        float *to = part + t * ROWS * FM_PANEL;
        _tile_stored(0, to, FM_PANEL * 4);
        _tile_stored(1, to + FM__HALF, FM_PANEL * 4);
        settle(last, GROUP);
    }
    settle(last, ROWS);
}

INLINE void multiply(float *c, const void *const *x, const void *w, int m, int k, fm__listener l)
{
    const int n_block = (m + ROWS - 1) / ROWS, even = fm__evenly_spaced(x, m);
    const int rate    = (LINES + n_block - 2) / (n_block - 1);
    const int n_step = k / DEPTH;
    _Alignas(64) float part[2][PASS * ROWS * FM_PANEL];
    pending            last = {.n_row = 0};
    fm__gathered       g;
    int                now = 0;
    product            p; /* its ring is not cleared */
    widening           v = {.from = w, .line = 0};
    p.panel = w;
    fm__shape_tiles(ROWS);
    make_room(&v, &p, 0, fm__least(2 * PASS, n_step));
    widen_lines(&v, AHEAD * LINES);
    for (int s = 0; s < n_step; s += PASS) {
        const int    n      = fm__least(PASS, n_step - s);
        const float *scales = read_scales(&p, s, n);
        if (s) make_room(&v, &p, s + PASS, fm__least(s + 2 * PASS, n_step));
        for (int i = 0; i < m; i += ROWS, now = !now) {
            const int at = fm__least(i, m - ROWS); /* the last block computes some rows again */
            const fm__tile_source from =
                even ? fm__even_rows(x + at, ROWS, s * DEPTH)
                     : fm__tile_rows(&g, x + at, ROWS, s * DEPTH, n * DEPTH);
            multiply_block(&p, part[now], from, s, n, &v, i ? rate : s ? 0 : LINES, &last);
            if (i && s + PASS >= n_step) fm__tell(&l, i - ROWS, ROWS);
            last = (pending){c + (size_t)i * FM_PANEL, part[now] + (i - at) * FM_PANEL,
                             scales, 0, fm__least(m - i, ROWS), s, n};
        }
    }
    fm__memory_is_written();
    settle(&last, ROWS);
    fm__tell(&l, m - last.n_row, last.n_row);
}

void fm__many_int4_amx(float *restrict c, const void *const *restrict x,
                       const float *const *restrict x_scale, const void *restrict w,
                       const float *restrict scale, int m, int k, fm_rows_done *done, void *ctx)
{
    (void)x_scale;
    (void)scale;
    multiply(c, x, w, m, k, (fm__listener){done, ctx});
}
