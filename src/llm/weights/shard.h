/* SPDX-License-Identifier: Apache-2.0 */
/* Which part of a model one rank holds.
 *
 *     layers     a range of them, with the embedding before the first and the
 *                head behind the last
 *     attention  ranks that compute the same rows divide heads, channels of
 *                dense and shared FFNs, and words among them; several groups of
 *                such ranks have rows of their own
 *     experts    sets of ranks have whole experts; the ranks of a set divide
 *                each expert
 *
 * Only outputs are divided, never the terms of a sum: a rank has some heads of
 * q, some channels of gate and up, some outputs of every other product, and
 * gathers its inputs before.  So a number is always added up in one place and
 * in one order, and the layout moves no bit.  It sends about as much as partial
 * sums would: a product's inputs are BF16 where its partial outputs are F32. */
#ifndef FM_LLM_WEIGHTS_SHARD_H
#define FM_LLM_WEIGHTS_SHARD_H

#include "llm/weights/config.h"
#include "llm/weights/placement.h"

typedef struct {
    int index, n; /* the index-th of n parts */
} fm_share;

typedef struct {
    int begin, end;
} fm_range;

static inline int fm_range_len(fm_range r)
{
    return r.end - r.begin;
}

/* This part of n things that are divided in blocks of `unit`; may be empty.
 * Where p.n divides q.n, every part of q lies in one part of p. */
static inline fm_range fm_share_of(fm_share p, int n, int unit)
{
    const long blocks = ((long)n + unit - 1) / unit;
    const long begin = blocks * p.index / p.n * unit, end = blocks * (p.index + 1) / p.n * unit;
    return (fm_range){begin < n ? (int)begin : n, end < n ? (int)end : n};
}

enum { FM_SHARD_OUTPUTS = 32, FM_SHARD_CHANNELS = 16 }; /* units of products, and of gate and up */

typedef struct {
    fm_share  attn;    /* of the ranks that compute the same rows */
    fm_share  group;   /* of the groups of such ranks */
    fm_share  expert;  /* of the sets of ranks that have whole experts */
    fm_share  channel; /* of the ranks of such a set */
    fm_range layer;
    int      n_mtp; /* MTP layers that draft, behind the last layer: the last stage has them */
    const fm_placement *placement; /* of experts in their sets, borrowed; NULL: even */
} fm_shard;

static inline fm_shard fm_shard_whole(const fm_model_config *c)
{
    const fm_share all = {0, 1};
    return (fm_shard){.attn = all, .group = all, .expert = all, .channel = all,
                      .layer = {0, c->n_layer}};
}

static inline fm_range fm_shard_heads(const fm_shard *s, const fm_model_config *c)
{
    return fm_share_of(s->attn, c->n_head, 1);
}

/* Experts this rank has, and the most any rank of the stage has. */
static inline int fm_shard_n_expert(const fm_shard *s, const fm_model_config *c)
{
    return s->placement ? fm_placement_slots(s->placement, s->expert.index)
                        : fm_range_len(fm_share_of(s->expert, c->n_expert, 1));
}

static inline int fm_shard_most_experts(const fm_shard *s, const fm_model_config *c)
{
    return s->placement ? s->placement->most_slots : (c->n_expert + s->expert.n - 1) / s->expert.n;
}

/* Rows of a product whose outputs the ranks of `p` divide. */
static inline fm_range fm_shard_outputs(fm_share p, int n)
{
    return fm_share_of(p, n, FM_SHARD_OUTPUTS);
}

/* Channels of the widest dense or shared FFN of these layers. */
static inline int fm_shard_widest_mlp(const fm_shard *s, const fm_model_config *c)
{
    int w = c->n_shared * c->moe_inter;
    for (int l = s->layer.begin; l < s->layer.end; l++)
        if (!fm_layer_is_moe(c, l) && c->dense_inter > w) w = c->dense_inter;
    return w;
}

static inline int fm_shard_is_first(const fm_shard *s)
{
    return s->layer.begin == 0;
}

static inline int fm_shard_is_last(const fm_shard *s, const fm_model_config *c)
{
    return s->layer.end == c->n_layer;
}

#endif
