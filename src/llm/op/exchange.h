/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks of a stage exchange, as far as it does not depend on the back end: which columns,
 * words and experts' outputs belong to whom, and logits on their way to rank 0. */
#ifndef FM_LLM_OP_EXCHANGE_H
#define FM_LLM_OP_EXCHANGE_H

#include "llm/op/run.h"

/* Outputs of a product (or words), and channels of an FFN, divided among the ranks of `by`. */
static inline fm_columns fm__outputs_by(fm_share by, int n)
{
    return (fm_columns){by.n, n, FM_SHARD_OUTPUTS, 1};
}

static inline fm_columns fm__channels_by(fm_share by, int n)
{
    return (fm_columns){by.n, n, FM_SHARD_CHANNELS, 1};
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

/* Combine: how the experts' outputs get back to the ranks that own the rows. */
typedef enum {
    FM_COMBINE_HERE,  /* every rank has computed what it needs */
    FM_COMBINE_ROWS,  /* all experts are in one set of ranks: sums over the slots are sent */
    FM_COMBINE_PAIRS, /* the slots of a row are in several sets: each output is sent */
} fm_combine;

static inline fm_combine fm__combine_of(const fm_shard *s)
{
    if (s->expert.n > 1) return FM_COMBINE_PAIRS;
    return s->group.n > 1 ? FM_COMBINE_ROWS : FM_COMBINE_HERE;
}

/* Columns of the experts' outputs that rank `channel` of a set computes and rank `attn` of a group
 * wants. */
static inline fm_range fm__combine_columns(const fm_shard *s, int hidden, int channel, int attn)
{
    return fm__overlap(fm_columns_part(fm__outputs_by(s->channel, hidden), channel),
                       fm_columns_part(fm__outputs_by(s->attn, hidden), attn));
}

enum {
    FM_LOGITS_IN_FLIGHT = 2, /* passes whose logits are on their way to rank 0 at once, at most */
    FM_TAG_LOGITS       = 2, /* of messages between stages */
    FM_TAG_DRAFTS       = 3,
};

/* Logits of a pass from the ranks of the last stage, in order: rows [outs of all groups, V].  `own`
 * are this rank's own, if it is one of them; `arrived` has room for one rank's. */
fm_status fm__take_logits(fm_run *r, const fm_batch *b, float *rows, float *arrived,
                          const float *own);

/* Drafts of a chain from the last stage to rank 0: own [n_link][own rows] with rows `stride` apart,
 * all [n_link][rows of all groups] there, else NULL. */
fm_status fm__take_drafts(fm_run *r, const fm_batch *b, int n_link, const int32_t *own, int stride,
                          int32_t *all);

/* Are the run's groups those its weights' shard speaks of?  FM_E_ARG: more
 * passes in flight than its stages carry. */
fm_status fm__check_ranks(const fm_run *r);

#endif
