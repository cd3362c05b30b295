/* SPDX-License-Identifier: Apache-2.0 */
/* FP8 panels on AMX tiles.  A step is 32 k: two products of a block of 16 rows.
 *
 *     panel ──widened two steps ahead──> ring of BF16 steps in L1 ──tile loads──> products
 *
 * A tile load does not forward from the store buffer, it waits until what it reads is in the
 * cache; hence two steps ahead.  Widening one step and multiplying another are independent, so
 * the core runs them side by side.  With many rows, all blocks take a pass of 256 k before the
 * next, and the first of them widens it.
 *
 * Each slice of 128 k is summed by itself in tiles, then c += scale * sum. */
#include <immintrin.h>

#include "llm/kernel/gemm/gemm_internal.h"
#include "llm/kernel/tiles_amx.h"

enum {
    ROWS     = FM__TILE_ROWS,        /* of a block */
    DEPTH    = 32,                   /* k of a step */
    STEP     = DEPTH * FM_PANEL * 2, /* bytes of a widened step */
    STORED   = DEPTH * FM_PANEL,     /* its bytes in the panel */
    SLICE    = FM__SCALE_K / DEPTH,  /* steps under one scale */
    AHEAD    = 2,                    /* steps between widening and use */
    PASS     = 2 * SLICE,            /* steps that all blocks take before the next */
    RING     = PASS + AHEAD,
    PREFETCH = 8 * STORED, /* bytes between widening and prefetching */
};

/* One pair of k: 16 outputs x 2 k of each half of the panel. */
typedef struct {
    __m512i half[2];
} pair_row;

/* e4m3 to bf16, times 2^8, for 64 bytes at once: sign, exponent + 128 and m of a number are
 * linear in its bits, which is one multiplication by a matrix of bits for the lower bytes of the
 * results and one for the upper.  Numbers without exponent are m * 2^-9 and are looked up by m.
 * Even bytes are the first half of the panel, odd bytes the second. */
static inline pair_row widen_row(__m512i b)
{
    const __m512i   lower      = _mm512_set1_epi64(0x0000000001020408);
    const __m512i   upper      = _mm512_set1_epi64(0x1020400000000080);
    const __m512i   tiny_lower = _mm512_set1_epi64(0x60402000c0800000);
    const __m512i   tiny_upper = _mm512_set1_epi64(0x404040403f3f3f00);
    const __m512i   exponent = _mm512_set1_epi8(0x40), odd = _mm512_set1_epi16((short)0xff00);
    const __mmask64 tiny = _mm512_testn_epi8_mask(b, _mm512_set1_epi8(0x78));

    __m512i lo = _mm512_gf2p8affine_epi64_epi8(b, lower, 0);
    __m512i hi = _mm512_gf2p8affine_epi64_epi8(b, upper, 0);
    lo         = _mm512_mask_permutexvar_epi8(lo, tiny, b, tiny_lower);
    hi         = _mm512_or_si512(hi, _mm512_mask_permutexvar_epi8(exponent, tiny, b, tiny_upper));
    lo         = _mm512_shldi_epi16(lo, lo, 8);
    return (pair_row){
        {_mm512_shldi_epi16(hi, lo, 8), _mm512_ternarylogic_epi32(odd, hi, lo, 0xca)}};
}

/* 16 rows of 64 bytes to 16 lines of 128, which are two tiles side by side. */
static inline void widen_step(char *to, const char *w)
{
#pragma GCC unroll 16
    for (int p = 0; p < 16; p++) {
        const pair_row r = widen_row(_mm512_loadu_si512(w + p * 64));
        _mm_prefetch(w + p * 64 + PREFETCH, _MM_HINT_T0);
        _mm512_store_si512(to + p * 128, r.half[0]);
        _mm512_store_si512(to + p * 128 + 64, r.half[1]);
    }
}

/* The steps of a panel, widened one by one; step s lies at ring[s % slots]. */
typedef struct {
    const char *panel;
    int         next, end, slots;
    _Alignas(64) char ring[RING][STEP];
} widening;

static void widen_next(widening *v)
{
    if (v->next == v->end) return;
    widen_step(v->ring[v->next % v->slots], v->panel + (size_t)v->next * STORED);
    v->next++;
}

