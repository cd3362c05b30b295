/* SPDX-License-Identifier: Apache-2.0 */
/* Which layers the stages of a pipeline get. */
#ifndef FM_LLM_OPEN_LAYERS_H
#define FM_LLM_OPEN_LAYERS_H

#include "llm/load/weights_fill.h"
#include "llm/rank/layout.h"

enum { FM__N_DTYPE = FM_E8M0 + 1 };

/* What a byte of weights costs in a usual step, by its type.  An expert's has
 * fewer rows to serve than another matrix's. */
typedef struct {
    double dense[FM__N_DTYPE], expert[FM__N_DTYPE];
} fm__prices;

fm__prices fm__prices_of_bytes(void); /* 1 for each: the memory decides */

/* By the clock: the CPU's kernels on a block of memory larger than its caches,
 * with the types a model in this arithmetic has.  Takes some milliseconds. */
fm_status fm__prices_measure(fm__prices *out, const fm_model_config *c, fm_dtype act, int n_row);

typedef struct {
    const fm_model_config *config;
    const fm_shard        *shard;
    fm_source_types       *types;
    const fm__prices      *price;
    int                    n_row; /* of a usual step */
} fm__layer_costs;

/* By what a step of n_row rows costs in each layer, of experts as many as these
 * rows are likely to want, and in the head. */
fm_status fm__cut_by_cost(fm_range *stage, int n_stage, const fm__layer_costs *c);

#endif
