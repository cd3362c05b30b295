/* SPDX-License-Identifier: Apache-2.0 */
/* FP8 panels on AMX tiles.  Weights are widened to BF16 into a ring of steps of 32 k that stays
 * in L1, a few steps before the tiles load them: a tile load does not forward from the store
 * buffer, it waits until what it reads is in the cache.  The widening of one step and the
 * products of another are independent, so the core runs them side by side; with many rows the
 * first block of 16 widens and the others find the weights there.
 *
 * Each 128 of k are summed by themselves in tiles, then c += scale * sum. */
#include <immintrin.h>

#include "llm/kernel/gemm/gemm_internal.h"
#include "llm/kernel/tiles_amx.h"

enum {
    ROWS     = FM__TILE_ROWS,         /* of a block */
    DEPTH    = 32,                    /* k of a step */
    STEP     = DEPTH * FM_PANEL * 2,  /* bytes of a widened step */
    STORED   = DEPTH * FM_PANEL,      /* its bytes in the panel */
    SLICE    = FM__SCALE_K / DEPTH,   /* steps under one scale */
    RING     = 2 * SLICE,             /* steps kept: a slice, and what is widened ahead */
    AHEAD    = 2,                     /* steps between widening and use */
    PREFETCH = 8 * STORED,            /* bytes between widening and prefetching */
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
    const __mmask64 tiny     = _mm512_testn_epi8_mask(b, _mm512_set1_epi8(0x78));

    __m512i lo = _mm512_gf2p8affine_epi64_epi8(b, lower, 0);
    __m512i hi = _mm512_gf2p8affine_epi64_epi8(b, upper, 0);
    lo = _mm512_mask_permutexvar_epi8(lo, tiny, b, tiny_lower);
    hi = _mm512_or_si512(hi, _mm512_mask_permutexvar_epi8(exponent, tiny, b, tiny_upper));
    lo = _mm512_shldi_epi16(lo, lo, 8);
    return (pair_row){
        {_mm512_shldi_epi16(hi, lo, 8), _mm512_ternarylogic_epi32(odd, hi, lo, 0xca)}};
}

/* 16 rows of 64 bytes to 16 lines of 128, which are two tiles side by side. */
static inline void widen_step(char *to, const char *w)
{
#pragma GCC unroll 16
    for (int p = 0; p < 16; p++) {
        const pair_row r = widen_row(_mm512_loadu_si512(w + p * 64));
        _mm512_store_si512(to + p * 128, r.half[0]);
        _mm512_store_si512(to + p * 128 + 64, r.half[1]);
    }
}

typedef struct {
    const char *panel;
    int         next, end; /* step to be widened next, steps of the panel */
    _Alignas(64) char ring[RING][STEP];
} widening;

static void widen_next(widening *v)
{
    if (v->next >= v->end) return;
    const char *from = v->panel + (size_t)v->next * STORED;
    for (int i = 0; i < STORED; i += 64) _mm_prefetch(from + PREFETCH + i, _MM_HINT_T0);
    widen_step(v->ring[v->next++ % RING], from);
}

/* Sums of a block over one slice that are not yet in c: what a tile store wrote is best read
 * some time later. */
typedef struct {
    float       *c;
    const float *part, *scale;
    int          rows;
} pending;

/* c[rows, 32] += scale * part, a factor for each half */
static void settle(const pending *a)
{
    const __m512 s0 = _mm512_set1_ps(fm__scale_of_wide(a->scale[0]));
    const __m512 s1 = _mm512_set1_ps(fm__scale_of_wide(a->scale[1]));
    float       *c  = a->c;
    const float *p  = a->part;
    fm__memory_is_written();
    for (int i = 0; i < a->rows; i++, c += FM_PANEL, p += FM_PANEL) {
        const __m512 c0 = _mm512_loadu_ps(c), c1 = _mm512_loadu_ps(c + FM__HALF);
        _mm512_storeu_ps(c, _mm512_fmadd_ps(s0, _mm512_loadu_ps(p), c0));
        _mm512_storeu_ps(c + FM__HALF, _mm512_fmadd_ps(s1, _mm512_loadu_ps(p + FM__HALF), c1));
    }
}

/* Rows [at, at + rows) of x times n steps of the ring from step s on, to part[rows, 32]. */
static void multiply_slice(float *part, const void *const *x, int rows, int s, int n, widening *v,
                           int widens)
{
    fm__gathered          g;
    const fm__tile_source from = fm__tile_rows(&g, x, rows, s * DEPTH, n * DEPTH);
    _tile_zero(0);
    _tile_zero(1);
    for (int t = 0; t < n; t++) {
        if (widens) widen_next(v);
        fm__memory_is_written();
        fm__add_pair(from.base + t * DEPTH * 2, from.stride, v->ring[(s + t) % RING]);
    }
    _tile_stored(0, part, FM_PANEL * 4);
    _tile_stored(1, part + FM__HALF, FM_PANEL * 4);
}

void fm__gemm_fp8_amx(float *restrict c, const void *const *restrict x, const void *restrict w,
                      const float *restrict scale, int m, int k)
{
    const int          n_step = k / DEPTH, rows = fm__least(m, ROWS);
    _Alignas(64) float part[2][ROWS * FM_PANEL];
    pending            last = {c, part[0], scale, 0};
    int                turn = 0;
    widening           v    = {.panel = w, .end = n_step};
    fm__shape_tiles(rows);
    memset(c, 0, (size_t)m * FM_PANEL * sizeof *c);
    for (int i = 0; i < AHEAD; i++) widen_next(&v);
    for (int s = 0; s < n_step; s += SLICE, scale += 2)
        for (int i = 0; i < m; i += ROWS, turn = !turn) {
            const int at = fm__least(i, m - rows); /* the last block computes some rows again */
            multiply_slice(part[turn], x + at, rows, s, fm__least(SLICE, n_step - s), &v, i == 0);
            settle(&last);
            last = (pending){c + (size_t)i * FM_PANEL, part[turn] + (size_t)(i - at) * FM_PANEL,
                             scale, fm__least(m - i, ROWS)};
        }
    settle(&last);
}
