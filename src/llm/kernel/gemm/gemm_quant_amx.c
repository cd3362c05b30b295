/* SPDX-License-Identifier: Apache-2.0 */
/* FP8 and INT4 panels times up to 16 rows on AMX tiles.  A step is 32 k: two products.
 *
 *     panel ──widened two steps ahead──> ring of BF16 steps in L1 ──tile loads──> products
 *
 * A tile load does not forward from the store buffer, it waits until what it reads is in the
 * cache; hence two steps ahead.  Widening one step and multiplying another are independent, so
 * the core runs them side by side.
 *
 * What lies under one scale, a slice of 128 k of FP8 or of 32 k of INT4, is summed by itself in
 * tiles and stored while the next one is summed, then c += scale * sum; quantised rows of x have
 * a factor of their own in each slice of FP8.  gemm_quant_blocks_amx.c and
 * gemm_fp8_many_amx.c, gemm_int4_many_amx.c are for more rows. */
#include <immintrin.h>

#include "llm/kernel/gemm/gemm_internal.h"
#include "llm/kernel/gemm/widen_amx.h"
#include "llm/kernel/tiles_amx.h"

#define INLINE static inline __attribute__((always_inline))

enum {
    ROWS     = FM__TILE_ROWS,
    DEPTH    = FM__STEP_K,
    AHEAD    = 2, /* steps between widening and use */
    RING     = 4, /* steps kept */
    PARTS    = 4, /* slices whose sums are kept */
    PREFETCH = 16384, /* bytes between widening and prefetching */
};

typedef struct {
    const char        *panel;
    const float       *scale;
    const void *const *x;
    const float *const *x_scale; /* or NULL */
    float             *c;
    int                m, even; /* even: rows of x at equal distances */
    int                n_step, n_slice;
    _Alignas(64) char  ring[RING][FM__STEP_WIDE];
    _Alignas(64) float part[PARTS][ROWS * FM_PANEL];
} product;

INLINE void widen(product *p, fm_dtype type, int step)
{
    if (step >= p->n_step) return;
    char *to = p->ring[step % RING];
    if (type == FM_FP8) fm__widen_step_fp8(to, p->panel + (size_t)step * FM__STEP_FP8, PREFETCH);
    else fm__widen_step_int4(to, p->panel + (size_t)step * FM__STEP_INT4, PREFETCH);
}

/* Slices take pairs of tiles in turn.  The sums of one are stored during the next for FP8, which
 * has four steps in a slice, and two slices later for INT4, which has one. */
INLINE int pairs_of(fm_dtype type) { return type == FM_FP8 ? 2 : FM__TILE_PAIRS; }

INLINE void store_slice(product *p, fm_dtype type, int slice)
{
    if (slice < 0 || slice >= p->n_slice) return;
    fm__store_pair(slice % pairs_of(type), p->part[slice % PARTS]);
}

/* The products of a slice; `due`: the one whose sums are stored meanwhile. */
INLINE void multiply_slice(product *p, fm_dtype type, int slice, int due)
{
    fm__gathered g;
    const int    pair = slice % pairs_of(type), s = slice * fm__steps_of_slice(type);
    const int    n    = fm__least(fm__steps_of_slice(type), p->n_step - s);
    const fm__tile_source x = p->even ? fm__even_rows(p->x, p->m, s * DEPTH)
                                      : fm__tile_rows(&g, p->x, p->m, s * DEPTH, n * DEPTH);
    fm__clear_pair(pair);
    for (int t = 0; t < n; t++) {
        widen(p, type, s + t + AHEAD);
        fm__memory_is_written();
        fm__add_to(pair, x.base + t * DEPTH * 2, x.stride, p->ring[(s + t) % RING]);
        if (t == fm__least(n, 2) - 1) store_slice(p, type, due);
    }
}

/* The scale of one half: FP8 has one, INT4 one for each output, behind the weights of a step. */
INLINE __m512 scale_of(const product *p, fm_dtype type, int slice, int h)
{
    const char *group = p->panel + (size_t)slice * FM__STEP_INT4;
    return type == FM_FP8 ? _mm512_set1_ps(fm__scale_of_wide(p->scale[slice * 2 + h]))
                          : fm__scales_of_group(fm__group_scales(group) + h * FM__HALF);
}

