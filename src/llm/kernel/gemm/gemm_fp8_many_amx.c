/* SPDX-License-Identifier: Apache-2.0 */
/* FP8 panels times more than 128 rows on AMX tiles.  A step is 32 k of a block of rows.
 *
 *     panel ──widened──> ring of a pass in L1 ──tile loads──> products ──> sums of slices ──> c
 *
 * All blocks take a pass of k before the next one.  The last block frees the steps it has used, and
 * it and the first block of the next pass widen half a step with each of theirs, so that products
 * wait for weights as little as possible.
 *
 * A block is 32 rows, so that tiles of weights are loaded once for two tiles of rows: 10 % faster
 * than 16 rows.
 *
 * Slices (what lies under one scale) are summed by themselves in tiles, as in gemm_quant_amx.c.
 * While a block is multiplied, the sums of the slices before, those of a chunk, are scaled and
 * added to c, all slices of a row at once, so that c is read and written once in a chunk. */
#include <immintrin.h>

#include "llm/kernel/gemm/gemm_internal.h"
#include "llm/kernel/gemm/listener_amx.h"
#include "llm/kernel/gemm/widen_amx.h"
#include "llm/kernel/tiles_amx.h"

#define INLINE static inline __attribute__((always_inline))

enum {
    ROWS     = FM__TILE_ROWS, /* of a tile */
    HIGH     = 2 * ROWS,      /* of a block, at most */
    DEPTH    = FM__STEP_K,
    LINE     = 64,
    AHEAD    = 2, /* steps between widening and use in the first block */
    PASS     = 8, /* steps that all blocks take before the next */
    RING     = PASS + AHEAD,
    SLICE    = FM__SCALE_K / DEPTH, /* steps of a slice */
    SLICES   = 2,                   /* of a chunk, at most */
    CHUNK    = SLICES * SLICE,
    LINES    = 16, /* of a step */
    PARTS    = 2 * SLICES - 1,
    GROUP    = 4, /* rows whose sums are scaled together */
    PREFETCH = 16384, /* bytes between widening and prefetching */
};

/* What all blocks share.  Of the sums of slices, a chunk's are scaled while the next chunk's first
 * ones are stored. */
typedef struct {
    const char        *panel;
    const float       *scale;
    _Alignas(64) char  ring[RING * FM__STEP_WIDE];
    _Alignas(64) float slice_scale[2][PASS / SLICE][FM_PANEL]; /* of this pass and the one before */
    _Alignas(64) float part[PARTS][HIGH * FM_PANEL];
    int                next_part;
} product;

/* Lines of the panel on their way to the ring.  By itself, so that it stays in registers. */
typedef struct {
    const char *from;
    int         line, end, place; /* the next one and the last of the panel; in the ring */
} widening;

/* Up to line `to` of the panel. */
INLINE void widen_until(widening *v, product *p, int to)
{
    for (to = fm__least(to, v->end); v->line < to; v->line++) {
        fm__widen_line_fp8(p->ring + v->place * 2 * LINE, v->from, PREFETCH);
        v->from += LINE;
        if (++v->place == RING * LINES) v->place = 0;
    }
}

/* A block's sums over the slices of a chunk. */
typedef struct {
    float              *c;            /* of the first row that counts */
    const float        *part[SLICES]; /* its sums over each slice */
    const float *const *x_scale;      /* of that row, or NULL */
    const float        *scale;        /* [n_slice][FM_PANEL] */
    int                 row, n_row;   /* the next one, all that count */
    int                 slice, n_slice;
} pending;

/* The scales of the slices from step s on. */
INLINE float *read_scales(product *p, int s, int n_slice)
{
    float (*to)[FM_PANEL] = p->slice_scale[s / PASS % 2];
    for (int i = 0; i < n_slice; i++)
        for (int h = 0; h < 2; h++) {
            const float by = fm__scale_of_wide(p->scale[(s / SLICE + i) * 2 + h]);
            _mm512_store_ps(to[i] + h * FM__HALF, _mm512_set1_ps(by));
        }
    return to[0];
}

/* c[row, 32] += scale * part, slice by slice, for n rows. */
INLINE void settle_rows(pending *a, int n)
{
    const __mmask16 added = a->slice ? 0xffff : 0; /* the first slice begins from zero */
    const size_t    at    = (size_t)a->row * FM_PANEL;
#pragma GCC unroll 2
    for (int h = 0; h < FM_PANEL; h += FM__HALF) {
        float *c = a->c + at + h;
        __m512 sum[GROUP];
        for (int r = 0; r < n; r++) sum[r] = _mm512_maskz_loadu_ps(added, c + r * FM_PANEL);
        for (int s = 0; s < a->n_slice; s++) {
            const __m512 scale = _mm512_load_ps(a->scale + s * FM_PANEL + h);
            const float *part  = a->part[s] + at + h;
            for (int r = 0; r < n; r++) {
                const __m512 of_row =
                    a->x_scale ? _mm512_set1_ps(a->x_scale[a->row + r][a->slice + s]) : scale;
                const __m512 by = a->x_scale ? _mm512_mul_ps(of_row, scale) : scale;
                sum[r] = _mm512_fmadd_ps(by, _mm512_loadu_ps(part + r * FM_PANEL), sum[r]);
            }
        }
        for (int r = 0; r < n; r++) _mm512_storeu_ps(c + r * FM_PANEL, sum[r]);
    }
    a->row += n;
}

INLINE void settle(pending *a, int n)
{
    const int end = fm__least(a->row + n, a->n_row);
    while (a->row + GROUP <= end) settle_rows(a, GROUP);
    while (a->row < end) settle_rows(a, 1);
}

