/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels on AMX tiles share: one shape for all eight tiles, and 16 rows
 * of bf16 as a tile load wants them. */
#ifndef FM_LLM_KERNEL_TILES_AMX_H
#define FM_LLM_KERNEL_TILES_AMX_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "base/number.h"

enum {
    FM__TILE_ROWS  = 16,
    FM__TILE_SLICE = 128, /* k that are gathered into L1 at a time */
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

/* Loading the shapes takes ten times as long as asking for them.  They belong
 * to the thread and may be lost behind our back (a fork, another library), so
 * they are compared at each call rather than remembered. */
static inline void fm__shape_tiles(void)
{
    static const fm__tile_shapes want = {
        .palette   = 1,
        .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
        .rows      = {16, 16, 16, 16, 16, 16, 16, 16},
    };
    fm__tile_shapes have;
    _tile_storeconfig(&have);
    fm__memory_is_written();
    if (memcmp(&have, &want, sizeof want) != 0) _tile_loadconfig(&want);
}

/* 16 rows at equal distances. */
typedef struct {
    const char *base;
    long        stride;
} fm__tile_source;

typedef struct {
    _Alignas(64) fm_bf16 row[FM__TILE_ROWS][FM__TILE_SLICE];
} fm__gathered;

static inline int fm__evenly_spaced(const void *const *x)
{
    const intptr_t step = (intptr_t)x[1] - (intptr_t)x[0];
    for (int i = 2; i < FM__TILE_ROWS; i++)
        if ((intptr_t)x[i] - (intptr_t)x[i - 1] != step) return 0;
    return 1;
}

/* The slice of x from k = `from`: in place where the rows allow it, else copied
 * and filled up with zeros. */
static inline fm__tile_source fm__tile_rows(fm__gathered *g, const void *const *x, int rows,
                                            int from, int k)
{
    if (rows >= FM__TILE_ROWS && fm__evenly_spaced(x))
        return (fm__tile_source){(const char *)x[0] + (size_t)from * 2,
                                 (long)((intptr_t)x[1] - (intptr_t)x[0])};
    for (int i = 0; i < FM__TILE_ROWS; i++)
        if (i < rows) memcpy(g->row[i], (const fm_bf16 *)x[i] + from, (size_t)k * 2);
        else memset(g->row[i], 0, (size_t)k * 2);
    return (fm__tile_source){(const char *)g->row, sizeof g->row[0]};
}

#endif
