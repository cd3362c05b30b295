/* SPDX-License-Identifier: Apache-2.0 */
/* INT4 panels on AMX tiles for up to 4 rows.  Every 32 k have scales of their own, so their sums
 * must leave the tiles one by one, and storing tiles after each step would take longer than the
 * products.  Few rows leave room: the sums of up to 16 steps lie in one tile, below each other.
 *
 *     tile of x for step t of a round     rows t*m ... t*m + m - 1 are x, the others are zeros
 *     sums += x times the step's weights  only these rows change
 *
 * A row of sums is 0 + x w whatever is added to it in other steps, which is 0: the bits are those
 * of gemm_quant_amx.c.  Zeros are kept between calls in memory of the thread; x is copied into them
 * two steps ahead, weights are widened two steps ahead, and sums of a round reach c during the
 * next. */
#include <immintrin.h>

#include "llm/kernel/gemm/gemm_internal.h"
#include "llm/kernel/gemm/widen_amx.h"
#include "llm/kernel/tiles_amx.h"

enum {
    ROWS     = FM__TILE_ROWS,
    DEPTH    = FM__STEP_K,
    LINE     = 64,
    AHEAD    = 2,
    RING     = 4,
    SLOTS    = ROWS, /* steps of a round, at most */
    LINES    = ROWS * SLOTS + ROWS,
    PREFETCH = 8192, /* bytes between widening and prefetching */
};

/* x of slot t is at line 16 t + 15; 15 lines of zeros lie between slots, so that each can be any
 * rows of a tile. */
typedef struct {
    _Alignas(64) char line[LINES][LINE];
    int width; /* lines of a slot that are not zeros */
} stage;

static _Thread_local stage staged;

typedef struct {
    float             *c;
    const void *const *x;
    const char        *panel;
    int                m, n_step;
    int                width, slots; /* rows of a slot: 1, 2 or 4; slots of a round */
    stage             *stage;
    _Alignas(64) char ring[RING][FM__STEP_WIDE];
    _Alignas(64) float part[2][ROWS * FM_PANEL]; /* sums of the last round and the one before */
} product;

static char *slot_at(const product *p, int step)
{
    return p->stage->line[step % p->slots * ROWS + ROWS - 1];
}

static void stage_rows(const product *p, int step)
{
    char *to = slot_at(p, step);
    if (step >= p->n_step) return;
    for (int i = 0; i < p->m; i++)
        _mm512_store_si512(to + i * LINE, _mm512_loadu_si512((const char *)p->x[i] + step * LINE));
}

static inline __attribute__((always_inline)) void widen(product *p, int step)
{
    if (step < p->n_step)
        fm__widen_step_int4(p->ring[step % RING], p->panel + (size_t)step * FM__STEP_INT4,
                            PREFETCH);
}

/* c[m, 32] += scale * what step `step` left in the sums of its round */
static void settle(const product *p, int step)
{
    const fm_bf16 *scale = fm__group_scales(fm__group_at(p->panel, step * DEPTH));
    const __m512   s[2]  = {fm__scales_of_group(scale), fm__scales_of_group(scale + FM__HALF)};
    const int      round = step / p->slots, row0 = step % p->slots * p->width;
    const float   *part = p->part[round % 2] + row0 * FM_PANEL;
    for (int i = 0; i < p->m * FM_PANEL; i += FM_PANEL)
#pragma GCC unroll 2
        for (int h = 0; h < 2; h++) {
            const int    at  = i + h * FM__HALF;
            const __m512 sum = _mm512_loadu_ps(p->c + at), a = _mm512_loadu_ps(part + at);
            _mm512_storeu_ps(p->c + at, _mm512_fmadd_ps(s[h], a, sum));
        }
}

static void multiply(product *p)
{
    for (int s = 0; s < p->n_step; s++) {
        const int slot = s % p->slots;
        if (slot == 0) {
            _tile_zero(0);
            _tile_zero(1);
        }
        widen(p, s + AHEAD);
        fm__memory_is_written();
        fm__add_pair(slot_at(p, s) - slot * p->width * LINE, LINE, p->ring[s % RING]);
        stage_rows(p, s + AHEAD);
        if (s >= p->slots) settle(p, s - p->slots);
        if (slot == p->slots - 1 || s == p->n_step - 1) {
            float *part = p->part[s / p->slots % 2];
            _tile_stored(0, part, FM_PANEL * 4);
            _tile_stored(1, part + FM__HALF, FM_PANEL * 4);
        }
    }
    fm__memory_is_written();
    for (int s = p->n_step > p->slots ? p->n_step - p->slots : 0; s < p->n_step; s++) settle(p, s);
}

void fm__gemm_int4_few_amx(float *restrict c, const void *const *restrict x, const void *restrict w,
                           int m, int k)
{
    product p; /* neither ring nor sums are cleared */
    p.c = c, p.x = x, p.panel = w, p.m = m, p.n_step = k / DEPTH, p.stage = &staged;
    for (p.width = 1; p.width < m;) p.width *= 2;
    p.slots = ROWS / p.width;
    if (staged.width != p.width) {
        memset(staged.line, 0, sizeof staged.line);
        staged.width = p.width;
    }
    fm__shape_tiles(ROWS);
    memset(c, 0, (size_t)m * FM_PANEL * sizeof *c);
    for (int s = 0; s < AHEAD; s++) {
        stage_rows(&p, s);
        widen(&p, s);
    }
    multiply(&p);
}
