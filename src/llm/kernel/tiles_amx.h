/* SPDX-License-Identifier: Apache-2.0 */
/* AMX tiles of the kernels: configuration, the roles of the tiles, and gathering 16 rows of
 * bf16 to the constant stride that a tile load needs.
 *
 *     blocks of 16 rows   tmm0 tmm1   sums      tmm2   left operand      tmm3 tmm4   right operands
 *     fewer rows          tmm0 tmm1, tmm4 tmm5, tmm6 tmm7   sums         tmm2 left, tmm3 right
 *
 * Register renaming gives each tile load and each product a new physical tile; a core has about
 * 16 of them, or nine for each of two hyperthreads that both run.  With 32 rows times 32
 * outputs in all eight tiles, instructions would wait for free ones (280 cycles where 64 are
 * needed); a zeroed tile takes none, so few tiles are used and
 * zeroed when done with (125 cycles; 64 where a thread has the core for itself). */
#ifndef FM_LLM_KERNEL_TILES_AMX_H
#define FM_LLM_KERNEL_TILES_AMX_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "base/number.h"

enum {
    FM__TILE_ROWS  = 16,
    FM__TILE_SLICE = 256, /* k that are gathered into L1 at a time */
};

typedef struct {
    uint8_t  palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t  rows[16];
} fm__tile_shapes;

_Static_assert(sizeof(fm__tile_shapes) == 64, "LDTILECFG reads 64 bytes");

/* The compiler does not know which memory the tile instructions read. */
static inline void fm__memory_is_written(void)
{
    __asm__ volatile("" ::: "memory");
}

/* Sums and left operands have `rows` rows, right operands 16.
 * Loading the tile configuration takes ten times as long as reading it.  It belongs to the
 * thread and may be changed without our knowledge (a fork, another library), so it is read
 * and compared at each call. */
static inline void fm__shape_tiles(int rows)
{
    const uint8_t         r    = (uint8_t)rows;
    const fm__tile_shapes want = {
        .palette   = 1,
        .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
        .rows      = {r, r, r, FM__TILE_ROWS, r, r, r, r},
    };
    fm__tile_shapes have;
    _tile_storeconfig(&have);
    fm__memory_is_written();
    if (memcmp(&have, &want, sizeof want) != 0) _tile_loadconfig(&want);
}

/* Of 16 rows: both sums += x, which is in tile 2, times 32 k of a panel, whose two tiles lie line
 * by line beside each other. */
static inline void fm__add_loaded(const char *w)
{
    _tile_loadd(3, w, 128);
    _tile_dpbf16ps(0, 2, 3);
    _tile_zero(3);
    _tile_loadd(4, w + 64, 128);
    _tile_dpbf16ps(1, 2, 4);
    _tile_zero(4);
    _tile_zero(2);
}

static inline void fm__add_pair(const char *x, long stride, const char *w)
{
    _tile_loadd(2, x, stride);
    fm__add_loaded(w);
}

/* The same where x is read once (streaming loads) and w is to stay in L1: 5 to 8 % faster. */
static inline void fm__add_passing(const char *x, long stride, const char *w)
{
    _tile_stream_loadd(2, x, stride);
    fm__add_loaded(w);
}

/* Three pairs of sums, of any number of rows.  A tile store waits for the last product of its sums,
 * 52 cycles.  So slices of k take pairs in turn, and the sums of one are stored while the products
 * of the next are under way. */
enum { FM__TILE_PAIRS = 3 };

#define FM__WITH_PAIR(pair, what) \
    switch (pair) { \
    case 0: what(0, 1); break; \
    case 1: what(4, 5); break; \
    default: what(6, 7); \
    }

static inline void fm__clear_pair(int pair)
{
#define CLEAR(a, b) _tile_zero(a); _tile_zero(b)
    FM__WITH_PAIR(pair, CLEAR)
#undef CLEAR
}

/* To rows of 32 floats. */
static inline void fm__store_pair(int pair, float *to)
{
#define STORE(a, b) _tile_stored(a, to, 128); _tile_stored(b, to + FM__TILE_ROWS, 128)
    FM__WITH_PAIR(pair, STORE)
#undef STORE
}

/* A pair of sums += x times 32 k of a panel. */
static inline void fm__add_to(int pair, const char *x, long stride, const char *w)
{
#define ADD(a, b) \
    _tile_loadd(3, w, 128); \
    _tile_dpbf16ps(a, 2, 3); \
    _tile_loadd(3, w + 64, 128); \
    _tile_dpbf16ps(b, 2, 3)
    _tile_loadd(2, x, stride);
    FM__WITH_PAIR(pair, ADD)
#undef ADD
    _tile_zero(3);
    _tile_zero(2);
}

/* Up to 16 rows at equal distances. */
typedef struct {
    const char *base;
    long        stride;
} fm__tile_source;

typedef struct {
    _Alignas(64) fm_bf16 row[FM__TILE_ROWS][FM__TILE_SLICE];
} fm__gathered;

static inline int fm__evenly_spaced(const void *const *x, int rows)
{
    intptr_t uneven = 0; /* no branch: asked for every slice, as vectors */
    for (int i = 2; i < rows; i++)
        uneven |= ((intptr_t)x[i] - (intptr_t)x[i - 1]) ^ ((intptr_t)x[1] - (intptr_t)x[0]);
    return uneven == 0;
}

/* Evenly spaced rows from k = `from`, where they lie. */
static inline fm__tile_source fm__even_rows(const void *const *x, int rows, int from)
{
    return (fm__tile_source){(const char *)x[0] + (size_t)from * 2,
                             rows > 1 ? (long)((intptr_t)x[1] - (intptr_t)x[0]) : 64};
}

/* The slice of x from k = `from`: in place where the rows allow it, else copied. */
static inline fm__tile_source fm__tile_rows(fm__gathered *g, const void *const *x, int rows,
                                            int from, int k)
{
    if (fm__evenly_spaced(x, rows)) return fm__even_rows(x, rows, from);
    for (int i = 0; i < rows; i++)
        memcpy(g->row[i], (const fm_bf16 *)x[i] + from, (size_t)k * 2);
    return (fm__tile_source){(const char *)g->row, sizeof g->row[0]};
}

#endif
