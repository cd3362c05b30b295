/* SPDX-License-Identifier: Apache-2.0 */
/* What an op must do at least: bytes of weights and cached tokens it has to read once, and
 * multiplications and additions.  For holding measured times against a machine's limits.
 *
 * Activations are not counted: they stay in caches.  Ops that only move or change single rows have
 * no cost here. */
#ifndef FM_LLM_OP_COST_H
#define FM_LLM_OP_COST_H

#include "llm/op/run.h"

typedef struct {
    double bytes, flops;
} fm_op_cost;

/* Of a matrix as it is stored, scales included. */
double fm_matrix_bytes(const fm_matrix *w);

/* Attention of one layer: what n_head heads meet. */
typedef struct {
    double up, up_bytes; /* weights that make keys and values of a token's latent */
    double wide, head;   /* numbers a query multiplies per key: of a generated, of a prompt row */
    double out;          /* numbers that a row gets from all heads of the model */
} fm_attend_sizes;
fm_attend_sizes fm_attend_sizes_of(const fm_model_config *c, const fm_attn_weights *w, int n_head);

/* Of the op that just ended; r is still in its pass.  Experts are counted by the routing where the
 * host can read it (`on_host`), otherwise as many as rows meet when all are equally likely. */
fm_op_cost fm_op_cost_of(const fm_run *r, const fm_op_call *c, int on_host);

/* The type in which the op's weights are multiplied; FM_F32 in the reference arithmetic. */
fm_dtype fm_op_factor(const fm_run *r, const fm_op_call *c, int on_host);

#endif
