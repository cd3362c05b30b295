/* SPDX-License-Identifier: Apache-2.0 */
/* Products of E4M3 activations with E4M3 weights (W8A8), dense or grouped by expert.
 *
 *     quantise  of every 128 columns of a row: scale = amax / 448, x8 = e4m3(x * (448 / amax))
 *     product   y[i, j] = sum over blocks of 128 k of part * (x_scale * w_scale)
 *
 * Definition.  The operands of a part are exact; its sum is a chain of four wgmma e4m3 steps of
 * 32 k from zero, which keep about 13 bits (ptx/wgmma_e4m3.cuh); then, k ascending,
 * sum = fmaf(part, x_scale * w_scale, sum) in f32.  Every shape below keeps it, so a row of y has
 * the same bits whatever else is multiplied with it.
 *
 * Contract
 *   x        e4m3 [rows, k], rows k bytes apart, and one f32 scale for each row and 128 columns
 *   w        e4m3 [n_expert][n, k]; with SwiGLU n is 2 I, rows in groups of 32: 16 of gate, then
 *            the 16 of up for the same channels
 *   scale    [n_expert][(scale_row0 + n)/128 up][k/128 up]; SwiGLU: those of gate, then of up
 *   blocks   pairs are sorted by expert; pair i takes row x_row[i].  Without a list of blocks
 *            there is one expert and pair i is row i.
 *   shapes   n even, SwiGLU: a multiple of 32; k of 16; scale_row0 below 128, a multiple of 16;
 *            pointers 16-byte aligned
 *   err      |y - exact| <= 2^-6 sum |x w| at worst, before rounding to the output's type; measured
 * on random operands: 1e-4 to 5e-4 of that sum Nothing allocates; everything can be captured once
 * fm_cuda_fp8_init() has run. */
#ifndef FM_LLM_KERNEL_CUDA_FP8_FP8_H
#define FM_LLM_KERNEL_CUDA_FP8_FP8_H

#include <stdint.h>

#include "base/status.h"
#include "device/cuda/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { FM_CUDA_FP8_K = 128 }; /* columns under one scale */

typedef struct {
    const uint16_t *x;  /* bf16, rows ldx apart */
    const int32_t *row; /* [n_row] which row of x; NULL: row i.  One outside of 0..n_x is skipped */
    uint8_t       *y;   /* [n_row, k] */
    float         *scale;              /* [n_row, k/128 up] */
    int            n_row, n_x, k, ldx; /* k and ldx multiples of 8 */
} fm_cuda_quantise_args;

fm_status fm_cuda_quantise(const fm_cuda_quantise_args *a, fm_stream stream);

/* Rows that are quantised already, in another order: those of experts' pairs. */
typedef struct {
    const uint8_t *x;           /* [n_x, k] */
    const float   *x_scale;     /* [n_x, k/128 up] */
    const int32_t *row;         /* [n_row]; one outside of 0..n_x is skipped */
    uint8_t       *y;           /* [n_row, k] */
    float         *scale;       /* [n_row, k/128 up] */
    int            n_row, n_x, k; /* k a multiple of 16 */
} fm_cuda_pick_args;

fm_status fm_cuda_pick(const fm_cuda_pick_args *a, fm_stream stream);

/* A bf16 matrix in e4m3, as weights of a product: one scale for each 128 x 128, its largest
 * magnitude / 448, and values rounded as those of a row are. */
typedef struct {
    const uint16_t *w;     /* [n, k] */
    uint8_t        *y;     /* [n, k] */
    float          *scale; /* [n/128 up][k/128 up] */
    int             n, k;  /* k a multiple of 16 */
} fm_cuda_quantise_weights_args;

fm_status fm_cuda_quantise_weights(const fm_cuda_quantise_weights_args *a, fm_stream stream);

typedef enum { FM_CUDA_FP8_F32, FM_CUDA_FP8_BF16, FM_CUDA_FP8_SWIGLU } fm_cuda_fp8_out;

typedef struct {
    const uint8_t  *x;
    const float    *x_scale;
    const int32_t  *x_row; /* NULL: pair i is row i */
    const uint8_t  *w;
    const float    *scale;
    int             scale_row0; /* rows before w that share its first scales */
    void           *y;          /* [pairs, n] f32 or bf16; SwiGLU: [pairs, n/2] bf16 */
    int             ldy;        /* even; bf16: a multiple of 2 */
    fm_cuda_fp8_out out;

    const int32_t *block;   /* [max_block][3] expert, first pair, pairs; NULL: one expert */
    const int32_t *n_block; /* on the device */
    int            max_block, n_expert;
    int            n_row;      /* rows of x */
    int            block_rows; /* pairs of a block at most: 8, 16, 32, 64, 128 or 192 */

    int n, k;
    int n_sm; /* multiprocessors of the device */
} fm_cuda_fp8_args;

/* Pairs by rows of weights of a thread block's task. */
typedef enum {
    FM_CUDA_FP8_8X64,
    FM_CUDA_FP8_16X64,
    FM_CUDA_FP8_8X128,
    FM_CUDA_FP8_16X128,
    FM_CUDA_FP8_32X128,
    FM_CUDA_FP8_64X128,
    FM_CUDA_FP8_8X256,
    FM_CUDA_FP8_16X256,
    FM_CUDA_FP8_32X256,
    FM_CUDA_FP8_128X128,
    FM_CUDA_FP8_128X256, /* this and the next: scale_row0 0, n and ldy multiples of 4 */
    FM_CUDA_FP8_192X128,
    FM_CUDA_N_FP8
} fm_cuda_fp8_tile;

/* The width of a block for n_pair pairs over n_expert experts; is_aligned: scale_row0 is 0 and
 * outputs come in fours. */
int fm_cuda_fp8_block_rows(int n_pair, int n_expert, int is_aligned);

/* Whether rows must lie in the order of the pairs (x_row NULL) for blocks this wide. */
int fm_cuda_fp8_wants_order(int block_rows);

/* The fastest shape: by block_rows, or without blocks by size. */
fm_cuda_fp8_tile fm_cuda_fp8_pick(const fm_cuda_fp8_args *a);

fm_status fm_cuda_fp8_init(void); /* once per process and device, outside capture */
fm_status fm_cuda_fp8(const fm_cuda_fp8_args *a, fm_stream stream);
fm_status fm_cuda_fp8_by(const fm_cuda_fp8_args *a, fm_cuda_fp8_tile shape, fm_stream stream);

#ifdef __cplusplus
}
#endif

#endif
