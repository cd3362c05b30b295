/* SPDX-License-Identifier: Apache-2.0 */
/* The one matrix kernel everything is built from:
 *
 *     c[i, j] = sum_k x[i, k] * w[j, k]      i < m,  j < 32,  f32 accumulation
 *
 * x are m rows given by pointers (so experts gather and heads stride for
 * free), w is one packed PANEL of 32 outputs, c is a dense [m, 32] tile.
 * Linear layers, experts and both attention products are loops over it.
 *
 * Panel layouts (all contiguous, 64-byte aligned):
 *
 *     BF16  [k/2][32][2]      k pair, output, which of the pair
 *     FP8   [k/2][16][2][2]   k pair, output of a half, which of the pair, which half;
 *                             scale[k/128 rounded up][2]: a factor for each half
 *     INT4  for each 32 k: [8][16][2][2] bytes: four k, output of a half, which of a pair of
 *           k, which half; the lower four bits are the first pair, two's complement; then
 *           [32] BF16: a factor for each output
 *     F32   [k][32]
 *
 * A pair's row of BF16 is two zmm of 16 outputs x 2 k, and 16 such rows are
 * the two AMX tiles of 32 k; a pair's row of FP8 is one zmm whose even bytes
 * are the first half and whose odd bytes the second; INT4 has two pairs in
 * each byte.  Whatever the variant,
 * a panel streams through memory in one sequence.
 *
 * The contract every variant obeys and tests/check/gemm.c checks:
 *   m     any >= 1; k a multiple of 32; x and c aligned for their type
 *   row   the bits of c[i,:] depend on x[i,:] and w alone, not on m or i
 *   err   |c - ref| <= k * 2^-23 * sum_k |x*w|   (FP8, INT4: of the scaled values);
 *         BF16, FP8 and INT4 may treat numbers below 2^-126 as zeros
 * No variant allocates, locks, logs or reads the environment. */
#ifndef FM_LLM_KERNEL_GEMM_H
#define FM_LLM_KERNEL_GEMM_H

#include <stddef.h>

#include "base/cpu.h"
#include "base/number.h"

enum { FM_PANEL = 32 }; /* outputs of a panel */

static inline size_t fm_panel_bytes(fm_dtype w, int k)
{
    const size_t scales = w == FM_INT4 ? (size_t)FM_PANEL * (size_t)(k / FM_INT4_GROUP) * 2 : 0;
    return FM_PANEL * fm_dtype_row_bytes(w, (size_t)k) + scales;
}
static inline int fm_panel_scales(int k) /* floats per FP8 panel */
{
    return (k + 127) / 128 * 2;
}

/* x rows are bf16 for BF16, FP8 and INT4 weights, f32 for F32 weights. */
typedef void fm_gemm_fn(float *restrict c, const void *const *restrict x, const void *restrict w,
                        const float *restrict scale, int m, int k);

/* FP8 weights and FP8 activations (W8A8): rows of x hold E4M3 values as bf16 (kernel/rows:
 * fm_row_quantise), x_scale[i] a factor for each 128 k of row i.  Slice by slice of 128 k,
 *     c[i, j] += (x_scale[i][slice] * scale[slice][half of j]) * sum of the slice,
 * the inner product exact, its sum as the instruction set rounds. */
typedef void fm_gemm_scaled_fn(float *restrict c, const void *const *restrict x,
                               const float *const *restrict x_scale, const void *restrict w,
                               const float *restrict scale, int m, int k);

/* Converts an FP8 panel to a BF16 panel of the scaled values, each rounded to nearest: the bits
 * that a loader which converts weights to BF16 would have packed.  The two factors of a slice of
 * 128 k are the same. */
typedef void fm_widen_fn(void *restrict bf16, const void *restrict w, const float *restrict scale,
                         int k);

/* A product with a callback: done(ctx, from, n) is called as soon as rows [from, from + n) of c are
 * final, in ascending order and once for every row, so that work on finished rows overlaps with
 * the products of later ones.  x_scale: of quantised rows (FP8 weights), else NULL. */
