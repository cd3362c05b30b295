/* SPDX-License-Identifier: Apache-2.0 */
/* A queue of requests, linked through fm_request.prev and next. */
#ifndef FM_LLM_SCHED_QUEUE_H
#define FM_LLM_SCHED_QUEUE_H

#include "llm/sched/request.h"

typedef struct {
    fm_request *head, *tail;
    int         n;
} fm__queue;

void        fm__queue_push(fm__queue *q, fm_request *r);   /* at the end */
void        fm__queue_insert(fm__queue *q, fm_request *r); /* by priority, then arrival */
void        fm__queue_remove(fm__queue *q, fm_request *r); /* it must be there */
fm_request *fm__queue_pop(fm__queue *q);                   /* the first, or NULL */

#endif
