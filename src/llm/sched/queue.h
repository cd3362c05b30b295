/* SPDX-License-Identifier: Apache-2.0 */
/* A queue of requests, linked through fm_request.link: a skip list, so that the place of a
 * newcomer is found in O(log n) steps whatever its priority and however many wait.
 *
 *     level 2   a ─────────────── e
 *     level 1   a ───── c ─────── e ─ f        about one request in four of the level below
 *     level 0   a ─ b ─ c ─ d ─── e ─ f ─ g    all, in their order
 *
 * Nothing allocates.  A request is in one queue at most. */
#ifndef FM_LLM_SCHED_QUEUE_H
#define FM_LLM_SCHED_QUEUE_H

#include "llm/sched/request.h"

/* {0} is empty. */
typedef struct {
    fm_queue_link end[FM_QUEUE_LEVELS]; /* of a level: next is the first request, prev the last */
    int           n;
    uint32_t      n_inserted; /* ever: draws the levels of the next */
} fm__queue;

void        fm__queue_push(fm__queue *q, fm_request *r);   /* at the end; O(1) */
void        fm__queue_insert(fm__queue *q, fm_request *r); /* by priority, then arrival */
void        fm__queue_remove(fm__queue *q, fm_request *r); /* it must be there; O(1) */
fm_request *fm__queue_pop(fm__queue *q);                   /* the first, or NULL */

static inline fm_request *fm__queue_first(const fm__queue *q) { return q->end[0].next; }

#endif
