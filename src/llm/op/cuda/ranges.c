/* SPDX-License-Identifier: Apache-2.0 */
/* Passes and ops as named ranges for a profiler that is attached (device/cuda/ranges.h).  Ops of a
 * pass that is replayed have none: they are launched as one. */
#include <stdio.h>

#include "device/cuda/ranges.h"
#include "llm/op/cuda/cuda_internal.h"

static void op_begins(fm_op_hook *h, fm_run *r, const fm_op_call *c)
{
    char name[64];
    (void)h, (void)r;
    if (c->layer == FM_NO_LAYER)
        snprintf(name, sizeof name, "%s", fm_op_name(c->op));
    else
        snprintf(name, sizeof name, "%s, layer %d", fm_op_name(c->op), c->layer);
    fm_range_push(name);
}

static void op_ends(fm_op_hook *h, fm_run *r, const fm_op_call *c)
{
    (void)h, (void)r, (void)c;
    fm_range_pop();
}

void fm__cuda_ranges_open(fm_run *r)
{
    fm_cuda_ranges *n = &fm__gpu(r)->ranges;
    if (!fm_ranges_are_read()) return;
    n->are_read = 1;
    n->hook     = (fm_op_hook){.begin = op_begins, .end = op_ends};
    fm_run_add_hook(r, &n->hook);
}

void fm__cuda_ranges_pass(fm_run *r)
{
    char name[64];
    if (!fm__gpu(r)->ranges.are_read) return;
    snprintf(name, sizeof name, "%s of %d rows", r->batch->link ? "draft" : "pass",
             r->batch->n_row);
    fm_range_push(name);
}

void fm__cuda_ranges_end(fm_run *r)
{
    if (fm__gpu(r)->ranges.are_read) fm_range_pop();
}
