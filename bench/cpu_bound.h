/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic behind the limits: how many bytes an operation must read at
 * least and how many multiplications and additions it must do at least.
 *
 *     time of an operation  >=  max(bytes / read bandwidth, flops / peak)
 *     time of a step        >=  sum over its operations
 *
 * Bytes are weights, each read once per step, and cached latents.  What one
 * operation hands to the next is taken to stay in a cache and costs nothing. */
#ifndef FM_BENCH_CPU_BOUND_H
#define FM_BENCH_CPU_BOUND_H

#include "bench/limits.h"
#include "llm/model/config.h"

typedef struct {
    double bytes, flops;
} fm_cost;

double fm_cost_seconds(fm_cost c, const fm_limits *l);

/* One forward pass of sequences that are all alike. */
typedef struct {
    int n_seq;     /* sequences */
    int n_row;     /* tokens of each: 1 when decoding */
    int pos0;      /* position of the first of them */
    int generated; /* they attend in the absorbed form */
    int n_out;     /* rows with logits, all sequences */
} fm_shape;

fm_cost fm_cost_matrix(int rows, double n, double k); /* BF16 */
fm_cost fm_cost_linear(const fm_model_config *c, int rows, double n, double k);
fm_cost fm_cost_attention(const fm_model_config *c, const fm_shape *s); /* of one layer */
fm_cost fm_cost_experts(const fm_model_config *c, int rows);            /* of one layer */
fm_cost fm_cost_mlp(const fm_model_config *c, int rows, int inter);

/* Bytes of a weight of linear layers in panels, its share of the scales included: BF16 2, FP8 1
 * and two floats for each 32 x 128, INT4 1/2 and a BF16 for each 32. */
double fm_weight_bytes(const fm_model_config *c);

/* Distinct experts that `rows` tokens choose when all are equally likely. */
double fm_experts_met(const fm_model_config *c, int rows);

/* Where the time of a step goes, by kind of operation. */
typedef enum {
    FM_PART_LINEAR,
    FM_PART_ATTEND,
    FM_PART_EXPERTS,
    FM_PART_MLP,
    FM_PART_HEAD,
    FM_N_PART
} fm_part;

typedef struct {
    double  seconds; /* of the step */
    double  part[FM_N_PART];
    fm_cost cost;
} fm_bound;
fm_bound fm_bound_step(const fm_model_config *c, const fm_shape *s, const fm_limits *l);

#endif
