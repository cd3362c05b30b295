/* SPDX-License-Identifier: Apache-2.0 */
/* From stage to stage, and from the last one back to rank 0.
 *
 *     stage 0 ──x──> stage 1 ──x──> ... last ──logits──> rank 0
 *
 * A rank talks to the rank in its place of the next stage.  All ranks of a
 * group have the same x: each sends its share of the columns, and the next
 * stage gathers them.  Sends go on while the next pass is computed; a buffer is
 * used again when its send is done. */
#include "llm/op/cpu/cpu_internal.h"

enum { TAG_ROWS = 1 };

void fm__carve_stages(fm_cpu *b, fm_acts *a, const fm_model_config *c, const fm_shard *shard,
                      const fm_run_limits *lim, fm_slab *s)
{
    fm_cpu_exchange *x      = &b->exchange;
    const int    is_end = fm_shard_is_last(shard, c), is_first = fm_shard_is_first(shard);
    const int    is_one = is_first && is_end && shard->attn.n * shard->group.n == 1;
    const size_t out = (size_t)lim->max_out, groups = (size_t)shard->group.n;
    const fm_activation *logits = fm_activation_find(&lim->activations, FM_ACT_F32, FM_ACT_LOGITS);
    const size_t most = (size_t)c->vocab / (size_t)shard->attn.n + 2 * FM_SHARD_OUTPUTS;
    x->n_room         = fm__min(lim->n_lane > 0 ? lim->n_lane : 1, FM_LOGITS_IN_FLIGHT);
    for (int i = 0; is_end && i < x->n_room; i++)
        x->room[i] = fm_slab_take(s, out * (size_t)logits->width * sizeof(float));
    *(fm_f32s *)fm_activation_at(a, logits) = (fm_f32s){x->room[0], logits->width};
    if (!is_end)
        x->passed = fm_slab_take(s, (size_t)lim->max_rows * (size_t)a->y.width * sizeof(float));
    if (is_one || !is_first || shard->attn.index || shard->group.index) return;
    const size_t all = out * groups * (size_t)c->vocab;
    x->gathered      = fm_slab_take(s, (size_t)lim->n_lane * all * sizeof(float));
    x->arrived       = fm_slab_take(s, out * most * sizeof(float));
}

static void move(fm_run *r, fm_comm_job *job)
{
    int done = 0;
    if (job->comm && !job->is_done) fm__is_well(r, fm_comm_test(job, &done));
}

void fm__poke(fm_run *r)
{
    fm_cpu_exchange *x = &fm__cpu(r)->exchange;
    move(r, &x->pass_job);
    for (int i = 0; i < FM_LOGITS_IN_FLIGHT; i++) move(r, &x->logit_job[i]);
}

static int end_send(fm_run *r, fm_comm_job *job)
{
    return !job->comm || fm__is_well(r, fm_comm_wait(job));
}

static void copy_columns(const fm_cpu *b, float *to, fm_f32s x, fm_range col, int n_row)
{
    const size_t n = (size_t)fm_range_len(col), ld = (size_t)x.width;
#pragma omp parallel for schedule(static) num_threads(b->n_thread) if ((size_t)n_row * n > 32768)
    for (int i = 0; i < n_row; i++)
        memcpy(to + (size_t)i * n, x.data + (size_t)i * ld + col.begin, n * sizeof *to);
}

void fm__cpu_pass_on(fm_run *r, fm_f32s x)
{
    fm_cpu        *b       = fm__cpu(r);
    fm_cpu_exchange   *e       = &b->exchange;
    const fm_range col     = fm_columns_part(e->y.col, r->ranks.attn->rank);
    const size_t   bytes   = (size_t)r->batch->n_row * (size_t)fm_range_len(col) * sizeof(float);
    fm_comm       *replica = r->ranks.replica;
    const int      next    = replica->rank + r->ranks.stage->n_rank;
    if (!bytes || !end_send(r, &e->pass_job)) return;
    copy_columns(b, e->passed, x, col, r->batch->n_row);
    fm__start_job(r, &e->pass_job, replica, fm_call_send(e->passed, bytes, next, TAG_ROWS));
}

void fm__cpu_receive(fm_run *r, fm_f32s x)
{
    fm_cpu_exchange   *e       = &fm__cpu(r)->exchange;
    const fm_f32s  y       = r->act.y; /* not yet in use */
    fm_comm       *replica = r->ranks.replica;
    const int      before  = replica->rank - r->ranks.stage->n_rank;
    float         *to      = r->ranks.attn->n_rank == 1 ? x.data : y.data;
    const size_t   bytes   = (size_t)r->batch->n_row * (size_t)y.width * sizeof(float);
    fm__note_spans(r);
    if (bytes && !fm__is_well(r, fm_recv(replica, to, bytes, before, TAG_ROWS))) return;
    if (r->ranks.attn->n_rank > 1) fm__gather_rows(r, &e->y, r->ranks.attn, to, x.data);
}

/* --- logits ---------------------------------------------------------------- */

void fm__await_logits(fm_run *r)
{
    fm_cpu_exchange *e = &fm__cpu(r)->exchange;
    end_send(r, &e->logit_job[e->n_collected % (unsigned)e->n_room]);
}

/* The next pass writes its logits to the other buffer while these are sent. */
void fm__cpu_collect(fm_run *r, fm_f32s logits)
{
    fm_cpu_exchange   *e     = &fm__cpu(r)->exchange;
    const unsigned at    = e->n_collected++ % (unsigned)e->n_room;
    const size_t   bytes = (size_t)r->batch->n_out * (size_t)logits.width * sizeof(float);
    r->act.logits.data   = e->room[e->n_collected % (unsigned)e->n_room];
    if (r->ranks.replica->rank && bytes)
        fm__start_job(r, &e->logit_job[at], r->ranks.replica,
                      fm_call_send(logits.data, bytes, 0, FM_TAG_LOGITS));
}

fm_status fm__cpu_logits(fm_run *r, const fm_batch *b, const float **all)
{
    fm_cpu_exchange *e    = &fm__cpu(r)->exchange;
    const size_t each = (size_t)r->limits.max_out * (size_t)r->weights->shard.group.n *
                        (size_t)r->config->vocab;
    if (r->ranks.replica->n_rank == 1) {
        *all = e->room[e->n_taken++ % (unsigned)e->n_room];
        return FM_OK;
    }
    float *rows = e->gathered + e->n_taken % (unsigned)r->limits.n_lane * each;
    FM_TRY(fm__take_logits(r, b, rows, e->arrived, e->room[e->n_taken % (unsigned)e->n_room]));
    e->n_taken++;
    *all = rows;
    return FM_OK;
}
