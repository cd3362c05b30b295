/* SPDX-License-Identifier: Apache-2.0 */
/* MLA attention in the absorbed form: 16 queries (heads of one row, or of several rows of a
 * sequence) attend to n cached latents, each of which is key and value for all heads.
 *
 *     score[t, h] = sum_d q[h, d] * row[t][d]          d < width
 *     p[t, h]     = e^(scale score[t, h] - max[h])     max over t; sum[h] = sum_t p
 *     z[h, d]     = sum_t p[t, h] * row[t][d]          f32 accumulation
 *
 * Cached tokens are read in place.  Only queries and softmax weights, the small operands, are
 * packed, so that the 16 heads are the lanes of a vector (or the columns of an AMX tile):
 *
 *     q   BF16 [width/2][16][2]   F32 [width][16]
 *     p   BF16 [n/2][16][2]       F32 [n][16]
 *
 * The contract every variant obeys and tests/check/latent.c checks:
 *   n      any in 1..FM_LATENT_KEYS.  `row` has n rounded up to 32 pointers; those
 *          behind n lead to finite numbers.  score and p have as many rows; there,
 *          score is unspecified and p zero
 *   place  score, q and p are 64-byte aligned
 *   width  a multiple of 32
 *   heads  1..16; z has 16 rows, of which those behind `heads` are unspecified
 *   row    the bits of score[t,h] depend on q[h] and row[t] alone, those of p[:,h]
 *          on score[:,h], those of z[h] on p[:,h] and the first n rows
 *   err    scores and values as in gemm.h, with k = width and k = n; p and sum to
 *          2^-20 before p is rounded to its type, max exactly
 * No variant allocates, locks, logs or reads the environment. */
#ifndef FM_LLM_KERNEL_LATENT_H
#define FM_LLM_KERNEL_LATENT_H

#include "base/cpu.h"
#include "base/number.h"

enum {
    FM_LATENT_LANES = 16,  /* heads of a group */
    FM_LATENT_KEYS  = 256, /* tokens of a call, at most: they stay in L2 from scores to values */
    FM_LATENT_STEP  = 32,  /* n is rounded up to this */
};

/* dst from `heads` queries of `width` values; missing heads are zeros. */
typedef void fm_latent_pack_fn(void *restrict dst, const void *const *restrict q, int heads,
                               int width);
typedef void fm_latent_score_fn(float *restrict score, const void *restrict q,
                                const void *const *restrict row, int n, int width);
/* scale > 0; the scores are overwritten. */
typedef void fm_latent_weigh_fn(void *restrict p, float *restrict score, int n, float scale,
                                float max[FM_LATENT_LANES], float sum[FM_LATENT_LANES]);
typedef void fm_latent_value_fn(float *restrict z, const void *restrict p,
                                const void *const *restrict row, int n, int heads, int width);

typedef struct {
    fm_latent_pack_fn  *pack;
    fm_latent_score_fn *score;
    fm_latent_weigh_fn *weigh;
    fm_latent_value_fn *value;
} fm_latent_fns;

typedef struct {
    fm_isa        isa; /* the least the CPU must have */
    fm_latent_fns bf16, f32;
} fm_latent;

const fm_latent *fm_latent_all(size_t *count); /* best first; ends with ref */
const fm_latent *fm_latent_pick(void);         /* the best this process may run */

static inline const fm_latent_fns *fm_latent_for(const fm_latent *v, fm_dtype t)
{
    return t == FM_BF16 ? &v->bf16 : &v->f32;
}

#endif
