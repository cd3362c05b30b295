/* SPDX-License-Identifier: Apache-2.0 */
/* A circuit breaker: after several failures in a row a worker gets no requests
 * for a while, then one at a time until enough of them have gone well.
 *
 *     closed ──failures in a row──> open ──time──> half open ──successes──> closed
 *                                    ^                 └─failure─┐
 *                                    └───────────────────────────┘
 *
 * Pure: the caller brings the time. */
#ifndef FM_LLM_ROUTE_BREAKER_H
#define FM_LLM_ROUTE_BREAKER_H

typedef enum { FM_BREAKER_CLOSED, FM_BREAKER_OPEN, FM_BREAKER_HALF_OPEN } fm_breaker_state;

typedef struct {
    int    failures;  /* in a row that open it; 0: it never opens */
    int    successes; /* in a row that close it again */
    double seconds;   /* it stays open */
} fm_breaker_options;

typedef struct {
    fm_breaker_state state;
    int              n_failure, n_success; /* in a row */
    int              n_trial;              /* requests under way while half open */
    double           opened;
} fm_breaker; /* {0} is closed */

/* May a request be sent now?  Turns half open when it is time. */
int fm_breaker_allows(fm_breaker *b, const fm_breaker_options *o, double now);

/* A request is sent; how it ended is told by one of the other two.  A request that was
 * cancelled says nothing about the worker: fm_breaker_forget(). */
void        fm_breaker_begin(fm_breaker *b);
void        fm_breaker_succeed(fm_breaker *b, const fm_breaker_options *o);
void        fm_breaker_fail(fm_breaker *b, const fm_breaker_options *o, double now);
void        fm_breaker_forget(fm_breaker *b);
const char *fm_breaker_name(fm_breaker_state s); /* "closed", "open", "half_open" */

#endif
