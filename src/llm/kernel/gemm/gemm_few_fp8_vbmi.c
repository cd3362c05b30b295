/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of 1 to 4 rows x 32, 64 or 128 outputs of FP8 weights that count as BF16 numbers: the sums
 * are those of gemm_few_avx512.c, and nothing widened is stored. */
#include "llm/kernel/gemm/gemm_few.h"
#include "llm/kernel/gemm/tile_avx512.h"
#include "llm/kernel/gemm/widen_vbmi.h"

enum {
    MOST  = 4,
    ROWS  = FM_GEMM_FEW_ROWS,
    LINE  = 64,
    AHEAD = 8192, /* bytes of a panel between reading and prefetching */
};

typedef struct {
    fm__rows_of  x;
    const char  *w;     /* the first panel */
    const float *scale; /* of all panels */
    size_t       step;  /* bytes from panel to panel */
    int          k;
} operands;

typedef void tile_fn(float *c, const operands *o);

FM__INLINE void add_slice(__m512 sum[MOST][ROWS][2], const operands *o, int p, int panels, int rows)
{
    const fm__magnitudes t   = fm__scaled_magnitudes(o->scale[p / FM__SCALE_K * 2]);
    const int            end = fm__least(p + FM__SCALE_K, o->k);
    for (; p < end; p += 2)
#pragma GCC unroll 4
        for (int i = 0; i < panels; i++) {
            const char        *at = o->w + (size_t)i * o->step + (size_t)p * FM_PANEL;
            const fm__pair_row r  = fm__look_up(t, _mm512_loadu_si512(at));
            _mm_prefetch(at + AHEAD, _MM_HINT_T0);
            fm__multiply_pair(sum[i], o->x, rows, (size_t)p * 2,
                              (fm__pair_of_k){{(__m512bh)r.half[0], (__m512bh)r.half[1]}});
        }
}

FM__INLINE void run_tile(float *c, const operands *o, int panels, int rows)
{
    __m512 sum[MOST][ROWS][2];
#pragma GCC unroll 4
    for (int i = 0; i < panels; i++) fm__clear_sums(sum[i], rows);
    for (int p = 0; p < o->k; p += FM__SCALE_K) add_slice(sum, o, p, panels, rows);
#pragma GCC unroll 4
    for (int i = 0; i < panels; i++) fm__store_sums(c + i * rows * FM_PANEL, sum[i], rows);
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

void fm__gemm_few_fp8_vbmi(float *restrict c, const void *const *restrict x,
                           const void *restrict w, const float *restrict scale, int n_panel, int m,
                           int k)
{
    operands o = {.x = x, .w = w, .scale = scale, .step = fm_panel_bytes(FM_FP8, k), .k = k};
    for (int left = n_panel, how; left; left -= 1 << how) {
        how = left >= 4 && tile[m][2] ? 2 : left >= 2;
        tile[m][how](c, &o);
        c += (size_t)(m << how) * FM_PANEL;
        o.w += o.step << how;
    }
}
