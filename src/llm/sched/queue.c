/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/sched/queue.h"

#include <stddef.h>

#include "base/rng.h"

static int goes_before(const fm_request *a, const fm_request *b)
{
    if (a->priority != b->priority) return a->priority > b->priority;
    return a->arrival < b->arrival;
}

/* NULL: the end of the queue, on both sides. */
static fm_queue_link *link_of(fm__queue *q, fm_request *r, int level)
{
    return r ? &r->link[level] : &q->end[level];
}

static void link_before(fm__queue *q, fm_request *after, fm_request *r, int level)
{
    fm_request *before              = link_of(q, after, level)->prev;
    r->link[level]                  = (fm_queue_link){before, after};
    link_of(q, before, level)->next = r;
    link_of(q, after, level)->prev  = r;
}

void fm__queue_push(fm__queue *q, fm_request *r)
{
    r->n_level = 1;
    link_before(q, NULL, r, 0);
    q->n++;
}

/* 1 for three requests of four, 2 for three of four of the others, … */
static int draw_levels(fm__queue *q)
{
    const uint32_t last = 1u << 2 * (FM_QUEUE_LEVELS - 1);
    return 1 + __builtin_ctz(fm_mix32(++q->n_inserted) | last) / 2;
}

/* The place is looked for from the end, where most newcomers go, and down from the highest level. */
void fm__queue_insert(fm__queue *q, fm_request *r)
{
    fm_request *after = NULL;
    r->n_level        = draw_levels(q);
    for (int level = FM_QUEUE_LEVELS - 1; level >= 0; level--) {
        fm_request *before;
        while ((before = link_of(q, after, level)->prev) && goes_before(r, before)) after = before;
        if (level < r->n_level) link_before(q, after, r, level);
    }
    q->n++;
}

void fm__queue_remove(fm__queue *q, fm_request *r)
{
    FM_BUG_UNLESS(q->n > 0);
    for (int level = 0; level < r->n_level; level++) {
        const fm_queue_link at           = r->link[level];
        link_of(q, at.prev, level)->next = at.next;
        link_of(q, at.next, level)->prev = at.prev;
        r->link[level]                   = (fm_queue_link){NULL, NULL};
    }
    q->n--;
}

fm_request *fm__queue_pop(fm__queue *q)
{
    fm_request *r = fm__queue_first(q);
    if (r) fm__queue_remove(q, r);
    return r;
}
