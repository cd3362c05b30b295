/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic behind the limits: how many bytes an operation must move at
 * least and how many multiplications and additions it must do at least.
 *
 *     time of an operation  >=  max(bytes / bandwidth, flops / peak)
 *     time of a step        >=  sum over its operations
 *
 * Bytes are weights, each read once per step, and cached latents; on a GPU also what one
 * operation hands to the next, which on a CPU is taken to stay in a cache. */
#ifndef FM_BENCH_BOUND_H
#define FM_BENCH_BOUND_H

#include "bench/roof.h"
#include "llm/weights/config.h"
#include "llm/op/hook.h"

typedef struct {
    double bytes, flops;
} fm_cost;

double fm_cost_seconds(fm_cost c, const fm_roof *l); /* at the bf16 peak */

/* One forward pass of sequences that are all alike. */
typedef struct {
    int n_seq;     /* sequences */
    int n_row;     /* tokens of each: 1 when decoding */
    int pos0;      /* position of the first of them */
    int generated; /* they attend in the absorbed form */
    int n_out;     /* rows with logits, all sequences */
} fm_shape;

/* Of one product, and of one layer; bf16 weights. */
fm_cost fm_cost_product(const fm_roof *l, double rows, double n, double k);
fm_cost fm_cost_attention(const fm_roof *l, const fm_model_config *c, const fm_shape *s);
fm_cost fm_cost_experts(const fm_roof *l, const fm_model_config *c, int rows);

/* Bytes of a weight of linear layers in panels, its share of the scales included: BF16 2, FP8 1
 * and two floats for each 32 x 128, INT4 1/2 and a BF16 for each 32. */
double fm_weight_bytes(const fm_model_config *c);

/* Distinct experts that `rows` tokens choose when all are equally likely. */
double fm_experts_met(const fm_model_config *c, int rows);

typedef struct {
    double  seconds;     /* of the step */
    double  op[FM_N_OP]; /* those of products and attention; 0: not counted */
    fm_cost cost;
} fm_bound;
fm_bound fm_bound_step(const fm_model_config *c, const fm_shape *s, const fm_roof *l);

#endif
