/* SPDX-License-Identifier: Apache-2.0 */
/* Exchanges of the ranks of a stage: all-gather of columns, embeddings of divided vocabularies, and
 * the dispatch of rows to the ranks that have their experts. */
#include <sched.h>
#include <string.h>

#include "base/clock.h"
#include "llm/kernel/cuda/exchange/columns.h"
#include "llm/kernel/cuda/rows/rows.h"
#include "llm/op/cuda/cuda_internal.h"

/* --- groups ---------------------------------------------------------------- */

static fm_status open_group(fm_device_comm **out, fm_comm *group, fm_gpu_meeting how,
                            fm_staging room)
{
    if (group->n_rank == 1) return FM_OK;
    return how == FM_MEET_BY_NCCL ? fm_device_comm_open_nccl(out, group)
                                  : fm_device_comm_open_staged(out, group, room);
}

static fm_status make_staging(fm_cuda_exchange *x)
{
    FM_TRY(fm_cuda_alloc_pinned((void **)&x->staging.bytes, x->most_bytes, "messages to ranks"));
    x->staging.size = x->most_bytes;
    return FM_OK;
}

static fm_status open_groups(fm_run *r, const fm_run_cuda_options *o)
{
    fm_cuda_exchange *x = &fm__gpu(r)->exchange;
    const fm_ranks   *k = &r->ranks;
    if (o->meeting == FM_MEET_BY_HOST) FM_TRY(make_staging(x));
    FM_TRY(open_group(&x->replica, k->replica, o->meeting, x->staging));
    FM_TRY(open_group(&x->stage, k->stage, o->meeting, x->staging));
    FM_TRY(open_group(&x->attn, k->attn, o->meeting, x->staging));
    FM_TRY(open_group(&x->group, k->group, o->meeting, x->staging));
    return open_group(&x->channel, k->channel, o->meeting, x->staging);
}

fm_status fm__cuda_meet(fm_run *r, const fm_run_cuda_options *o)
{
    fm_cuda_run *g   = fm__gpu(r);
    g->exchange.self = fm_comm_self();
    r->ranks         = o->ranks ? *o->ranks : fm_ranks_self(&g->exchange.self);
    FM_TRY(fm__check_ranks(r));
    if (r->ranks.replica->n_rank == 1) return FM_OK;
    if (o->meeting == FM_MEET_BY_HOST) g->records = 0;   /* it waits for the stream */
    if (!fm__cuda_is_one_stage(r)) g->ops.sample = NULL; /* logits come to the host */
    return open_groups(r, o);
}

/* A failed call has broken the group; its owner reports that when it closes the group. */
void fm__cuda_part(fm_run *r)
{
    fm_cuda_exchange *x = &fm__gpu(r)->exchange;
    for (int i = 0; i < FM_LOGITS_IN_FLIGHT; i++) {
        fm_comm_job *job = &x->logit_job[i];
        if (job->comm && !job->is_done && !job->comm->is_broken) (void)fm_comm_wait(job);
    }
    fm_device_comm_close(x->channel);
    fm_device_comm_close(x->group);
    fm_device_comm_close(x->attn);
    fm_device_comm_close(x->stage);
    fm_device_comm_close(x->replica);
}

static fm_status check_groups(const fm_cuda_exchange *x)
{
    fm_device_comm *const all[] = {x->replica, x->stage, x->attn, x->group, x->channel};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i]) FM_TRY(fm_device_comm_check(all[i]));
    return FM_OK;
}

/* Polling, as cudaStreamSynchronize does, but with a time limit. */
static fm_status wait_for(fm_run *r, fm_mark m)
{
    const fm_cuda_run *g     = fm__gpu(r);
    const double       since = fm_now();
    for (int done = 0;;) {
        FM_TRY(m ? fm_cuda_mark_is_reached(m, &done) : fm_cuda_stream_is_done(g->stream, &done));
        if (done) return FM_OK;
        FM_TRY(check_groups(&g->exchange));
        if (fm_now() - since > FM_CUDA_PATIENCE)
            return fm_fail(FM_E_DEVICE, "pass %u on the GPU is not done after %d seconds",
                           g->n_pass, FM_CUDA_PATIENCE);
        sched_yield();
    }
}

