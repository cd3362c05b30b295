/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on single rows: RMS norm, RoPE, SwiGLU, steps of the online softmax, rounding to the
 * type of matrix inputs.  A row's bits depend on the row alone.  They are the same for every
 * instruction set, except in SwiGLU and softmax, where AVX-512 has its own e^x, and except for
 * numbers below 2^-126, which AVX-512 stores as zeros in a tile. */
#ifndef FM_LLM_KERNEL_ROWS_H
#define FM_LLM_KERNEL_ROWS_H

#include <stddef.h>

#include "base/number.h"

/* `t` is BF16 or F32: how matrix inputs are kept. */
void fm_row_store(void *dst, fm_dtype t, const float *x, int n);
void fm_row_store_scaled(void *dst, fm_dtype t, const float *x, float a, int n); /* a x */
void fm_row_load(float *dst, fm_dtype t, const void *x, int n);

/* y = w * x / sqrt(mean(x^2) + eps), summed in 16 lanes and then pairwise. */
void fm_row_rmsnorm(void *y, fm_dtype t, const float *x, const float *w, float eps, int n);

void fm_row_add(float *x, const float *y, int n);                 /* x += y */
void fm_row_scale_add(float *y, const float *x, float a, int n);  /* y += a x */
void fm_row_scale(float *y, float a, int n);                      /* y *= a */

/* RoPE: rotates n/2 pairs in place: (x[2i], x[2i+1]), or (x[i], x[i+n/2]) if not
 * interleaved; cos and sin [n/2]. */
void fm_row_rotate(float *x, const float *cos, const float *sin, int n, int interleaved);
void fm_row_rotate_bf16(fm_bf16 *x, const float *cos, const float *sin, int n, int interleaved);

/* Stores the first n columns of m tile rows of 32 to rows of dst with stride ld. */
void fm_tile_store(void *dst, fm_dtype t, size_t ld, const float *c, int m, int n);

/* Stores m tile rows of 32, each to an address of its own that is not read soon: by non-temporal
 * stores where the CPU has them, which do not fetch the cache line first.  Other threads may
 * read the rows after fm_scatter_end. */
void fm_tile_scatter(void *const *to, fm_dtype t, const float *c, int m);
void fm_scatter_end(void);

/* y[i,0..32) = a[i] * y[i,0..32) + c[i,0..32), rounded after each operation. */
void fm_tile_scale_add(float *y, size_t ld, const float *a, const float *c, int m);

/* dst[i,0..16) = silu(c[i,0..16)) * c[i,16..32) for m tile rows of 32. */
void fm_tile_swiglu(void *dst, fm_dtype t, size_t ld, const float *c, int m);

/* One step of the online softmax of m queries over n_tile tiles of 32 keys. */
typedef struct {
    int        m, n_tile;
    float     *score;     /* [n_tile][m][32], overwritten */
    float      scale;     /* of the scores */
    const int *n_visible; /* [m] keys from there on weigh 0; where none is visible nothing changes */
    fm_dtype   type;      /* of the weights */
    void      *weight;    /* [m][n_tile*32] relative to the new maximum */
    float     *max, *sum; /* [m] of all scores and weights so far */
    float     *alpha;     /* [m] factor for what a query accumulated under the old maximum */
} fm_softmax_step;

void fm_tile_softmax(const fm_softmax_step *s);

/* A row of activations as products of FP8 weights take it (W8A8): of each 128 values, with the
 * largest magnitude amax (at least 2^-100), scale = amax / 448, and q = x * (448 / amax) rounded
 * to E4M3, which bf16 holds exactly.  q may be x. */
void fm_row_quantise(fm_bf16 *q, float *scale, const fm_bf16 *x, int n);

/* Probabilities of a router's logits, in place. */
void fm_row_sigmoid(float *x, int n);
void fm_row_softmax(float *x, int n);

#endif
