/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/sched/queue.h"

#include <stddef.h>

static int goes_before(const fm_request *a, const fm_request *b)
{
    if (a->priority != b->priority) return a->priority > b->priority;
    return a->arrival < b->arrival;
}

void fm__queue_push(fm__queue *q, fm_request *r)
{
    r->next = NULL;
    if (q->tail) q->tail->next = r;
    else         q->head = r;
    q->tail = r;
    q->n++;
}

void fm__queue_insert(fm__queue *q, fm_request *r)
{
    if (!q->tail || goes_before(q->tail, r)) { /* the usual newcomer */
        fm__queue_push(q, r);
        return;
    }
    fm_request **link = &q->head;
    while (goes_before(*link, r)) link = &(*link)->next;
    r->next = *link;
    *link   = r;
    q->n++;
}

void fm__queue_remove(fm__queue *q, fm_request *r)
{
    fm_request *before = NULL;

    for (fm_request *i = q->head; i != r; i = i->next) {
        FM_BUG_UNLESS(i);
        before = i;
    }
    if (before) before->next = r->next;
    else        q->head = r->next;
    if (q->tail == r) q->tail = before;
    r->next = NULL;
    q->n--;
}

fm_request *fm__queue_pop(fm__queue *q)
{
    fm_request *r = q->head;
    if (r) fm__queue_remove(q, r);
    return r;
}
