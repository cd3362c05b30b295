/* SPDX-License-Identifier: Apache-2.0 */
/* FP8 and INT4 panels times 17 to 128 rows on AMX tiles: blocks of 16 rows take a pass of 256 k
 * before the next pass, and the first of them widens it.  Steps and slices are those of
 * gemm_quant_amx.c; for more rows gemm_fp8_many_amx.c and gemm_int4_many_amx.c are faster. */
#include <immintrin.h>

#include "llm/kernel/gemm/gemm_internal.h"
#include "llm/kernel/gemm/listener_amx.h"
#include "llm/kernel/gemm/widen_amx.h"
#include "llm/kernel/tiles_amx.h"

#define INLINE static inline __attribute__((always_inline))

enum {
    ROWS     = FM__TILE_ROWS, /* of a block */
    DEPTH    = FM__STEP_K,
    AHEAD    = 2, /* steps between widening and use */
    PASS     = 8, /* steps that all blocks take before the next */
    RING     = PASS + AHEAD,
    PREFETCH = 16384, /* bytes between widening and prefetching */
};

/* The steps of a panel, widened one by one; step s lies at ring[s % RING]. */
typedef struct {
    fm_dtype    type;
    const char *panel;
    int         next, end;
    _Alignas(64) char ring[RING][FM__STEP_WIDE];
} widening;

INLINE int step_bytes(fm_dtype type) { return type == FM_FP8 ? FM__STEP_FP8 : FM__STEP_INT4; }

static void widen_next(widening *v)
{
    if (v->next == v->end) return;
    char       *to   = v->ring[v->next % RING];
    const char *from = v->panel + (size_t)v->next * (size_t)step_bytes(v->type);
    if (v->type == FM_FP8)
        fm__widen_step_fp8(to, from, PREFETCH);
    else
        fm__widen_step_int4(to, from, PREFETCH);
    v->next++;
}

/* A block's sums over one slice that are not yet in c: what a tile store wrote is best read some
 * time later.  Each step of the next slice takes a few rows along. */
typedef struct {
    float       *c;
    const float *part;
    __m512       scale[2];  /* of either half */
    int          row, rows; /* the next one, all */

    const float *const *x_scale; /* of the rows, or NULL */
    int                 slice;
} pending;

/* Where the scales of the slice at step s are: FP8 has one for each half, INT4 one for each output,
 * behind the weights of the step. */
INLINE void read_scales(__m512 to[2], const widening *v, const float *scale, int s)
{
    const char *at = v->panel + (size_t)(s + 1) * FM__STEP_INT4 - FM_PANEL * 2;
    for (int h = 0; h < 2; h++)
        to[h] = v->type == FM_FP8
                    ? _mm512_set1_ps(fm__scale_of_wide(scale[s * DEPTH / FM__SCALE_K * 2 + h]))
                    : fm__scales_of_group(at + h * FM__HALF * 2);
}

/* c[row, 32] += scale * part for the next n rows */
static inline void settle(pending *a, int n)
{
    const int end = fm__least(a->row + n, a->rows);
    for (; a->row < end; a->row++) {
        const __m512 by = _mm512_set1_ps(fm__factor_of_row(a->x_scale, a->row, a->slice));
#pragma GCC unroll 2
        for (int h = 0; h < 2; h++) {
            const int    at  = a->row * FM_PANEL + h * FM__HALF;
            const __m512 sum = _mm512_loadu_ps(a->c + at), p = _mm512_loadu_ps(a->part + at);
            _mm512_storeu_ps(a->c + at, _mm512_fmadd_ps(_mm512_mul_ps(by, a->scale[h]), p, sum));
        }
    }
}

/* The rows of a block. */
typedef struct {
    const void *const *x;
    int                even;   /* at equal distances */
    int                widens; /* the steps of this pass are widened meanwhile */
} block;

/* part[16, 32] = the block's k of n steps from step s on, times their weights. */
INLINE void multiply_slice(float *part, const block *b, int s, int n, widening *v, pending *last)
{
    fm__gathered          g;
    const fm__tile_source x = b->even ? fm__even_rows(b->x, ROWS, s * DEPTH)
                                      : fm__tile_rows(&g, b->x, ROWS, s * DEPTH, n * DEPTH);
    _tile_zero(0);
    _tile_zero(1);
    for (int t = 0; t < n; t++) {
        const char *at = x.base + t * DEPTH * 2, *with = v->ring[(s + t) % RING];
        if (b->widens) widen_next(v);
        fm__memory_is_written();
        fm__add_passing(at, x.stride, with);
        settle(last, ROWS / fm__steps_of_slice(v->type));
    }
    settle(last, ROWS);
    _tile_stored(0, part, FM_PANEL * 4);
    _tile_stored(1, part + FM__HALF, FM_PANEL * 4);
}

INLINE void multiply(fm_dtype type, float *c, const void *const *x, const float *const *x_scale,
                     const void *w, const float *scale, int m, int k, fm__listener l)
{
    const int          slice = fm__steps_of_slice(type), n_step = k / DEPTH;
    const int          even = fm__evenly_spaced(x, m);
    _Alignas(64) float part[2][ROWS * FM_PANEL];
    pending            last = {.rows = 0};
    int                now = 0;
    widening           v; /* its ring is not cleared */
    v.type = type, v.panel = w, v.next = 0, v.end = n_step;
    fm__shape_tiles(ROWS);
    memset(c, 0, (size_t)m * FM_PANEL * sizeof *c);
    for (int i = 0; i < AHEAD; i++) widen_next(&v);
    for (int s = 0; s < n_step; s += PASS)
        for (int i = 0; i < m; i += ROWS) {
            const int   at  = fm__least(i, m - ROWS); /* the last block computes some rows again */
            const int   end = fm__least(s + PASS, n_step);
            const block b   = {x + at, even, i == 0};
            for (int t = s; t < end; t += slice, now = !now) {
                multiply_slice(part[now], &b, t, fm__least(slice, end - t), &v, &last);
                last.c       = c + (size_t)i * FM_PANEL;
                last.part    = part[now] + (i - at) * FM_PANEL;
                last.row     = 0;
                last.rows    = fm__least(m - i, ROWS);
                last.x_scale = x_scale ? x_scale + i : NULL;
                last.slice   = t / slice;
                read_scales(last.scale, &v, scale, t);
                if (i && t == s && s + PASS >= n_step) fm__tell(&l, i - ROWS, ROWS);
            }
        }
    fm__memory_is_written();
    settle(&last, ROWS);
    fm__tell(&l, m - last.rows, last.rows);
}

void fm__blocks_fp8_amx(float *restrict c, const void *const *restrict x,
                        const float *const *restrict x_scale, const void *restrict w,
                        const float *restrict scale, int m, int k, fm_rows_done *done, void *ctx)
{
    const fm__listener l = {done, ctx};
    if (x_scale) multiply(FM_FP8, c, x, x_scale, w, scale, m, k, l);
    else multiply(FM_FP8, c, x, NULL, w, scale, m, k, l);
}

void fm__blocks_int4_amx(float *restrict c, const void *const *restrict x,
                         const float *const *restrict x_scale, const void *restrict w,
                         const float *restrict scale, int m, int k, fm_rows_done *done, void *ctx)
{
    (void)x_scale;
    (void)scale;
    multiply(FM_INT4, c, x, NULL, w, NULL, m, k, (fm__listener){done, ctx});
}
