/* SPDX-License-Identifier: Apache-2.0 */
/* Which worker answers a request.
 *
 *     round_robin    in turn
 *     random         any
 *     power_of_two   the less loaded of two random ones
 *     least_load     the one with the fewest requests under way
 *     cache_aware    the one where it costs least time, its own and that of the requests it
 *                    delays: prompt tokens that are not cached there and those they evict
 *                    that will be asked for again, uncached ones of requests sent before,
 *                    and what running requests add to each token of the answer
 *
 * Pure: candidates in, one of them out. */
#ifndef FM_LLM_ROUTE_POLICY_H
#define FM_LLM_ROUTE_POLICY_H

#include <stdint.h>

#include "base/status.h"

typedef enum {
    FM_ROUTE_CACHE_AWARE,
    FM_ROUTE_ROUND_ROBIN,
    FM_ROUTE_RANDOM,
    FM_ROUTE_POWER_OF_TWO,
    FM_ROUTE_LEAST_LOAD,
} fm_route_policy;

/* FM_E_ARG: there is no such policy. */
fm_status   fm_route_policy_read(fm_route_policy *out, const char *word);
const char *fm_route_policy_name(fm_route_policy p);

/* A worker that could take the request. */
typedef struct {
    int     load;           /* requests under way there */
    int64_t pending_tokens; /* uncached prompt tokens it has still to compute */
    int32_t n_cached;       /* of this prompt */
    double  n_lost;         /* tokens it evicts there that will be asked for again, expected */
    double  prefill_rate;   /* tokens per second */
    double  row_seconds;    /* that one running request adds to a decode step */
} fm_candidate;

typedef struct {
    int32_t n_prompt; /* tokens; 0: not known */
    int32_t n_output; /* tokens the answer is expected to have */
} fm_candidate_ask;

typedef struct {
    uint64_t turn, key; /* of round_robin; of random numbers */
} fm_policy_state;

/* Seconds, less what is the same everywhere. */
double fm_candidate_cost(const fm_candidate *c, const fm_candidate_ask *ask);

/* n >= 1.  Where the prompt is not known cache_aware is least_load. */
int fm_policy_choose(fm_route_policy p, const fm_candidate *c, int n, const fm_candidate_ask *ask,
                     fm_policy_state *s);

#endif
