/* SPDX-License-Identifier: Apache-2.0 */
/* How the ranks of a stage divide columns and rows, for every back end. */
#ifndef FM_LLM_OP_PARTS_H
#define FM_LLM_OP_PARTS_H

#include "llm/op/run.h"

/* n things of `width` elements each, divided in blocks of `unit` things. */
typedef struct {
    int n_part, n, unit, width;
} fm_columns;

static inline fm_range fm__part(fm_columns c, int part) /* in elements */
{
    const fm_range r = fm_share_of((fm_share){part, c.n_part}, c.n, c.unit);
    return (fm_range){r.begin * c.width, r.end * c.width};
}

/* The part that has the i-th thing: the last that begins at its block or before. */
static inline int fm__part_of(fm_columns c, int i)
{
    const long blocks = ((long)c.n + c.unit - 1) / c.unit;
    return (int)(((long)(i / c.unit + 1) * c.n_part - 1) / blocks);
}

static inline fm_range fm__overlap(fm_range a, fm_range b)
{
    const int begin = a.begin > b.begin ? a.begin : b.begin, end = a.end < b.end ? a.end : b.end;
    return (fm_range){begin, end > begin ? end : begin};
}

/* Marks the run; 1 if all is well. */
static inline int fm__is_well(fm_run *r, fm_status rc)
{
    if (rc != FM_OK && r->fault == FM_OK) r->fault = rc;
    return rc == FM_OK;
}

static inline int fm__rows_of_group(const fm_batch *b, int group)
{
    return b->group_rows ? b->group_rows[group] : b->n_row;
}

static inline int fm__outs_of_group(const fm_batch *b, int group)
{
    return b->group_outs ? b->group_outs[group] : b->n_out;
}

static inline int fm__rows_of_all(const fm_run *r)
{
    int n = 0;
    for (int g = 0; g < r->weights->shard.group.n; g++) n += fm__rows_of_group(r->batch, g);
    return n;
}

enum { FM_LOGIT_LANES = 2 }; /* logits on their way to rank 0 at once, at most */

/* Are the run's groups those its weights' shard speaks of?  FM_E_ARG: more
 * passes in flight than its stages carry. */
fm_status fm__check_ranks(const fm_run *r); /* op/cpu/exchange_carve.c */

#endif
