/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/route/policy.h"

#include <string.h>

#include "base/rng.h"

static const char *const names[] = {"cache_aware", "round_robin", "random", "power_of_two",
                                    "least_load"};
enum { N_NAME = sizeof names / sizeof names[0] };

fm_status fm_route_policy_read(fm_route_policy *out, const char *word)
{
    for (int i = 0; i < N_NAME; i++)
        if (!strcmp(word, names[i])) {
            *out = (fm_route_policy)i;
            return FM_OK;
        }
    return fm_fail(FM_E_ARG,
                   "--policy %.40s is not known: cache_aware, round_robin, random, power_of_two or "
                   "least_load",
                   word);
}

const char *fm_route_policy_name(fm_route_policy p) { return names[p]; }

/* A prompt token that is computed delays more requests than its own: those that decode there and
 * those that come before the worker is idle again.  With 1 every worker computes every prefix as
 * soon as that is quicker than the queue of the one that has it, and in the end all wait longer;
 * with 20 a prefix that most requests share stays on one worker while others are idle.  What a load
 * needs lies between 4 and 8 (route_loads.c). */
static const double delayed = 5;

/* Requests that wait there for a prefix that is being computed are no work of their own: their
 * uncached tokens are pending, and their number counts for what it adds to decode steps. */
double fm_candidate_cost(const fm_candidate *c, const fm_candidate_ask *ask)
{
    const double work = ask->n_prompt - c->n_cached + c->n_lost; /* now, and again some day */
    return (work * delayed + (double)c->pending_tokens) / c->prefill_rate +
           (double)c->load * c->row_seconds * (double)ask->n_output;
}

static uint32_t draw(fm_policy_state *s) { return fm_rng_u32(s->key, s->turn++); }

/* The smallest; among equals the next in turn, so that idle workers share the work. */
static int smallest(const fm_candidate *c, int n, const fm_candidate_ask *ask, fm_policy_state *s)
{
    const int first = (int)(s->turn++ % (uint64_t)n);
    int       best  = first;
    for (int k = 1; k < n; k++) {
        const int    i = (first + k) % n;
        const double a = ask ? fm_candidate_cost(&c[i], ask) : c[i].load,
                     b = ask ? fm_candidate_cost(&c[best], ask) : c[best].load;
        if (a < b) best = i;
    }
    return best;
}

static int of_two(const fm_candidate *c, int n, fm_policy_state *s)
{
    const int a = (int)(draw(s) % (uint32_t)n);
    if (n == 1) return a;
    const int b = (a + 1 + (int)(draw(s) % (uint32_t)(n - 1))) % n;
    return c[b].load < c[a].load ? b : a;
}

int fm_policy_choose(fm_route_policy p, const fm_candidate *c, int n, const fm_candidate_ask *ask,
                     fm_policy_state *s)
{
    FM_BUG_UNLESS(n >= 1);
    switch (p) {
    case FM_ROUTE_ROUND_ROBIN: return (int)(s->turn++ % (uint64_t)n);
    case FM_ROUTE_RANDOM: return (int)(draw(s) % (uint32_t)n);
    case FM_ROUTE_POWER_OF_TWO: return of_two(c, n, s);
    case FM_ROUTE_LEAST_LOAD: return smallest(c, n, NULL, s);
    case FM_ROUTE_CACHE_AWARE: return smallest(c, n, ask->n_prompt ? ask : NULL, s);
    }
    return 0;
}