/* A block's rows, and where it lies among the blocks of a pass. */
typedef struct {
    fm__tile_source x;
    int             high; /* 32 rows; else 16 */
    int             is_first, is_last;
} block;

INLINE void clear_sums(int high)
{
    _tile_zero(0);
    _tile_zero(1);
    if (!high) return;
    _tile_zero(5);
    _tile_zero(6);
}

INLINE void store_sums(float *to, int high)
{
    _tile_stored(0, to, FM_PANEL * 4);
    _tile_stored(1, to + FM__HALF, FM_PANEL * 4);
    if (!high) return;
    _tile_stored(5, to + ROWS * FM_PANEL, FM_PANEL * 4);
    _tile_stored(6, to + ROWS * FM_PANEL + FM__HALF, FM_PANEL * 4);
}

/* Sums of 32 rows += x times 32 k of a panel. */
INLINE void add_high(const char *x, long stride, const char *w)
{
    _tile_stream_loadd(2, x, stride);
    _tile_loadd(3, w, 128);
    _tile_dpbf16ps(0, 2, 3);
    _tile_stream_loadd(7, x + ROWS * stride, stride);
    _tile_dpbf16ps(5, 7, 3);
    _tile_zero(3);
    _tile_loadd(4, w + LINE, 128);
    _tile_dpbf16ps(1, 2, 4);
    _tile_zero(2);
    _tile_dpbf16ps(6, 7, 4);
    _tile_zero(4);
    _tile_zero(7);
}

/* What is widened with step s of the panel, whose pass began at `pass`. */
INLINE void widen_beside(widening *v, product *p, const block *b, int pass, int s)
{
    const int half = v->line + LINES / 2;
    const int free = (b->is_last ? s : pass) + RING; /* the step whose place is not free */
    const int must = b->is_first ? (s + AHEAD + 1) * LINES : 0;
    if (b->is_first || b->is_last)
        widen_until(v, p, fm__least(must > half ? must : half, free * LINES));
}

/* The sums of a block over n steps from s on, slice by slice; part says where they are. */
INLINE void multiply_block(product *p, const float *part[SLICES], const block *b,
                           int pass, int s, int n, widening *v, pending *last)
{
    const int each = HIGH / CHUNK;
    for (int t = 0; t < n; t++) {
        const char *x = b->x.base + t * DEPTH * 2, *w = p->ring + (s + t) % RING * FM__STEP_WIDE;
        if (t % SLICE == 0) clear_sums(b->high);
        widen_beside(v, p, b, pass, s + t);
        fm__memory_is_written();
        if (b->high) add_high(x, b->x.stride, w);
        else fm__add_passing(x, b->x.stride, w);
        settle(last, t == n - 1 ? HIGH : each);
        if (t % SLICE == SLICE - 1 || t == n - 1) {
            float *to       = p->part[p->next_part];
            p->next_part    = (p->next_part + 1) % PARTS;
            part[t / SLICE] = to;
            store_sums(to, b->high);
        }
    }
}

INLINE void multiply(float *c, const void *const *x, const float *const *x_scale,
                     const void *w, const float *scale, int m, int k, fm__listener l)
{
    const int    n_step = k / DEPTH, even = fm__evenly_spaced(x, m);
    fm__gathered g;
    pending      last = {.n_row = 0};
    product      p; /* neither ring nor sums are cleared */
    widening     v    = {.from = w, .end = n_step * LINES};
    int          told = 0;
    p.panel = w, p.scale = scale, p.next_part = 0;
    fm__shape_tiles(ROWS);
    widen_until(&v, &p, AHEAD * LINES);
    for (int pass = 0; pass < n_step; pass += PASS) {
        const int    end    = fm__least(pass + PASS, n_step);
        const float *scales = read_scales(&p, pass, (end - pass + SLICE - 1) / SLICE);
        for (int i = 0, rows; i < m; i += rows) {
            const int high = even && m - i > ROWS;
            rows           = high ? HIGH : ROWS;
            const int at   = fm__least(i, m - rows); /* the last block computes some rows again */
            for (int s = pass; s < end; s += CHUNK) {
                const int    n = fm__least(CHUNK, end - s);
                const block  b = {even ? fm__even_rows(x + at, ROWS, s * DEPTH)
                                       : fm__tile_rows(&g, x + at, ROWS, s * DEPTH, n * DEPTH),
                                  high, i == 0, i + rows >= m};
                const float *part[SLICES];
                multiply_block(&p, part, &b, pass, s, n, &v, &last);
                if (i && s == pass && end == n_step) {
                    fm__tell(&l, told, last.n_row);
                    told += last.n_row;
                }
                last = (pending){.c       = c + (size_t)i * FM_PANEL,
                                 .x_scale = x_scale ? x_scale + i : NULL,
                                 .scale   = scales + (s - pass) / SLICE * FM_PANEL,
                                 .n_row   = fm__least(m - i, rows),
                                 .slice   = s / SLICE,
                                 .n_slice = (n + SLICE - 1) / SLICE};
                for (int q = 0; q < last.n_slice; q++)
                    last.part[q] = part[q] + (size_t)(i - at) * FM_PANEL;
            }
        }
    }
    fm__memory_is_written();
    settle(&last, HIGH);
    fm__tell(&l, told, m - told);
}

void fm__many_fp8_amx(float *restrict c, const void *const *restrict x,
                      const float *const *restrict x_scale, const void *restrict w,
                      const float *restrict scale, int m, int k, fm_rows_done *done, void *ctx)
{
    const fm__listener l = {done, ctx};
    if (x_scale) multiply(c, x, x_scale, w, scale, m, k, l);
    else multiply(c, x, NULL, w, scale, m, k, l);
}