/* A block's sums over one slice that are not yet in c: what a tile store wrote is best read some
 * time later.  Each step of the next slice takes a few rows along. */
typedef struct {
    float       *c;
    const float *part;
    __m512       scale[2];  /* of either half */
    int          row, rows; /* the next one, all */
} pending;

static pending pending_of(float *c, const float *part, const float *scale, int rows)
{
    return (pending){.c     = c,
                     .part  = part,
                     .scale = {_mm512_set1_ps(fm__scale_of_wide(scale[0])),
                               _mm512_set1_ps(fm__scale_of_wide(scale[1]))},
                     .rows  = rows};
}

/* c[row, 32] += scale * part for the next n rows */
static inline void settle(pending *a, int n)
{
    const int end = fm__least(a->row + n, a->rows);
    for (; a->row < end; a->row++)
#pragma GCC unroll 2
        for (int h = 0; h < 2; h++) {
            const int    at  = a->row * FM_PANEL + h * FM__HALF;
            const __m512 sum = _mm512_loadu_ps(a->c + at), p = _mm512_loadu_ps(a->part + at);
            _mm512_storeu_ps(a->c + at, _mm512_fmadd_ps(a->scale[h], p, sum));
        }
}

/* The rows of a block. */
typedef struct {
    const void *const *x;
    int                rows, even; /* even: at equal distances */
    int                widens;     /* the steps of this pass are widened meanwhile */
    int                passing;    /* there are more blocks: weights are to stay in L1, rows not */
} block;

/* part[rows, 32] = the block's k of n steps from step s on, times their weights. */
static void multiply_slice(float *part, const block *b, int s, int n, widening *v, pending *last)
{
    fm__gathered          g;
    const fm__tile_source x = b->even ? fm__even_rows(b->x, b->rows, s * DEPTH)
                                      : fm__tile_rows(&g, b->x, b->rows, s * DEPTH, n * DEPTH);
    _tile_zero(0);
    _tile_zero(1);
    for (int t = 0; t < n; t++) {
        const char *at = x.base + t * DEPTH * 2, *with = v->ring[(s + t) % v->slots];
        if (b->widens) widen_next(v);
        fm__memory_is_written();
        if (b->passing)
            fm__add_passing(at, x.stride, with);
        else
            fm__add_pair(at, x.stride, with);
        settle(last, ROWS / SLICE);
    }
    settle(last, ROWS);
    _tile_stored(0, part, FM_PANEL * 4);
    _tile_stored(1, part + FM__HALF, FM_PANEL * 4);
}

void fm__gemm_fp8_amx(float *restrict c, const void *const *restrict x, const void *restrict w,
                      const float *restrict scale, int m, int k)
{
    const int n_step = k / DEPTH, rows = fm__least(m, ROWS), even = fm__evenly_spaced(x, m);
    const int pass = m > ROWS ? PASS : SLICE;
    _Alignas(64) float part[2][ROWS * FM_PANEL];
    pending            last = {.rows = 0};
    int                turn = 0;
    widening           v; /* its ring is not cleared */
    v.panel = w, v.next = 0, v.end = n_step, v.slots = m > ROWS ? RING : SLICE;
    fm__shape_tiles(rows);
    memset(c, 0, (size_t)m * FM_PANEL * sizeof *c);
    for (int i = 0; i < AHEAD; i++) widen_next(&v);
    for (int s = 0; s < n_step; s += pass)
        for (int i = 0; i < m; i += ROWS) {
            const int   at  = fm__least(i, m - rows); /* the last block computes some rows again */
            const int   end = fm__least(s + pass, n_step);
            const block b   = {x + at, rows, even, i == 0, m > ROWS};
            for (int t = s; t < end; t += SLICE, turn = !turn) {
                multiply_slice(part[turn], &b, t, fm__least(SLICE, end - t), &v, &last);
                last = pending_of(c + (size_t)i * FM_PANEL, part[turn] + (i - at) * FM_PANEL,
                                  scale + t / SLICE * 2, fm__least(m - i, ROWS));
            }
        }
    fm__memory_is_written();
    settle(&last, ROWS);
}
