/* SPDX-License-Identifier: Apache-2.0 */
/* Which layers the stages of a pipeline get. */
#ifndef FM_LLM_ENGINE_LAYERS_H
#define FM_LLM_ENGINE_LAYERS_H

#include "llm/load/weights_fill.h"
#include "llm/rank/layout.h"

typedef struct {
    const fm_model_config *config;
    const fm_shard        *shard;
    fm_source_types       *types;
    int                    n_row; /* of a usual step */
} fm__layer_costs;

/* By what a step must read: bytes of each layer's weights, of experts as many
 * as n_row rows are likely to want, and of the head. */
fm_status fm__cut_by_cost(fm_range *stage, int n_stage, const fm__layer_costs *c);

#endif
