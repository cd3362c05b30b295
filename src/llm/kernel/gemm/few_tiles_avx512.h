/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of 1 to 4 rows x 1, 2 or 4 neighbouring panels, up to 16 sums: their table, and what they
 * prefetch.  The file that includes this defines AHEAD and run_tile(). */
#ifndef FM_LLM_KERNEL_GEMM_FEW_TILES_AVX512_H
#define FM_LLM_KERNEL_GEMM_FEW_TILES_AVX512_H

#include "llm/kernel/gemm/gemm_few.h"
#include "llm/kernel/gemm/tile_avx512.h"

enum {
    MOST = 4, /* panels of a tile */
    ROWS = FM_GEMM_FEW_ROWS,
};

typedef struct {
    fm__rows_of  x;
    const char  *w;     /* the first panel */
    const float *scale; /* of all panels; FP8 only */
    size_t       step;  /* bytes from panel to panel */
    int          k;
} operands;

typedef void tile_fn(float *c, const operands *o);

FM__INLINE void run_tile(float *c, const operands *o, int panels, int rows);

/* Bytes from a panel's beginning to what is prefetched when byte `at` of it is read.  What lies behind
 * the end of a panel is its neighbour, which is read as well: the panels after them are next. */
FM__INLINE size_t ahead_of(const operands *o, size_t at, int panels)
{
    return at + AHEAD < o->step ? at + AHEAD : at + AHEAD + (size_t)(panels - 1) * o->step;
}

/* clang-format off */
#define TILES(panels, rows) \
    static void by_##panels##_##rows(float *c, const operands *o) { run_tile(c, o, panels, rows); }
TILES(1, 1) TILES(1, 2) TILES(1, 3) TILES(1, 4)
TILES(2, 1) TILES(2, 2) TILES(2, 3) TILES(2, 4)
TILES(4, 1) TILES(4, 2)

/* By rows; of one, two and four panels. */
static tile_fn *const tile[ROWS + 1][3] = {
    {0},
    {by_1_1, by_2_1, by_4_1}, {by_1_2, by_2_2, by_4_2}, {by_1_3, by_2_3, 0}, {by_1_4, by_2_4, 0},
};
/* clang-format on */

static void multiply(float *c, operands o, int n_panel, int m)
{
    for (int left = n_panel, how; left; left -= 1 << how) {
        how = left >= 4 && tile[m][2] ? 2 : left >= 2;
        tile[m][how](c, &o);
        c += (size_t)(m << how) * FM_PANEL;
        o.w += o.step << how;
    }
}

#endif