fm_status fm__cuda_wait(fm_run *r)
{
    return wait_for(r, NULL);
}

fm_status fm__cuda_reach(fm_run *r, fm_mark m)
{
    return wait_for(r, m);
}

/* --- columns --------------------------------------------------------------- */

void fm__cuda_gather(fm_run *r, const fm_cuda_pieces *p, fm_device_comm *c, void *rows, int n_row,
                     int add)
{
    fm_cuda_run *g     = fm__gpu(r);
    size_t      *bytes = g->exchange.recv_n;
    const size_t row   = (size_t)n_row * p->element;
    char        *first = p->own - row * (size_t)fm_columns_part(p->col, c->group->rank).begin;
    if (r->fault != FM_OK || n_row == 0) return;
    for (int i = 0; i < p->col.n_part; i++)
        bytes[i] = row * (size_t)fm_range_len(fm_columns_part(p->col, i));
    const fm_cuda_unpack_args a = {.y       = rows,
                                   .piece   = first,
                                   .parts   = {p->col.n_part, p->col.n, p->col.unit, p->col.width},
                                   .element = (int)p->element,
                                   .add     = add,
                                   .n_row   = n_row};
    if (fm__is_well(r, fm_device_all_gather(c, first, p->own, bytes, g->stream)))
        r->fault = fm_cuda_unpack(&a, g->stream);
}

void fm__cuda_gather_act(fm_run *r, fm_act all, fm_act mine)
{
    const fm_cuda_exchange *x = &fm__gpu(r)->exchange;
    (void)mine; /* lies where its piece does */
    if (x->attn) fm__cuda_gather(r, &x->o, x->attn, all.data, r->n_row, 0);
}

void fm__cuda_gather_add(fm_run *r, fm_f32s x, fm_f32s y)
{
    const fm_cuda_run *g = fm__gpu(r);
    if (!g->exchange.attn) {
        fm__cuda_add_later(r, x, y);
        return;
    }
    fm__cuda_settle(r);
    fm__cuda_gather(r, &g->exchange.y, g->exchange.attn, x.data, r->n_row, 1);
}

/* --- words ----------------------------------------------------------------- */

/* Rows that every rank contributes, though only those of its words mean anything:
 * where the token is not known, and in a padded step, whose messages do not follow
 * the tokens, all. */
static int is_shared(const fm_cuda_run *g, int row)
{
    return g->pass.is_padded || g->here.token[row] < 0;
}

typedef struct {
    fm_columns words;
    int        part;
    int32_t    at; /* words there are so far, of this and other ranks */
} word_lists;

static int has_word(const word_lists *w, int32_t token)
{
    return token >= 0 && fm__part_of(w->words, token) == w->part;
}

static void list_own_words(fm_cuda_run *g, word_lists *w, int n_row, int is_own)
{
    const fm_cuda_lists *l = &g->here;
    for (int i = 0; i < n_row; i++) {
        if (is_shared(g, i) || !has_word(w, l->token[i])) continue;
        if (is_own)
            l->own_word[g->pass.n_own_word++] = l->token[i] - fm_columns_part(w->words, w->part).begin;
        l->word_at[i] = w->at++;
    }
}

static void list_shared_words(fm_cuda_run *g, word_lists *w, int n_row, int is_own)
{
    const fm_cuda_lists *l     = &g->here;
    const int            first = fm_columns_part(w->words, w->part).begin;
    int32_t              p     = 0;
    l->word_base[w->part]      = w->at;
    for (int i = 0; i < n_row; i++) {
        const int32_t token = l->token[i];
        if (!is_shared(g, i)) continue;
        if (is_own)
            l->own_word[g->pass.n_own_word++] = token < 0           ? token - 1
                                                : has_word(w, token) ? token - first
                                                                     : -1;
        if (has_word(w, token)) l->word_at[i] = w->at;
        else if (token < 0) l->word_at[i] = -1 - p;
        p++;
        w->at++;
    }
}