typedef void fm_rows_done(void *ctx, int from, int n);
typedef void fm_gemm_telling_fn(float *restrict c, const void *const *restrict x,
                                const float *const *restrict x_scale, const void *restrict w,
                                const float *restrict scale, int m, int k, fm_rows_done *done,
                                void *ctx);

typedef struct {
    fm_isa              isa; /* the least the CPU must have */
    int                 vbmi; /* and VBMI with VBMI2, which some CPUs of this level lack */
    fm_gemm_fn         *bf16, *fp8, *int4, *f32;
    fm_gemm_telling_fn *telling_bf16, *telling_fp8, *telling_int4; /* NULL: all rows end together */
    fm_gemm_scaled_fn  *fp8_scaled;
    fm_widen_fn        *widen; /* NULL: FP8 panels are better converted when they are loaded */
} fm_gemm;

const fm_gemm *fm_gemm_all(size_t *count); /* best first; ends with ref */
int            fm_gemm_runs_here(const fm_gemm *g); /* the CPU can run it; FM_ISA is ignored */
const fm_gemm *fm_gemm_pick(void);         /* the best this process may run */

static inline fm_gemm_fn *fm_gemm_for(const fm_gemm *g, fm_dtype w)
{
    return w == FM_BF16 ? g->bf16 : w == FM_FP8 ? g->fp8 : w == FM_INT4 ? g->int4 : g->f32;
}

static inline fm_gemm_telling_fn *fm_gemm_telling(const fm_gemm *g, fm_dtype w) /* or NULL */
{
    return w == FM_BF16   ? g->telling_bf16
           : w == FM_FP8  ? g->telling_fp8
           : w == FM_INT4 ? g->telling_int4
                          : NULL;
}

/* Multiplies with weights of any type.  `done` is called for every range of finished rows, while
 * later rows are still being computed where the variant can do that.
 * x_scale: scales of quantised rows of x; NULL: they are not quantised. */
static inline void fm_gemm_told(const fm_gemm *g, fm_dtype type, float *c, const void *const *x,
                                const float *const *x_scale, const void *w, const float *scale,
                                int m, int k, fm_rows_done *done, void *ctx)
{
    fm_gemm_telling_fn *telling = fm_gemm_telling(g, type);
    if (telling) {
        telling(c, x, x_scale, w, scale, m, k, done, ctx);
        return;
    }
    if (x_scale) g->fp8_scaled(c, x, x_scale, w, scale, m, k);
    else fm_gemm_for(g, type)(c, x, w, scale, m, k);
    done(ctx, 0, m);
}

/* Writes one panel from 32 rows of k values of type `w`; a NULL row is zeros,
 * and so are the values from k to the next multiple of 32. */
void fm_pack_panel(void *restrict dst, const void *const row[FM_PANEL], fm_dtype w, int k);

/* An INT4 panel from 32 rows of k values, k a multiple of 32: two values to a byte, the first in
 * the lower four bits, each 8 more than it means; and a factor for each 32 of them.  A NULL row
 * is zeros. */
void fm_pack_int4(void *restrict dst, const uint8_t *const row[FM_PANEL],
                  const fm_bf16 *const scale[FM_PANEL], int k);

/* Panels made on the fly in attention from m rows (bf16 or f32):
 *   across  the rows are the outputs, w[j,k] = rows[j][k]: one panel, m <= 32
 *           (missing and NULL rows are zeros), k = n rounded up to 32 with zeros
 *   along   the rows are k, w[j,k] = rows[k][j]: n/32 panels for n columns,
 *           each of k = m rounded up to 32 (missing rows are zeros)          */
typedef void fm_pack_fn(void *restrict dst, const void *const *restrict rows, int m, int n);
typedef struct {
    fm_isa      isa;
    fm_pack_fn *across_bf16, *across_fp8, *across_f32;
    fm_pack_fn *along_bf16, *along_f32; /* n a multiple of 32 */
} fm_pack;

const fm_pack *fm_pack_all(size_t *count);
const fm_pack *fm_pack_pick(void);

#endif