/* c[m, 32] += scale * sums of a slice, which were stored some time ago. */
INLINE void settle(product *p, fm_dtype type, int slice)
{
    if (slice < 0) return;
    const __m512 scale[2] = {scale_of(p, type, slice, 0), scale_of(p, type, slice, 1)};
    const float *part     = p->part[slice % PARTS];
    for (int i = 0; i < p->m; i++) {
        const __m512 by = _mm512_set1_ps(fm__factor_of_row(p->x_scale, i, slice));
#pragma GCC unroll 2
        for (int h = 0; h < 2; h++) {
            float *at = p->c + i * FM_PANEL + h * FM__HALF;
            _mm512_storeu_ps(at, _mm512_fmadd_ps(_mm512_mul_ps(by, scale[h]),
                                                 _mm512_load_ps(part + i * FM_PANEL + h * FM__HALF),
                                                 _mm512_loadu_ps(at)));
        }
    }
}

INLINE void multiply(fm_dtype type, float *c, const void *const *x, const float *const *x_scale,
                     const void *w, const float *scale, int m, int k)
{
    const int later = pairs_of(type) - 1;
    product   p; /* neither ring nor sums are cleared */
    p.panel = w, p.scale = scale, p.x = x, p.x_scale = x_scale, p.c = c, p.m = m;
    p.even = fm__evenly_spaced(x, m), p.n_step = k / DEPTH;
    p.n_slice = (p.n_step + fm__steps_of_slice(type) - 1) / fm__steps_of_slice(type);
    fm__shape_tiles(m);
    memset(c, 0, (size_t)m * FM_PANEL * sizeof *c);
    for (int s = 0; s < AHEAD; s++) widen(&p, type, s);
    for (int i = 0; i < p.n_slice; i++) {
        multiply_slice(&p, type, i, i - later);
        settle(&p, type, i - later - 1);
    }
    for (int i = p.n_slice; i <= p.n_slice + later; i++) {
        if (i < p.n_slice + later) store_slice(&p, type, i - later);
        fm__memory_is_written();
        settle(&p, type, i - later - 1);
    }
}

INLINE void multiply_fp8(float *c, const void *const *x, const float *const *x_scale, const void *w,
                         const float *scale, int m, int k, fm_rows_done *done, void *ctx)
{
    if (m > ROWS) {
        fm_gemm_telling_fn *blocks = m > FM__BLOCKS_MOST ? fm__many_fp8_amx : fm__blocks_fp8_amx;
        blocks(c, x, x_scale, w, scale, m, k, done, ctx);
        return;
    }
    multiply(FM_FP8, c, x, x_scale, w, scale, m, k);
    if (done) done(ctx, 0, m);
}

INLINE void multiply_int4(float *c, const void *const *x, const void *w, int m, int k,
                          fm_rows_done *done, void *ctx)
{
    if (m > ROWS) {
        fm_gemm_telling_fn *blocks = m > FM__BLOCKS_MOST ? fm__many_int4_amx : fm__blocks_int4_amx;
        blocks(c, x, NULL, w, NULL, m, k, done, ctx);
        return;
    }
    if (m == 1) fm__gemm_int4_one_amx(c, x[0], w, k);
    else if (m <= FM__INT4_FEW) fm__gemm_int4_few_amx(c, x, w, m, k);
    else multiply(FM_INT4, c, x, NULL, w, NULL, m, k);
    if (done) done(ctx, 0, m);
}

void fm__gemm_fp8_amx(float *restrict c, const void *const *restrict x, const void *restrict w,
                      const float *restrict scale, int m, int k)
{
    multiply_fp8(c, x, NULL, w, scale, m, k, NULL, NULL);
}

void fm__gemm_scaled_amx(float *restrict c, const void *const *restrict x,
                         const float *const *restrict x_scale, const void *restrict w,
                         const float *restrict scale, int m, int k)
{
    multiply_fp8(c, x, x_scale, w, scale, m, k, NULL, NULL);
}

void fm__telling_fp8_amx(float *restrict c, const void *const *restrict x,
                         const float *const *restrict x_scale, const void *restrict w,
                         const float *restrict scale, int m, int k, fm_rows_done *done, void *ctx)
{
    multiply_fp8(c, x, x_scale, w, scale, m, k, done, ctx);
}

void fm__gemm_int4_amx(float *restrict c, const void *const *restrict x, const void *restrict w,
                       const float *restrict scale, int m, int k)
{
    (void)scale;
    multiply_int4(c, x, w, m, k, NULL, NULL);
}

void fm__telling_int4_amx(float *restrict c, const void *const *restrict x,
                          const float *const *restrict x_scale, const void *restrict w,
                          const float *restrict scale, int m, int k, fm_rows_done *done, void *ctx)
{
    (void)x_scale;
    (void)scale;
    multiply_int4(c, x, w, m, k, done, ctx);
}
