/* SPDX-License-Identifier: Apache-2.0 */
/* What a router that knew the whole load could reach: hill climbing over the servers of all
 * requests, from what the policy chose, to the least p99 of the time to the first token (and a
 * little to the least p50).  A lower bound of what is possible, no policy. */
#ifndef FM_TEST_ROUTE_SEARCH_H
#define FM_TEST_ROUTE_SEARCH_H

#include "route_model.h"

model_result model_search(const model_load *l, int n_core, uint64_t seed, int n_try);

#endif
