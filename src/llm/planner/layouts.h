/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts worth looking at: every division of so many ranks into tp, pp and dp, with experts
 * divided or whole, and with DP attention. */
#ifndef FM_LLM_PLANNER_LAYOUTS_H
#define FM_LLM_PLANNER_LAYOUTS_H

#include "llm/rank/layout.h"
#include "llm/weights/config.h"

/* Sizes that the user fixed; 0: any.  dp_attention -1: any. */
typedef struct {
    int tp, pp, dp, ep, dp_attention;
} fm_layout_wish;

/* Appends to list[most] those of n_rank ranks that the model allows; returns their number. */
int fm_layouts_of(fm_rank_sizes *list, int most, int n_rank, const fm_model_config *c,
                  const fm_layout_wish *wish);

#endif
