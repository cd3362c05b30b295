/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/op/exchange.h"

#include <string.h>

static int is_place(const fm_comm *group, fm_share s)
{
    return group->rank == s.index && group->n_rank == s.n;
}

/* Rank 0 has the logits of pass p - n_lane when it starts pass p.  It may wait
 * for the next stage to take pass p - 1, that one for the stage behind it to take
 * p - 3, and so on; the last may wait for rank 0 to take logits FM_LOGITS_IN_FLIGHT
 * passes before.  These must be among those it has. */
static int most_in_flight(int n_stage) { return 2 * (n_stage - 1) + FM_LOGITS_IN_FLIGHT; }

fm_status fm__check_ranks(const fm_run *r)
{
    const fm_shard *s = &r->weights->shard;
    const fm_ranks *k = &r->ranks;
    FM_BUG_UNLESS(is_place(k->attn, s->attn) && is_place(k->group, s->group) &&
                  is_place(k->channel, s->channel));
    FM_BUG_UNLESS(k->stage->rank == s->group.index * s->attn.n + s->attn.index);
    FM_BUG_UNLESS(k->stage->rank == s->expert.index * s->channel.n + s->channel.index);
    FM_BUG_UNLESS(k->stage->n_rank == s->group.n * s->attn.n &&
                  k->stage->n_rank == s->expert.n * s->channel.n);
    FM_BUG_UNLESS(k->replica->rank % k->stage->n_rank == k->stage->rank);
    const int n_stage = k->replica->n_rank / k->stage->n_rank;
    if (r->limits.n_lane > most_in_flight(n_stage))
        return fm_fail(FM_E_ARG, "%d passes in flight; %d stages carry at most %d",
                       r->limits.n_lane, n_stage, most_in_flight(n_stage));
    return FM_OK;
}

/* --- logits ------------------------------------------------------------------ */

static void put_columns(float *rows, int V, fm_range col, const float *from, int n_row)
{
    const size_t n = (size_t)fm_range_len(col);
    for (int i = 0; i < n_row; i++)
        memcpy(rows + (size_t)i * (size_t)V + col.begin, from + (size_t)i * n, n * sizeof *from);
}

/* Words `col` of n_row rows from one rank; received in place where they lie in one piece. */
static fm_status take_words(fm_run *r, float *rows, float *arrived, int n_row, fm_range col,
                            int from)
{
    const int    V = r->config->vocab, n = fm_range_len(col);
    const size_t bytes = (size_t)n_row * (size_t)n * sizeof(float);
    if (n == V || n_row == 1)
        return fm_recv(r->ranks.replica, rows + col.begin, bytes, from, FM_TAG_LOGITS);
    FM_TRY(fm_recv(r->ranks.replica, arrived, bytes, from, FM_TAG_LOGITS));
    put_columns(rows, V, col, arrived, n_row);
    return FM_OK;
}

fm_status fm__take_logits(fm_run *r, const fm_batch *b, float *rows, float *arrived,
                          const float *own)
{
    const fm_shard  *s     = &r->weights->shard;
    const int        V     = r->config->vocab;
    const fm_columns words = fm__outputs_by(s->attn, V);
    int              from  = r->ranks.replica->n_rank - r->ranks.stage->n_rank;
    for (int g = 0; g < s->group.n; g++) {
        const int n = fm__outs_of_group(b, g);
        for (int a = 0; a < s->attn.n; a++, from++) {
            const fm_range col = fm_columns_part(words, a);
            if (n == 0 || fm_range_len(col) == 0) continue;
            if (from == r->ranks.replica->rank)
                put_columns(rows, V, col, own, n);
            else
                FM_TRY(take_words(r, rows, arrived, n, col, from));
        }
        rows += (size_t)n * (size_t)V;
    }
    return FM_OK;
}

/* --- drafts ------------------------------------------------------------------ */

/* The first rank of a group speaks for it. */
static fm_status send_drafts(fm_run *r, const fm_batch *b, int n_link, const int32_t *own,
                             int stride)
{
    const size_t bytes = (size_t)b->n_out * sizeof *own;
    if (r->weights->shard.attn.index || !bytes) return FM_OK;
    for (int k = 0; k < n_link; k++)
        FM_TRY(fm_send(r->ranks.replica, own + (size_t)k * (size_t)stride, bytes, 0, FM_TAG_DRAFTS));
    return FM_OK;
}

fm_status fm__take_drafts(fm_run *r, const fm_batch *b, int n_link, const int32_t *own, int stride,
                          int32_t *all)
{
    const fm_shard *s     = &r->weights->shard;
    const int       first = r->ranks.replica->n_rank - r->ranks.stage->n_rank;
    int             n_all = 0, at = 0;
    if (r->ranks.replica->rank) return send_drafts(r, b, n_link, own, stride);
    for (int g = 0; g < s->group.n; g++) n_all += fm__outs_of_group(b, g);
    for (int g = 0; g < s->group.n; at += fm__outs_of_group(b, g++)) {
        const size_t bytes = (size_t)fm__outs_of_group(b, g) * sizeof *all;
        const int    from  = first + g * s->attn.n;
        for (int k = 0; k < n_link && bytes; k++) {
            int32_t *to = all + (size_t)k * (size_t)n_all + at;
            if (from == 0) memcpy(to, own + (size_t)k * (size_t)stride, bytes);
            else FM_TRY(fm_recv(r->ranks.replica, to, bytes, from, FM_TAG_DRAFTS));
        }
    }
    return FM_OK;
}