/* Each rank contributes the rows of its words, in row order, then the shared ones. */
void fm__cuda_list_words(fm_run *r)
{
    fm_cuda_run   *g    = fm__gpu(r);
    const fm_share attn = r->weights->shard.attn;
    word_lists     w    = {fm__outputs_by(attn, r->config->vocab), 0, 0};
    g->pass.n_own_word  = 0;
    for (int k = 0; attn.n > 1 && k < attn.n; k++) {
        const int32_t before = w.at;
        w.part               = k;
        list_own_words(g, &w, r->n_row, k == attn.index);
        list_shared_words(g, &w, r->n_row, k == attn.index);
        g->exchange.word_rows[k] = w.at - before;
    }
    g->pass.n_word = w.at;
}

static fm_status find_words(fm_run *r)
{
    const fm_cuda_run *g    = fm__gpu(r);
    const fm_share     attn = r->weights->shard.attn;
    const fm_cuda_find_words_args a = {.own    = g->there.own_word,
                                       .at     = g->there.word_at,
                                       .token  = g->there.token,
                                       .chosen = fm__cuda_chosen(r),
                                       .base   = g->there.word_base,
                                       .words  = {attn.n, r->config->vocab, FM_SHARD_OUTPUTS, 1},
                                       .part   = attn.index,
                                       .n_own  = g->pass.n_own_word,
                                       .n_row  = r->n_row};
    return fm_cuda_find_words(&a, g->stream);
}

const uint16_t *fm__cuda_gather_words(fm_run *r, const uint16_t *table)
{
    fm_cuda_run      *g     = fm__gpu(r);
    fm_cuda_exchange *x     = &g->exchange;
    const size_t      D     = (size_t)r->config->hidden;
    size_t           *bytes = x->recv_n, before = 0;
    for (int k = 0; k < r->weights->shard.attn.n; k++) {
        bytes[k] = (size_t)x->word_rows[k] * D * sizeof *x->words;
        if (k < r->weights->shard.attn.index) before += (size_t)x->word_rows[k];
    }
    const fm_cuda_take_rows_args a = {.y     = x->words + before * D,
                                      .table = table,
                                      .row   = g->there.own_word,
                                      .n_row = g->pass.n_own_word,
                                      .width = (int)D};
    fm__is_well(r, find_words(r));
    if (r->fault == FM_OK && fm__is_well(r, fm_cuda_take_rows(&a, g->stream)))
        r->fault = fm_device_all_gather(x->attn, x->words, a.y, bytes, g->stream);
    return x->words;
}

/* --- rows of all groups ---------------------------------------------------- */

static fm_status gather_rows(fm_run *r, void *all, const void *mine, size_t row_bytes)
{
    fm_cuda_exchange *x = &fm__gpu(r)->exchange;
    for (int g = 0; g < r->weights->shard.group.n; g++)
        x->recv_n[g] = (size_t)x->rows_of[g] * row_bytes;
    return fm_device_all_gather(x->group, all, mine, x->recv_n, fm__gpu(r)->stream);
}

void fm__cuda_dispatch(fm_run *r, fm_act h_all, fm_routing route_all, fm_act h, fm_routing route)
{
    const size_t k         = (size_t)r->config->top_k * sizeof(int32_t);
    if (!fm__gpu(r)->exchange.group) return; /* the same buffers */
    fm__is_well(r, gather_rows(r, h_all.data, h.data, (size_t)h.width * sizeof(uint16_t)));
    if (r->fault == FM_OK) r->fault = gather_rows(r, route_all.expert, route.expert, k);
    if (r->fault == FM_OK) r->fault = gather_rows(r, route_all.weight, route.weight, k);
}
