/* SPDX-License-Identifier: Apache-2.0 */
/* One pass of rows through the experts. */
#ifndef FM_LLM_OP_CPU_EXPERTS_INTERNAL_H
#define FM_LLM_OP_CPU_EXPERTS_INTERNAL_H

#include "llm/op/cpu/cpu_internal.h"

typedef struct {
    fm_run               *r;
    fm_cpu               *b;
    fm_act                h;      /* rows of all groups */
    fm_quantised          x;      /* those of the pass, as the first product takes them */
    int                   quantises; /* the second product, its rows too */
    const int32_t        *chosen; /* [n_row, k] experts */
    const float          *weight; /* [n_row, k] */
    const fm_mlp_weights *expert;
    int                   row0, n_row;     /* of all groups' rows */
    const fm_placement   *where;           /* the experts lie */
    int                   set;             /* of ranks that this one is in */
    fm_range              col;             /* columns of D it computes of them */
    int                   n_pair, n_block; /* of its experts */
} fm_expert_pass;

/* The copy that computes pair i = row * k + slot of the pass. */
static inline fm_expert_copy fm__copy_of(const fm_expert_pass *p, int i)
{
    return fm_placement_copy(p->where, p->chosen[i], p->row0 + i / p->r->config->top_k);
}

/* Rows of `group` in the pass, counted from the pass's first. */
fm_range fm__rows_in_pass(const fm_expert_pass *p, int group);

/* Where column block `seg` (of the own columns) of an item lies that is one of
 * `n` for a group, the first of them being item `first`:
 *     for each group, for each of its ranks: [items, columns that rank wants] */
static inline float *fm__item_at(float *base, int width, int first, int n, fm_range seg, int item)
{
    return base + (size_t)first * (size_t)width + (size_t)n * (size_t)seg.begin +
           (size_t)(item - first) * (size_t)fm_range_len(seg);
}

/* The own columns that rank `a` of an attention group wants, counted from the first. */
static inline fm_range fm__wanted(const fm_expert_pass *p, int a)
{
    const fm_shard *s = &p->r->weights->shard;
    const fm_range  w = fm__combine_columns(s, p->r->config->hidden, s->channel.index, a);
    return (fm_range){w.begin - p->col.begin, w.end - p->col.begin};
}

/* experts_combine.c: y[row] (+)= sum over slots, in slot order, of weight *
 * output; the first is called by all threads of a team */
void fm__sum_here(const fm_expert_pass *p, fm_f32s y, int accumulate);
void fm__send_home(const fm_expert_pass *p, fm_f32s y, int accumulate);

#endif
