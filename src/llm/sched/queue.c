/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/sched/queue.h"

#include <stddef.h>

static int goes_before(const fm_request *a, const fm_request *b)
{
    if (a->priority != b->priority) return a->priority > b->priority;
    return a->arrival < b->arrival;
}

/* Links r behind `before`; NULL: at the head. */
static void link_behind(fm__queue *q, fm_request *before, fm_request *r)
{
    r->prev = before;
    r->next = before ? before->next : q->head;
    *(before ? &before->next : &q->head)   = r;
    *(r->next ? &r->next->prev : &q->tail) = r;
    q->n++;
}

void fm__queue_push(fm__queue *q, fm_request *r)
{
    link_behind(q, q->tail, r);
}

/* A newcomer is found a place from the tail, a preempted request from the head:
 * either is usually next to its end. */
void fm__queue_insert(fm__queue *q, fm_request *r)
{
    fm_request *before = NULL;
    if (r->n_preempted) {
        for (fm_request *at = q->head; at && goes_before(at, r); at = at->next) before = at;
    } else {
        before = q->tail;
        while (before && goes_before(r, before)) before = before->prev;
    }
    link_behind(q, before, r);
}

void fm__queue_remove(fm__queue *q, fm_request *r)
{
    FM_BUG_UNLESS(q->n > 0);
    *(r->prev ? &r->prev->next : &q->head) = r->next;
    *(r->next ? &r->next->prev : &q->tail) = r->prev;
    r->prev = r->next = NULL;
    q->n--;
}

fm_request *fm__queue_pop(fm__queue *q)
{
    fm_request *r = q->head;
    if (r) fm__queue_remove(q, r);
    return r;
}
