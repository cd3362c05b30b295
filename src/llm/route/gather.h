/* SPDX-License-Identifier: Apache-2.0 */
/* A client's request that all workers are asked about at once:
 *
 *     client ──> fm__gather_begin ──┬─> worker ──┐
 *                                   ├─> worker ──┼─> finish(): one reply, or a call to one worker
 *                                   └─> worker ──┘
 *
 * finish() runs when the last worker has replied, the first has given enough, or the time is
 * over; it answers g->x.  Workers that are removed meanwhile stay until then. */
#ifndef FM_LLM_ROUTE_GATHER_H
#define FM_LLM_ROUTE_GATHER_H

#include "llm/route/query.h"
#include "llm/route/route_internal.h"

/* One worker's part. */
typedef struct {
    fm__gather *gather;
    fm_worker  *worker;
    fm_query    query;
    int         is_whole; /* query has its status and reply */
    char        why[96];  /* otherwise: what went wrong */
} fm__gather_part;

struct fm__gather {
    fm_route    *route;
    fm_exchange *x;
    double       until; /* fm_now() */
    int          n_part, n_open;
    int (*is_enough)(const fm__gather_part *p); /* NULL: all are waited for */
    void (*finish)(fm__gather *g);
    const void     *ctx; /* finish's own; borrowed */
    fm__gather     *next;
    fm__gather_part part[];
};

typedef struct {
    const char *method, *target, *body;
    size_t      body_len;
    double      seconds; /* in all */
    size_t      most_bytes;
    int (*is_enough)(const fm__gather_part *p);
    void (*finish)(fm__gather *g);
    const void *ctx;
} fm__gather_ask;

/* Asks every worker that is up.  0: there is none, and nothing was done. */
int fm__gather_begin(fm_route *r, fm_exchange *x, const fm__gather_ask *ask);

#endif
