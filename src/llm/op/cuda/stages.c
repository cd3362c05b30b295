/* SPDX-License-Identifier: Apache-2.0 */
/* From stage to stage, and from the last one back to rank 0.
 *
 *     stage 0 ──x──> stage 1 ──x──> ... last ──logits──> rank 0
 *
 * x goes from device to device in the order of the streams.  Logits must not:
 * the last stage would wait in its stream for rank 0 to take them, and rank 0 in
 * its own for the last stage to take the next x.  So they go by the hosts, and
 * rank 0 chooses tokens there.  Where there is one stage, its logits come
 * together on rank 0's device and tokens are chosen there. */
#include "llm/kernel/cuda/exchange/columns.h"
#include "llm/op/cuda/cuda_internal.h"

int fm__cuda_is_one_stage(const fm_run *r)
{
    return r->ranks.replica->n_rank == r->ranks.stage->n_rank;
}

int fm__cuda_outs(const fm_run *r, const fm_batch *b)
{
    int n = 0;
    for (int i = 0; i < r->weights->shard.group.n; i++) n += fm__outs_of_group(b, i);
    return n;
}

/* --- x --------------------------------------------------------------------- */

/* All ranks of a group have the same x: each sends its share of the columns, and
 * the next stage gathers them. */
void fm__cuda_pass_on(fm_run *r, fm_f32s x)
{
    fm_cuda_run      *g    = fm__gpu(r);
    fm_cuda_exchange *e    = &g->exchange;
    const fm_range    col  = fm_columns_part(e->y.col, r->ranks.attn->rank);
    const int         next = r->ranks.replica->rank + r->ranks.stage->n_rank;
    const float      *from = x.data;
    const size_t      n    = (size_t)r->n_row * (size_t)fm_range_len(col);
    fm__cuda_settle(r);
    if (r->fault != FM_OK) return;
    if (e->attn) {
        const fm_cuda_take_columns_args a = {e->passed,         x.data, r->n_row, col.begin,
                                             fm_range_len(col), x.width};
        if (!fm__is_well(r, fm_cuda_take_columns(&a, g->stream))) return;
        from = e->passed;
    }
    r->fault = fm_device_send(e->replica, from, n * sizeof *from, next, g->stream);
}

void fm__cuda_receive(fm_run *r, fm_f32s x)
{
    fm_cuda_run      *g      = fm__gpu(r);
    fm_cuda_exchange *e      = &g->exchange;
    const int         before = r->ranks.replica->rank - r->ranks.stage->n_rank;
    float            *to     = e->attn ? r->act.y.data : x.data; /* y is not yet in use */
    const size_t      n      = (size_t)r->n_row * (size_t)r->act.y.width;
    fm__cuda_find_slots(r);
    if (r->fault == FM_OK)
        r->fault = fm_device_recv(e->replica, to, n * sizeof *to, before, g->stream);
    if (e->attn) fm__cuda_gather(r, &e->y, e->attn, x.data, r->n_row, 0);
}

/* --- logits of one stage ---------------------------------------------------- */

/* Of a room of n_lane. */
static float *room_of_pass(const fm_run *r, float *room, unsigned pass)
{
    const unsigned n    = r->limits.n_lane > 0 ? (unsigned)r->limits.n_lane : 1;
    const size_t   outs = (size_t)r->limits.max_out * (size_t)r->weights->shard.group.n;
    return room + pass % n * outs * (size_t)r->config->vocab;
}

/* Where a pass of one stage leaves its logits. */
static float *logits_at(const fm_run *r, unsigned pass)
{
    const fm_cuda_run *g = r->backend;
    return g->exchange.logits_room ? room_of_pass(r, g->exchange.logits_room, pass) : r->act.logits.data;
}

/* Pieces of one group's rows to rows. */
static fm_status unpack(fm_run *r, float *rows, const float *piece, int n_row)
{
    const fm_cuda_unpack_args a = {
        .y       = rows,
        .piece   = piece,
        .parts   = {r->weights->shard.attn.n, r->config->vocab, FM_SHARD_OUTPUTS, 1},
        .element = sizeof(float),
        .n_row   = n_row};
    return fm_cuda_unpack(&a, fm__gpu(r)->stream);
}

