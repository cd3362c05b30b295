/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of 1 to 4 rows x 64 or 128 outputs: up to 16 sums, each in the order of gemm_avx512.c. */
enum { AHEAD = 2048 }; /* bytes of a panel between reading and prefetching */

#include "llm/kernel/gemm/few_tiles_avx512.h"

FM__INLINE void add_pair(__m512 sum[MOST][ROWS][2], const operands *o, const char *w, size_t at,
                         int panels, int rows)
{
#pragma GCC unroll 4
    for (int p = 0; p < panels; p++)
        fm__multiply_pair(sum[p], o->x, rows, at, fm__load_pair(w + (size_t)p * o->step));
}

FM__INLINE void prefetch(const operands *o, size_t at, int panels)
{
    const size_t ahead = ahead_of(o, at, panels);
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

void fm__gemm_few_avx512(float *restrict c, const void *const *restrict x, const void *restrict w,
                         int n_panel, int m, int k)
{
    multiply(c, (operands){.x = x, .w = w, .step = fm_panel_bytes(FM_BF16, k), .k = k}, n_panel, m);
}
