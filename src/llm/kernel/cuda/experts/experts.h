/* SPDX-License-Identifier: Apache-2.0 */
/* Routed experts on the GPU, in two phases:
 *
 *     up    middle[pair]   = silu(W1 h[row]) * W3 h[row]      bf16
 *     down  pair_out[pair] = W2 middle[pair]                  bf16
 *
 * A pair is a (row, slot) of the routing; pairs are sorted by expert and cut
 * into blocks of at most `block_rows` on the device.  The host knows bounds
 * only: grids are fixed, surplus thread blocks find nothing to do.
 *
 * Contract
 *   weights  row-major [E][n][k]; bf16, or e4m3 with one f32 factor for every
 *            128 x 128.  gate_up: n = 2 I, groups of 32 rows, 16 of W1 and the 16
 *            of W3 for the same channels; its factors come as [W1, W3].
 *   shapes   I a multiple of 16, D of 4, k of both phases a multiple of 8 (e4m3:
 *            16); pointers 16-byte aligned
 *   order    down reads weights and the list of blocks while the kernel launched before
 *            it may still run: that one has neither written, but waited for who did
 *   pair     a pair's bits depend on its row and its expert's weights: not on
 *            other pairs, nor on block_rows
 *   err      |y - exact| <= k 2^-22 sum |x w| before rounding to the output's type
 * A shared expert can ride along as more experts of width I that every row goes
 * to with weight 1.  Nothing here allocates; everything can be captured once
 * fm_cuda_experts_init() has run. */
#ifndef FM_LLM_KERNEL_CUDA_EXPERTS_EXPERTS_H
#define FM_LLM_KERNEL_CUDA_EXPERTS_EXPERTS_H

#include <stdint.h>

#include "base/status.h"
#include "device/cuda/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    const void  *weight; /* gate_up [E][2I][D], down [E][D][I] */
    const float *scale;  /* NULL: bf16.  gate_up [E][2][I/128 up][D/128 up],
                          * down [E][D/128 up][I/128 up] */
    int scale_row0;      /* rows of I or D that come before and share the first factors: below
                          * 128, a multiple of 16; they count in the rounding up */
} fm_cuda_expert_matrix;

typedef struct {
    fm_cuda_expert_matrix gate_up, down;

    const uint16_t *h;        /* [T, D] bf16 */
    uint16_t       *middle;   /* [n_pair, I] bf16 */
    uint16_t       *pair_out; /* [n_pair, D] bf16 */

    const int32_t *pair_row; /* [n_pair] row of h; NULL: pair i is row i */
    const int32_t *block;    /* [max_block][3] expert, first pair, pairs; n_block of them, an
                              * expert's together.  NULL: one takes rows 0..n_row, a plain MLP */
    const int32_t *n_block;  /* on the device */
    int            max_block;
    int            n_expert;   /* in the weights */
    int            n_pair;     /* at most */
    int            n_row;      /* without a block list, instead of these two */
    int            block_rows; /* 8, 16, 32, 64; bf16 also 256 */

    int D, I;
    int n_sm; /* multiprocessors of the device */
} fm_cuda_experts_args;

/* The block width for n_pair pairs over n_expert experts: a function of host
 * numbers, hence fixed per graph. */
int fm_cuda_experts_block_rows(int n_pair, int n_expert, int is_e4m3);

/* Pairs that a block of this width multiplies together, as fm_cuda_pairs_args has them; 0 if it is
 * all of them. */
int fm_cuda_experts_box(int block_rows);

fm_status fm_cuda_experts_init(void); /* once per process and device, outside capture */
fm_status fm_cuda_experts_up(const fm_cuda_experts_args *a, fm_stream stream);
fm_status fm_cuda_experts_down(const fm_cuda_experts_args *a, fm_stream stream);

#ifdef __cplusplus
}
#endif

#endif
