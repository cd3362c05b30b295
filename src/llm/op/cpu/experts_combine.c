/* SPDX-License-Identifier: Apache-2.0 */
/* Combine: the experts' outputs go to the ranks that own the rows and are summed there.
 *
 *     here  (set q, channel j):  for each group g, for each of its ranks a:
 *                                [items of g's rows, own columns that a wants]
 *     there (group g, rank a):   for each set q, for each of its ranks j:
 *                                [items of own rows, columns j has of those wanted]
 *
 * An item is a (row, slot) pair whose expert the sender has, by row and slot;
 * where one set has all experts, it is a row, summed by the sender.  Both sides
 * know all counts from the routing. */
#include <omp.h>

#include "llm/kernel/rows/rows.h"
#include "llm/op/cpu/experts_internal.h"

/* out [k, D] of a row */
static void sum_slots(float *sum, const float *out, const float *weight, int k, int D)
{
    memset(sum, 0, (size_t)D * sizeof *sum);
    for (int slot = 0; slot < k; slot++)
        fm_row_scale_add(sum, out + (size_t)slot * (size_t)D, weight[slot], D);
}

static float *thread_row(const fm_cpu *b)
{
    return b->scratch[omp_get_thread_num()].row;
}

/* The sum over slots is complete before it is added to y: one order, accumulate or not. */
void fm__sum_here(const fm_expert_pass *p, fm_f32s y, int accumulate)
{
    const size_t k = (size_t)p->r->config->top_k;
#pragma omp for schedule(static)
    for (int i = 0; i < p->n_row; i++) {
        float *to  = y.data + (size_t)(p->row0 + i) * (size_t)y.width;
        float *sum = accumulate ? thread_row(p->b) : to;
        sum_slots(sum, p->b->pair_out + (size_t)i * k * (size_t)y.width, p->weight + (size_t)i * k,
                  (int)k, y.width);
        if (accumulate) fm_row_add(to, sum, y.width);
    }
}

/* --- here ------------------------------------------------------------------ */

static void sum_for_group(const fm_expert_pass *p, int group)
{
    fm_cpu_exchange   *x     = &p->b->exchange;
    const fm_range rows  = fm__rows_in_pass(p, group);
    const int      width = fm_range_len(p->col), k = p->r->config->top_k;
    x->first_item[group]     = rows.begin;
    x->first_item[group + 1] = rows.end;
#pragma omp parallel for schedule(static) num_threads(p->b->n_thread)
    for (int i = rows.begin; i < rows.end; i++) {
        float       *sum = thread_row(p->b);
        const size_t at  = (size_t)i * (size_t)k;
        sum_slots(sum, p->b->pair_out + at * (size_t)width, p->weight + at, k, width);
        for (int a = 0; a < x->y.col.n_part; a++) {
            const fm_range seg = fm__wanted(p, a);
            float *to = fm__item_at(x->row_sum, width, rows.begin, fm_range_len(rows), seg, i);
            memcpy(to, sum + seg.begin, (size_t)fm_range_len(seg) * sizeof *to);
        }
    }
}

static void count_sent(const fm_expert_pass *p)
{
    fm_cpu_exchange    *x = &p->b->exchange;
    const fm_shard *s = &p->r->weights->shard;
    for (int i = 0; i < s->group.n * s->attn.n; i++) {
        const int32_t *first = &x->first_item[i / s->attn.n];
        const int      n     = fm_range_len(fm__wanted(p, i % s->attn.n));
        x->send_bytes[i]     = (size_t)(first[1] - first[0]) * (size_t)n * sizeof(float);
    }
}

/* --- there ----------------------------------------------------------------- */