/* What this rank sends to rank 0, and rank 0 gets from each. */
static fm_device_exchange list_pieces(fm_run *r)
{
    fm_cuda_exchange *e     = &fm__gpu(r)->exchange;
    const fm_share    attn  = r->weights->shard.attn;
    const fm_columns  words = fm__outputs_by(attn, r->config->vocab);
    const int         me    = r->ranks.stage->rank;
    const size_t      row   = sizeof(float);
    size_t            at    = 0;
    for (int i = 0; i < r->ranks.stage->n_rank; i++) {
        const size_t outs = (size_t)fm__outs_of_group(r->batch, i / attn.n);
        const size_t n    = outs * (size_t)fm_range_len(fm_columns_part(words, i % attn.n)) * row;
        e->recv_at[i]     = at;
        e->recv_n[i]      = me == 0 ? n : 0;
        e->send_at[i] = e->send_n[i] = 0;
        if (i == me) e->send_n[0] = n;
        at += n;
    }
    return (fm_device_exchange){.src     = r->act.logits.data,
                                .dst     = e->pieces,
                                .send_at = e->send_at,
                                .send_n  = e->send_n,
                                .recv_at = e->recv_at,
                                .recv_n  = e->recv_n};
}

static fm_status collect_here(fm_run *r)
{
    fm_cuda_run      *g    = fm__gpu(r);
    fm_cuda_exchange *e    = &g->exchange;
    float            *rows = logits_at(r, e->n_collected);
    const size_t      V    = (size_t)r->config->vocab;
    const float      *from = e->pieces;
    if (!e->stage)
        return rows == r->act.logits.data
                   ? FM_OK
                   : fm_cuda_copy(rows, r->act.logits.data,
                                  (size_t)r->batch->n_out * V * sizeof *rows, g->stream);
    const fm_device_exchange x = list_pieces(r);
    FM_TRY(fm_device_all_to_all(e->stage, &x, g->stream));
    for (int i = 0; r->ranks.stage->rank == 0 && i < r->weights->shard.group.n; i++) {
        const int n = fm__outs_of_group(r->batch, i);
        FM_TRY(unpack(r, rows, from, n));
        rows += (size_t)n * V;
        from += (size_t)n * V;
    }
    return FM_OK;
}

float *fm__cuda_taken(fm_run *r)
{
    return logits_at(r, fm__gpu(r)->exchange.n_taken++);
}

static fm_status take_here(fm_run *r, const fm_batch *b, const float **all)
{
    fm_cuda_run *g  = fm__gpu(r);
    const size_t n  = (size_t)fm__cuda_outs(r, b) * (size_t)r->config->vocab;
    float       *to = room_of_pass(r, g->logits, g->exchange.n_taken);
    FM_TRY(fm_cuda_download(to, fm__cuda_taken(r), n * sizeof(float), g->stream));
    *all = to;
    return fm__cuda_wait(r);
}

/* --- logits of several stages ----------------------------------------------- */

static fm_status send_home(fm_run *r)
{
    fm_cuda_run      *g     = fm__gpu(r);
    fm_cuda_exchange *e     = &g->exchange;
    const unsigned    at  = e->n_collected % FM_LOGITS_IN_FLIGHT;
    const size_t      bytes = (size_t)r->batch->n_out * (size_t)r->act.logits.width * sizeof(float);
    if (!bytes) return FM_OK;
    if (e->logit_job[at].comm) FM_TRY(fm_comm_wait(&e->logit_job[at]));
    FM_TRY(fm_cuda_download(e->logits_out[at], r->act.logits.data, bytes, g->stream));
    FM_TRY(fm__cuda_wait(r));
    e->logit_job[at] = (fm_comm_job){0};
    return fm_comm_start(r->ranks.replica, &e->logit_job[at],
                         fm_call_send(e->logits_out[at], bytes, 0, FM_TAG_LOGITS));
}

static fm_status take_from_last(fm_run *r, const fm_batch *b, const float **all)
{
    fm_cuda_exchange *e    = &fm__gpu(r)->exchange;
    float            *rows = room_of_pass(r, e->gathered, e->n_taken++);
    *all                   = rows;
    return fm__take_logits(r, b, rows, e->arrived, NULL);
}

void fm__cuda_collect(fm_run *r)
{
    r->fault = fm__cuda_is_one_stage(r) ? collect_here(r) : send_home(r);
    fm__gpu(r)->exchange.n_collected++;
}

fm_status fm__cuda_logits(fm_run *r, const fm_batch *b, const float **all)
{
    return fm__cuda_is_one_stage(r) ? take_here(r, b, all) : take_from_last(r, b, all);
}
