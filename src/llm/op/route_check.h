/* SPDX-License-Identifier: Apache-2.0 */
/* Is a routing possible, given scores that are only nearly right?  Where two experts, or two
 * groups of experts, nearly tie, rounding decides which is chosen; any other deviation from the
 * top_k is an error. */
#ifndef FM_LLM_OP_ROUTE_CHECK_H
#define FM_LLM_OP_ROUTE_CHECK_H

#include <stdint.h>

#include "llm/weights/config.h"

/* The router's view of one row. */
typedef struct {
    const fm_model_config *config;
    const float           *probability; /* [n_expert] */
    const float           *bias;        /* [n_expert] added for the choice; NULL: none */
    float                  near; /* scores nearly tie that differ by this part of the larger one */
} fm_route_row;

float fm_route_score(const fm_route_row *x, int expert);

/* expert [top_k], in any order: could they be the best of the allowed groups if every score
 * were off by `near`? */
int fm_route_is_possible(const fm_route_row *x, const int32_t *expert);

#endif
