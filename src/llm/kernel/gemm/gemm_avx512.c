/* SPDX-License-Identifier: Apache-2.0 */
/* Register tiles of up to 8 rows x 32 outputs.  A row's sums run over k in one
 * ascending order with the same instructions in every tile, so m only chooses
 * how many rows share a load of the weights.
 *
 *     bf16  vdpbf16ps on a pair of k: two loads of 16 outputs x 2 and, for each
 *           row, one broadcast of its pair
 *     f32   fma on single k                                                  */
#include "llm/kernel/gemm/tile_avx512.h"

enum {
    ROWS = 8,     /* four already keep the multiplier busy; more than eight rows that
                     are a multiple of 4 KB apart would push each other out of L1 */
    ALONE = 3,    /* tiles this low are read fast enough without prefetching */
    AHEAD = 4096, /* bytes between reading and prefetching */
};

/* Where a tile starts and what it is made of. */
typedef struct {
    fm__rows_of x;
    const char *w;
    int         k;
} operands;

typedef void tile_fn(float *c, const operands *o);

FM__INLINE void prefetch(const char *w)
{
    _mm_prefetch(w, _MM_HINT_T0);
    _mm_prefetch(w + 64, _MM_HINT_T0);
}

FM__INLINE void add_pairs(__m512 sum[ROWS][2], const operands *o, int rows)
{
    const char  *w  = o->w;
    const size_t to = (size_t)o->k * 2;
    for (size_t at = 0; at < to; at += 16)
#pragma GCC unroll 4
        for (size_t p = 0; p < 16; p += 4, w += 128) {
            if (rows > ALONE) prefetch(w + AHEAD);
            fm__multiply_pair(sum, o->x, rows, at + p, fm__load_pair(w));
        }
}

FM__INLINE void add_singles(__m512 sum[ROWS][2], const operands *o, int rows)
{
    const char  *w  = o->w;
    const size_t to = (size_t)o->k * 4;
    for (size_t at = 0; at < to; at += 16)
#pragma GCC unroll 4
        for (size_t p = 0; p < 16; p += 4, w += 128) {
            const __m512 w0 = _mm512_loadu_ps(w), w1 = _mm512_loadu_ps(w + 64);
            if (rows > ALONE) prefetch(w + AHEAD);
#pragma GCC unroll 8
            for (int i = 0; i < rows; i++) {
                float a;
                memcpy(&a, (const char *)o->x[i] + at + p, sizeof a);
                sum[i][0] = _mm512_fmadd_ps(_mm512_set1_ps(a), w0, sum[i][0]);
                sum[i][1] = _mm512_fmadd_ps(_mm512_set1_ps(a), w1, sum[i][1]);
            }
        }
}

typedef enum { BF16, F32 } kind;

FM__INLINE void run_tile(float *c, const operands *o, int rows, kind w)
{
    __m512 sum[ROWS][2];
    fm__clear_sums(sum, rows);
    if (w == BF16)
        add_pairs(sum, o, rows);
    else
        add_singles(sum, o, rows);
    fm__store_sums(c, sum, rows);
}

/* One function of each kind for every height of a tile. */
/* clang-format off */
#define TILES(rows)                                                                      \
    static void bf16_##rows(float *c, const operands *o) { run_tile(c, o, rows, BF16); } \
    static void f32_##rows(float *c, const operands *o) { run_tile(c, o, rows, F32); }
#define ALL_KINDS(rows) {bf16_##rows, f32_##rows},
TILES(1) TILES(2) TILES(3) TILES(4) TILES(5) TILES(6) TILES(7) TILES(8)

static tile_fn *const tile[ROWS + 1][2] = {
    {0},
    ALL_KINDS(1) ALL_KINDS(2) ALL_KINDS(3) ALL_KINDS(4)
    ALL_KINDS(5) ALL_KINDS(6) ALL_KINDS(7) ALL_KINDS(8)
};
/* clang-format on */

/* All rows, in tiles of nearly equal height. */
FM__INLINE void run_tiles(kind w, float *c, operands o, int m)
{
    for (int left = (m + ROWS - 1) / ROWS; left; left--) {
        const int rows = (m + left - 1) / left;
        tile[rows][w](c, &o);
        c += (size_t)rows * FM_PANEL;
        o.x += rows;
        m -= rows;
    }
}

void fm__gemm_bf16_avx512(float *restrict c, const void *const *restrict x, const void *restrict w,
                          const float *restrict scale, int m, int k)
{
    (void)scale;
    run_tiles(BF16, c, (operands){.x = x, .w = w, .k = k}, m);
}

void fm__gemm_f32_avx512(float *restrict c, const void *const *restrict x, const void *restrict w,
                         const float *restrict scale, int m, int k)
{
    (void)scale;
    run_tiles(F32, c, (operands){.x = x, .w = w, .k = k}, m);
}
