/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of 1 to 4 rows x 32, 64 or 128 outputs of FP8 weights that count as BF16 numbers: the sums
 * are those of gemm_few_avx512.c, and nothing widened is stored. */
enum { AHEAD = 8192 }; /* bytes of a panel between reading and prefetching */

#include "llm/kernel/gemm/few_tiles_avx512.h"
#include "llm/kernel/gemm/widen_vbmi.h"

FM__INLINE void add_slice(__m512 sum[MOST][ROWS][2], const operands *o, int p, int panels, int rows)
{
    const fm__magnitudes t   = fm__scaled_magnitudes(o->scale[p / FM__SCALE_K * 2]);
    const int            end = fm__least(p + FM__SCALE_K, o->k);
    for (; p < end; p += 2) {
        const size_t row = (size_t)p * FM_PANEL, ahead = ahead_of(o, row, panels);
#pragma GCC unroll 4
        for (int i = 0; i < panels; i++) {
            const char        *w = o->w + (size_t)i * o->step;
            const fm__pair_row r = fm__look_up(t, _mm512_loadu_si512(w + row));
            _mm_prefetch(w + ahead, _MM_HINT_T0);
            fm__multiply_pair(sum[i], o->x, rows, (size_t)p * 2,
                              (fm__pair_of_k){{(__m512bh)r.half[0], (__m512bh)r.half[1]}});
        }
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

void fm__gemm_few_fp8_vbmi(float *restrict c, const void *const *restrict x,
                           const void *restrict w, const float *restrict scale, int n_panel, int m,
                           int k)
{
    const size_t step = fm_panel_bytes(FM_FP8, k);
    multiply(c, (operands){.x = x, .w = w, .scale = scale, .step = step, .k = k}, n_panel, m);
}
