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

/* The request that r goes behind, looked for from both ends at once: the place of a newcomer is
 * near the tail, that of a preempted request or of a higher priority near the head. */
static fm_request *place_for(const fm__queue *q, const fm_request *r)
{
    fm_request *from_tail = q->tail, *from_head = q->head;
    while (from_tail && goes_before(r, from_tail)) {
        if (!goes_before(from_head, r)) return from_head->prev;
        from_tail = from_tail->prev;
        from_head = from_head->next;
    }
    return from_tail;
}

void fm__queue_insert(fm__queue *q, fm_request *r)
{
    link_behind(q, place_for(q, r), r);
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