/* Of each slot of the own rows: the place of its item among those of its set. */
static void number_items(const fm_expert_pass *p, fm_range rows)
{
    fm_cpu_exchange *x     = &p->b->exchange;
    const int    n_set = p->where->n_set;
    const int    k     = x->way == FM_COMBINE_PAIRS ? p->r->config->top_k : 1;
    memset(x->set_items, 0, (size_t)n_set * sizeof *x->set_items);
    for (int i = 0; i < fm_range_len(rows) * k; i++) {
        const int set   = n_set > 1 ? fm__copy_of(p, rows.begin * k + i).set : 0;
        x->slot_item[i] = x->set_items[set]++;
    }
}

static void count_received(const fm_expert_pass *p)
{
    fm_cpu_exchange     *x    = &p->b->exchange;
    const fm_shard  *s    = &p->r->weights->shard;
    const fm_range   mine = fm_columns_part(x->y.col, s->attn.index);
    size_t           at   = 0;
    for (int j = 0; j < s->channel.n; j++) {
        const fm_range w = fm__combine_columns(s, p->r->config->hidden, j, s->attn.index);
        x->seen[j]       = (fm_range){w.begin - mine.begin, w.end - mine.begin};
    }
    for (int i = 0; i < s->expert.n * s->channel.n; i++) {
        const size_t n = (size_t)x->set_items[i / s->channel.n] *
                         (size_t)fm_range_len(x->seen[i % s->channel.n]);
        x->from[i]       = at;
        x->recv_bytes[i] = n * sizeof(float);
        at += n;
    }
}

static void add_item(const fm_cpu_exchange *x, float *sum, int set, int n_channel, int item,
                     float weight)
{
    for (int j = 0; j < n_channel; j++) {
        const int    n  = fm_range_len(x->seen[j]);
        const size_t at = x->from[set * n_channel + j] + (size_t)item * (size_t)n;
        if (n) fm_row_scale_add(sum + x->seen[j].begin, x->received + at, weight, n);
    }
}

/* A sum that came whole is one slot with weight 1: the same bits. */
static void sum_row(const fm_expert_pass *p, float *sum, int row, int i)
{
    const fm_cpu_exchange *x = &p->b->exchange;
    const fm_shard    *s = &p->r->weights->shard;
    const int          k = p->r->config->top_k;
    if (x->way == FM_COMBINE_ROWS) {
        add_item(x, sum, 0, s->channel.n, x->slot_item[i], 1);
        return;
    }
    for (int slot = 0; slot < k; slot++)
        add_item(x, sum, fm__copy_of(p, row * k + slot).set, s->channel.n,
                 x->slot_item[i * k + slot], p->weight[row * k + slot]);
}

static void sum_received(const fm_expert_pass *p, fm_range rows, fm_f32s y, int accumulate)
{
    int own0 = p->row0;
    for (int g = 0; g < p->r->weights->shard.group.index; g++)
        own0 -= fm__rows_of_group(p->r->batch, g);
#pragma omp parallel for schedule(static) num_threads(p->b->n_thread)
    for (int i = rows.begin; i < rows.end; i++) {
        float *to  = y.data + (size_t)(own0 + i) * (size_t)y.width;
        float *sum = accumulate ? thread_row(p->b) : to;
        memset(sum, 0, (size_t)y.width * sizeof *sum);
        sum_row(p, sum, i, i - rows.begin);
        if (accumulate) fm_row_add(to, sum, y.width);
    }
}

void fm__send_home(const fm_expert_pass *p, fm_f32s y, int accumulate)
{
    fm_cpu_exchange   *x    = &p->b->exchange;
    const fm_share g    = p->r->weights->shard.group;
    const fm_range rows = fm__rows_in_pass(p, g.index);
    const int      sums = x->way == FM_COMBINE_ROWS;
    for (int i = 0; sums && i < g.n; i++) sum_for_group(p, i);
    count_sent(p);
    number_items(p, rows);
    count_received(p);
    if (fm__is_well(p->r, fm_all_to_all(p->r->ranks.stage, x->received, x->recv_bytes,
                                        sums ? x->row_sum : p->b->pair_out, x->send_bytes)))
        sum_received(p, rows, y, accumulate);
}
