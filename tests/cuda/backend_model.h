/* SPDX-License-Identifier: Apache-2.0 */
/* A whole model on both back ends, side by side. */
#ifndef FM_TESTS_CUDA_BACKEND_MODEL_H
#define FM_TESTS_CUDA_BACKEND_MODEL_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    const char *dir;           /* a checkpoint; NULL: dummy weights */
    const char *shape, *json;  /* built-in shape and overrides, without dir */
    int         page_size;
    int         pads, kv_e4m3;
    int         first_word; /* texts begin here: elsewhere two experts may nearly tie */
    int         w8a8; /* activations in E4M3, if the checkpoint says so; else never */
} fm_both_options;

typedef struct fm_both fm_both;

/* NULL, with the reason in *why. */
fm_both *fm_both_open(const fm_both_options *o, const char **why);
void     fm_both_close(fm_both *b);

/* A pass of three sequences: A's prompt in a chunk, B's decode, C's prompt with
 * a cached prefix, or the like.  Returns the largest error of a row of logits,
 * relative to its size; -1: *why. */
double fm_both_pass(fm_both *b, int step, const char **why);

/* Samples the next pass's logits on the GPU and on the CPU, greedy and drawn,
 * with penalties, biases and a forbidden end: how many tokens differ; -1: *why. */
int fm_both_tokens_differ(fm_both *b, const char **why);

/* Runs the same rows on the GPU alone, in one pass and in several: 1 if a row's
 * logits have the same bits. */
int fm_both_is_invariant(fm_both *b, const char **why);

#ifdef __cplusplus
}
#endif

#endif
