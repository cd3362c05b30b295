/* SPDX-License-Identifier: Apache-2.0 */
/* Dense products on the GPU:
 *
 *     y[b][i, j] = sum_k x[b][i, k] * w[b][j, k]       b < n_batch, f32 sums
 *
 * The sum of an output is one chain: tensor-core steps of 16 k, ascending, each
 * added to what came before.  E4M3 weights: such a chain from zero for every 128
 * k, then sum = fmaf(part, factor, sum).  Our tiles, the experts' tiles and
 * cuBLASLt (without split k) all keep it, so a row of y has the same bits
 * whatever m is and whichever kernel computes it.
 *
 * Contract
 *   x        bf16, rows ldx apart
 *   w        bf16 [n, k], or e4m3 [n, k] with one f32 factor for every 128 x 128,
 *            rows ldw apart; by_k: bf16 [k, n], rows of k.  Our tiles read w
 *            before the stream's earlier kernels have finished: w is a constant.
 *   shapes   n even, k and ld's multiples of 8 (e4m3: k and ldw of 16; by_k: n of 8);
 *            pointers 16-byte aligned
 *   err      |y - exact| <= k 2^-22 sum |x w| before rounding to the output's type
 * Nothing allocates after init and create; all can be captured. */
#ifndef FM_LLM_KERNEL_CUDA_LINEAR_LINEAR_H
#define FM_LLM_KERNEL_CUDA_LINEAR_LINEAR_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "device/cuda/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    const uint16_t *x;     /* [n_batch][m, k] */
    const void     *w;     /* [n_batch][n, k]; by_k: [n_batch][k, n] */
    const float    *scale; /* NULL: bf16.  [(scale_row0+n)/128 up][k/128 up]; one product only */
    void           *y;     /* [n_batch][m, n] f32, or bf16 */

    int     m, n, k;
    int     ldx, ldw, ldy; /* elements between rows */
    int     n_batch;
    int64_t x_stride, w_stride, y_stride; /* elements between members of the batch */
    int     scale_row0; /* rows before w that share its first factors: 0, 16, ... 112 */

    int by_k;       /* w has its rows along n */
    int y_bf16;     /* y is rounded to bf16 */
    int accumulate; /* y += ; f32 only */
    int swiglu;     /* w has gate and up rows by turns of 16, factors [gate, up], n a multiple
                     * of 32: y [m, n/2] = silu(gate) * up, bf16; our kernel for any m */
    int n_sm;       /* multiprocessors of the device */
} fm_cuda_linear_args;

/* Our tiles, for few rows: bound by the latency of small matrices. */
fm_status fm_cuda_linear_init(void); /* once per process and device, outside capture */
fm_status fm_cuda_linear_tiles(const fm_cuda_linear_args *a, fm_stream stream);

/* E4M3 weights and more rows: rows of x by rows of w. */
typedef enum {
    FM_CUDA_WIDE_64X64,
    FM_CUDA_WIDE_128X64,
    FM_CUDA_WIDE_64X128,
    FM_CUDA_WIDE_128X128,
    FM_CUDA_WIDE_128X256,
    FM_CUDA_N_WIDE
} fm_cuda_wide;

fm_status fm_cuda_linear_wide_init(void); /* called by fm_cuda_linear_init() */
fm_status fm_cuda_linear_wide(const fm_cuda_linear_args *a, fm_cuda_wide shape, fm_stream stream);

/* cuBLASLt.  A plan is made for each kind of product and each bucket of m the
 * first time it is asked for: do that before capture, with
 * fm_cuda_lt_plan(). */
typedef struct fm_cuda_lt fm_cuda_lt;

enum { FM_CUDA_LT_ALIGN = 256 };

/* workspace: device memory aligned to that, borrowed until destroy; one per
 * stream that runs at the same time. */
fm_status fm_cuda_lt_create(fm_cuda_lt **out, void *workspace, size_t workspace_bytes);
void      fm_cuda_lt_destroy(fm_cuda_lt *lt); /* NULL is fine */

/* FM_E_NOSUP: this product is not for cuBLASLt.  FM_E_FULL: more kinds of
 * product than the table holds. */
fm_status fm_cuda_lt_plan(fm_cuda_lt *lt, const fm_cuda_linear_args *a);
fm_status fm_cuda_lt_run(fm_cuda_lt *lt, const fm_cuda_linear_args *a, fm_stream stream);

/* The fastest of them for this m. */
fm_status fm_cuda_linear(fm_cuda_lt *lt, const fm_cuda_linear_args *a, fm_stream stream);

/* Two products of as many rows, few of them, in one launch of our tiles of BF16 weights.  Neither
 * needs what the other writes. */
int       fm_cuda_linear_suits_two(const fm_cuda_linear_args *a, const fm_cuda_linear_args *b);
fm_status fm_cuda_linear_two(const fm_cuda_linear_args *a, const fm_cuda_linear_args *b,
                             fm_stream stream);

/* Whether fm_cuda_linear would take cuBLASLt, given one, or wide tiles. */
int fm_cuda_linear_wants_lt(const fm_cuda_linear_args *a);
int fm_cuda_linear_wants_wide(const fm_cuda_linear_args *a, fm_cuda_wide *shape);

#ifdef __cplusplus
}
#endif

#endif
