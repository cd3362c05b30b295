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

/* Of the op that just ended; r is still in its pass.  Experts are counted by the routing where the
 * host can read it (`on_host`), otherwise as many as rows meet when all are equally likely. */
fm_op_cost fm_op_cost_of(const fm_run *r, const fm_op_call *c, int on_host);

/* The type in which the op's weights are multiplied; FM_F32 in the reference arithmetic. */
fm_dtype fm_op_factor(const fm_run *r, const fm_op_call *c, int on_host);

#endif
