/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of 1 to 4 rows x 64 or 128 outputs: up to 16 sums, each in the order of gemm_avx512.c. */
#include "llm/kernel/gemm/gemm_few.h"
#include "llm/kernel/gemm/tile_avx512.h"

enum {
    MOST  = 4,
    ROWS  = FM_GEMM_FEW_ROWS,
    AHEAD = 2048, /* bytes of a panel between reading and prefetching */
};

typedef struct {
    fm__rows_of x;
    const char *w;    /* the first panel */
    size_t      step; /* bytes from panel to panel */
    int         k;
} operands;

typedef void tile_fn(float *c, const operands *o);

FM__INLINE void add_pair(__m512 sum[MOST][ROWS][2], const operands *o, const char *w, size_t at,
                         int panels, int rows)
{
#pragma GCC unroll 4
    for (int p = 0; p < panels; p++)
        fm__multiply_pair(sum[p], o->x, rows, at, fm__load_pair(w + (size_t)p * o->step));
}

/* What lies behind the end of a panel is its neighbour, which is read as well: the panels after them
 * are next. */
FM__INLINE void prefetch(const operands *o, size_t at, int panels)
{
    const size_t ahead = at + AHEAD < o->step ? at + AHEAD : at + AHEAD + (size_t)(panels - 1) * o->step;
#pragma GCC unroll 4
    for (int p = 0; p < panels; p++)
#pragma GCC unroll 4
        for (int line = 0; line < 4; line++)
            _mm_prefetch(o->w + (size_t)p * o->step + ahead + line * 64, _MM_HINT_T0);
}

FM__INLINE void run_tile(float *c, const operands *o, int panels, int rows)
{
    __m512       sum[MOST][ROWS][2];
    const char  *w  = o->w;
    const size_t to = (size_t)o->k * 2;
#pragma GCC unroll 4
    for (int p = 0; p < panels; p++) fm__clear_sums(sum[p], rows);
    for (size_t at = 0; at < to; at += 8, w += 256) {
        prefetch(o, at * FM_PANEL, panels);
        add_pair(sum, o, w, at, panels, rows);
        add_pair(sum, o, w + 128, at + 4, panels, rows);
    }
#pragma GCC unroll 4
    for (int p = 0; p < panels; p++) fm__store_sums(c + p * rows * FM_PANEL, sum[p], rows);
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

void fm__gemm_few_avx512(float *restrict c, const void *const *restrict x, const void *restrict w,
                         int n_panel, int m, int k)
{
    operands o = {.x = x, .w = w, .step = fm_panel_bytes(FM_BF16, k), .k = k};
    for (int left = n_panel, how; left; left -= 1 << how) {
        how = left >= 4 && tile[m][2] ? 2 : left >= 2;
        tile[m][how](c, &o);
        c += (size_t)(m << how) * FM_PANEL;
        o.w += o.step << how;
    }
}
