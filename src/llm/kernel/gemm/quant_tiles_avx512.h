/* SPDX-License-Identifier: Apache-2.0 */
/* Register tiles of quantised panels, up to 12 rows x 32 outputs: the sums of what lies under one
 * scale are in registers, those of everything in L1.  Per group of GROUP_K, ascending,
 *
 *     part = products of the group's pairs of k      sum += factor * part
 *
 * with the same instructions in every tile, so m only chooses how many rows share a load.
 *
 *     up to 12 rows   one tile; weights are widened to BF16 in registers
 *     more            passes of 256 k in tiles of 8: the first keeps what it widens, the others
 *                     read that
 *
 * VDPBF16PS takes six cycles and Zen 5 begins two in each, so a tile needs more than 12 sums: with
 * 6 rows a product of 256 took 15 % longer than BF16's, with 8 it takes 4 % longer.
 *
 * The file that includes this defines GROUP_K, AHEAD, packed_at(), widen_four() and
 * factor_of(). */
#ifndef FM_LLM_KERNEL_GEMM_QUANT_TILES_AVX512_H
#define FM_LLM_KERNEL_GEMM_QUANT_TILES_AVX512_H

#include "llm/kernel/gemm/tile_avx512.h"

enum {
    ROWS   = 8,   /* of a tile in passes */
    ALONE  = 12,  /* of a single tile, at most */
    PASS_K = 256, /* of many rows; widened they are 16 KB and stay in L1 */
};

typedef struct {
    fm__rows_of         x;
    const float *const *x_scale; /* FP8: factors of each row's slices, or NULL */
    const char         *w;       /* the panel */
    const float        *scale;   /* of the panel; FP8 only */
    char               *wide;    /* k from `begin` on as BF16 */
    int                 begin, end;
} operands;

typedef enum { PACKED, KEEPING, WIDENED } source;
typedef void tile_fn(float *c, const operands *o);

/* The group at k: where k + q lies in the panel, and the two pairs of k + q .. k + q + 3. */
FM__INLINE const char *packed_at(const operands *o, int k, int q);
FM__INLINE void        widen_four(fm__pair_of_k to[2], const char *packed);
/* What the sum of row i over the group at k is multiplied with, in half h of the panel. */
FM__INLINE __m512 factor_of(const operands *o, int i, int k, int h);

/* What a later group reads.  The first tile of many rows leaves half of the lines to the others,
 * since reading from memory would hold it up while they wait for it. */
FM__INLINE void prefetch_eight(const operands *o, source from, int k, int q)
{
    const char *first = packed_at(o, k, q), *end = packed_at(o, k, q + 8);
#pragma GCC unroll 4
    for (int line = 0; line < (int)(end - first) / 64; line++)
        if (from == PACKED || line % 2 == (from == WIDENED))
            _mm_prefetch(first + AHEAD + line * 64, _MM_HINT_T0);
}

FM__INLINE void take_four(fm__pair_of_k to[2], const operands *o, source from, int k, int q)
{
    char *wide = o->wide + (size_t)(k - o->begin + q) * FM_PANEL * 2;
    if (from != WIDENED) widen_four(to, packed_at(o, k, q));
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++, wide += 2 * FM_PANEL * 2)
        if (from == WIDENED)
            to[i] = fm__load_pair(wide);
        else if (from == KEEPING)
            fm__store_pair(wide, to[i]);
}

FM__INLINE void add_group(__m512 sum[][2], const operands *o, int rows, source from, int k)
{
    const int n = (int)GROUP_K == (int)FM__BLOCK ? GROUP_K : fm__least(GROUP_K, o->end - k);
    __m512    part[ALONE][2];
    fm__clear_sums(part, rows);
    for (int p = 0; p < n; p += 8) {
        prefetch_eight(o, from, k, p);
#pragma GCC unroll 2
        for (int q = p; q < p + 8; q += 4) {
            const size_t  at = (size_t)(k + q) * 2;
            fm__pair_of_k pair[2];
            take_four(pair, o, from, k, q);
            fm__multiply_pair(part, o->x, rows, at, pair[0]);
            fm__multiply_pair(part, o->x, rows, at + 4, pair[1]);
        }
    }
#pragma GCC unroll 12
    for (int i = 0; i < rows; i++) {
        sum[i][0] = _mm512_fmadd_ps(factor_of(o, i, k, 0), part[i][0], sum[i][0]);
        sum[i][1] = _mm512_fmadd_ps(factor_of(o, i, k, 1), part[i][1], sum[i][1]);
    }
}

FM__INLINE void run_tile(float *c, const operands *o, int rows, source from)
{
    __m512 sum[ALONE][2];
    if (o->begin)
        fm__load_sums(sum, c, rows);
    else
        fm__clear_sums(sum, rows);
    for (int k = o->begin; k < o->end; k += GROUP_K) add_group(sum, o, rows, from, k);
    fm__store_sums(c, sum, rows);
}

/* One function for every height of a tile and source of its weights. */
/* clang-format off */
#define TILES_ALONE(rows)                                                                      \
    static void packed_##rows(float *c, const operands *o) { run_tile(c, o, rows, PACKED); }
#define TILES(rows)                                                                            \
    TILES_ALONE(rows)                                                                          \
    static void keeping_##rows(float *c, const operands *o) { run_tile(c, o, rows, KEEPING); } \
    static void widened_##rows(float *c, const operands *o) { run_tile(c, o, rows, WIDENED); }
#define ALL_SOURCES(rows) {packed_##rows, keeping_##rows, widened_##rows},
TILES(1) TILES(2) TILES(3) TILES(4) TILES(5) TILES(6) TILES(7) TILES(8)
TILES_ALONE(9) TILES_ALONE(10) TILES_ALONE(11) TILES_ALONE(12)

static tile_fn *const tile[ALONE + 1][3] = {
    {0},
    ALL_SOURCES(1) ALL_SOURCES(2) ALL_SOURCES(3) ALL_SOURCES(4)
    ALL_SOURCES(5) ALL_SOURCES(6) ALL_SOURCES(7) ALL_SOURCES(8)
    {packed_9}, {packed_10}, {packed_11}, {packed_12},
};
/* clang-format on */

/* All rows in tiles of nearly equal height over the k of a pass. */
static void run_pass(float *c, operands o, int m)
{
    source from = KEEPING;
    for (int left = (m + ROWS - 1) / ROWS; left; left--, from = WIDENED) {
        const int rows = (m + left - 1) / left;
        tile[rows][from](c, &o);
        c += (size_t)rows * FM_PANEL;
        o.x += rows;
        if (o.x_scale) o.x_scale += rows;
        m -= rows;
    }
}

static void multiply(float *c, operands o, int m, int k)
{
    _Alignas(64) char wide[PASS_K * FM_PANEL * 2];
    o.wide = wide;
    o.end  = k;
    if (m <= ALONE) {
        tile[m][PACKED](c, &o);
        return;
    }
    for (; o.begin < k; o.begin += PASS_K) {
        o.end = fm__least(o.begin + PASS_K, k);
        run_pass(c, o, m);
    }
}

#endif
