/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's step: this is the whole loop; everything else is a room it
 * visits. */
#include <omp.h>

#include "base/alloc_guard.h"
#include "base/clock.h"
#include "llm/engine_internal.h"
#include "llm/engine_replicas.h"
#include "llm/model/deepseek.h"

/* One row of logits: a token, or how likely the prompt's next one was. */
static void read_logits(fm_engine *e, fm_sampler *s, const fm_seat_rows *rows, int i,
                        float *logits)
{
    const fm_model_config *c   = &e->config;
    const int              at  = rows->row0 + i;
    const fm_request      *q   = e->row[at];
    const int32_t          pos = fm_sched_out_pos(rows->batch, i);

    if (!q) return;
    if (fm_request_scores(q, pos)) {
        fm_score(s, logits, q->token[pos + 1], q->sampling.top_logprobs, &e->sampled[at]);
        return;
    }
    if (q->allowed) fm_sample_only(logits, c->vocab, q->allowed);
    fm_sample(s, &q->sampling, logits, q->token + q->n_prompt, fm_request_n_known(q), c->eos,
              c->n_eos, &e->sampled[at]);
}

static void sample(fm_engine *e, const fm_seat_rows *rows, float *logits)
{
#pragma omp parallel for schedule(dynamic) num_threads(e->limits.n_thread)
    for (int i = 0; i < rows->batch->n_out; i++)
        read_logits(e, e->sampler[omp_get_thread_num()], rows, i,
                    logits + (size_t)(rows->row0 + i) * (size_t)e->config.vocab);
}

static int is_penalised(const fm_sampling *p)
{
    return p->frequency_penalty != 0 || p->presence_penalty != 0 || p->repetition_penalty != 1;
}

/* How the tokens of a seat's step are to be chosen; 0: the host has to look at the
 * logits. */
static int list_seat(fm_draw *draw, const fm_sched *sched, const fm_batch *b, int *is_free)
{
    for (int i = 0; b && i < b->n_out; i++) {
        const fm_request *q = fm_sched_out(sched, b, i);
        if (fm_request_scores(q, fm_sched_out_pos(b, i))) return 0;
        if (q->allowed || is_penalised(&q->sampling)) *is_free = 0;
        draw[i] = (fm_draw){&q->sampling, q->token + q->n_prompt, fm_request_n_output(q),
                            q->allowed};
    }
    return 1;
}

/* The back end is asked for the tokens of a planned step, if tokens are all that
 * is wanted of it. */
static fm_status ask_for_tokens(fm_engine *e, const fm_lane *l, fm_flight *f)
{
    f->is_chosen = 0;
    f->is_free   = 1;
    if (!e->run->ops->sample) return FM_OK;
    for (int g = 0; g < e->n_group; g++) {
        const fm_seat_rows *r = &f->rows[g];
        if (!list_seat(e->draw + r->row0, l->seat[g].sched, r->batch, &f->is_free)) return FM_OK;
    }
    const fm_status rc = fm_run_choose(e->run, &f->plan.batch, e->draw, &f->ticket);
    f->is_chosen       = rc == FM_OK;
    return rc == FM_E_FULL ? FM_OK : rc;
}

/* A token for every out row of the lane. */
static fm_status choose(fm_engine *e, fm_lane *l)
{
    const fm_flight *f      = &l->flight[l->oldest];
    const float     *logits = NULL;
    for (int g = 0; g < e->n_group; g++) {
        const fm_seat_rows *r = &f->rows[g];
        for (int i = 0; r->batch && i < r->batch->n_out; i++) {
            fm_request *q       = fm_sched_out(l->seat[g].sched, r->batch, i);
            e->row[r->row0 + i] = q && q->finish == FM_FINISH_NONE ? q : NULL; /* gets no more */
        }
    }
    if (e->courier && e->run->ops->sample) FM_TRY(fm_courier_settle(e->courier));
    if (f->is_chosen) return fm_run_chosen(e->run, f->ticket, e->sampled);
    FM_TRY(fm_run_logits(e->run, &f->plan.batch, &logits));
    for (int g = 0; g < e->n_group; g++) /* the sampler works in place: they are nobody else's */
        if (f->rows[g].batch) sample(e, &f->rows[g], (float *)logits);
    return FM_OK;
}

fm_status fm__engine_forward(fm_engine *e, const fm_batch *b)
{
    fm_run_start(e->run, b);
    fm_deepseek_forward(e->run);
    return fm_run_finish(e->run); /* the only error check */
}

/* Every seat of the lane gets its rows: prefill chunks + decodes, pages
 * reserved.  0: there is nothing to run. */
static int plan_rows(fm_engine *e, const fm_lane *l, fm_flight *f)
{
    int n_row = 0, n_out = 0;
    for (int g = 0; g < e->n_group; g++) {
        fm_sched *s = l->seat[g].sched;
        fm_sched_set_time(s, fm_now());
        const fm_batch *b = fm_sched_plan(s);
        f->rows[g]        = (fm_seat_rows){b, n_out};
        n_row += b ? b->n_row : 0;
        n_out += b ? b->n_out : 0;
    }
    return n_row;
}

/* What this rank runs of the planned step; the other ranks are told theirs. */
static fm_status share_plan(fm_engine *e, const fm_lane *l, fm_flight *f)
{
    const fm_batch *batch[e->n_group];
    for (int g = 0; g < e->n_group; g++) batch[g] = f->rows[g].batch;
    fm__engine_doing(e, batch[0], f->serial);
    if (!e->courier) {
        f->plan.batch = *batch[0];
        return FM_OK;
    }
    const int          lane = e->overlaps ? (int)(f->serial % 2) : (int)(l - e->lane);
    const fm_step_plan p    = {.head  = {FM_PLAN_STEP, lane, f->serial},
                               .batch = batch,
                               .page0 = l->page0};
    return fm_courier_send(e->courier, &p, &f->plan);
}

/* The planned step goes to the device. */
static fm_status start(fm_engine *e, fm_lane *l, fm_flight *f)
{
    const double planned = fm_now();
    f->serial            = e->n_launched++;
    FM_TRY(share_plan(e, l, f));
    FM_TRY(fm__engine_forward(e, &f->plan.batch));
    FM_TRY(ask_for_tokens(e, l, f));
    for (int g = 0; e->overlaps && g < e->n_group; g++)
        if (f->rows[g].batch) fm_sched_launched(l->seat[g].sched);
    e->forward_seconds += fm_now() - planned;
    return FM_OK;
}

static fm_status launch(fm_engine *e, fm_lane *l)
{
    fm_flight *f = &l->flight[(l->oldest + l->n_flight) % FM__FLIGHTS];
    fm__lanes_level(e, l);
    if (!plan_rows(e, l, f)) return FM_OK;
    l->n_flight++;
    return start(e, l, f);
}

/* The step after the one in flight, while that one runs. */
static fm_status launch_ahead(fm_engine *e, fm_lane *l)
{
    const fm_flight *f = &l->flight[l->oldest];
    return e->overlaps && f->is_chosen && f->is_free ? launch(e, l) : FM_OK;
}

static fm_status finish(fm_engine *e, fm_lane *l)
{
    const double began = fm_now();
    FM_TRY(choose(e, l));
    e->forward_seconds += fm_now() - began;
    for (int g = 0; g < e->n_group; g++) { /* append, publish prefixes, retire */
        const fm_seat_rows *r = &l->flight[l->oldest].rows[g];
        for (int i = 0; r->batch && i < r->batch->n_out; i++)
            e->token[r->row0 + i] = e->sampled[r->row0 + i].id;
        if (r->batch) fm_sched_commit(l->seat[g].sched, e->token + r->row0);
    }
    return FM_OK;
}

static uint32_t oldest_serial(const fm_lane *l)
{
    return l->flight[l->oldest].serial;
}

static fm_lane *oldest_in_flight(const fm_engine *e)
{
    fm_lane *oldest = NULL;
    for (int i = 0; i < e->n_lane; i++) {
        fm_lane *l = &e->lane[i];
        if (!l->n_flight) continue;
        if (!oldest || (int32_t)(oldest_serial(l) - oldest_serial(oldest)) < 0) oldest = l;
    }
    return oldest;
}

/* With work of its own, or with some that waits elsewhere. */
static fm_lane *idle_with_work(fm_engine *e)
{
    for (int i = 0; i < e->n_lane; i++)
        if (!e->lane[i].n_flight && fm__lane_busy(e, &e->lane[i])) return &e->lane[i];
    for (int i = 0; i < e->n_lane; i++) {
        if (e->lane[i].n_flight) continue;
        fm__lanes_level(e, &e->lane[i]);
        if (fm__lane_busy(e, &e->lane[i])) return &e->lane[i];
    }
    return NULL;
}

/* Text and events for whoever polls; the step after this one is the oldest now. */
static void post(fm_engine *e, fm_lane *l)
{
    for (int g = 0; g < e->n_group; g++)
        fm__engine_post(e, &l->seat[g], &l->flight[l->oldest].rows[g]);
    l->oldest = (l->oldest + 1) % FM__FLIGHTS;
    l->n_flight--;
}

void fm__engine_give_up(fm_engine *e)
{
    for (int i = 0; i < e->n_lane; i++) {
        e->lane[i].n_flight = 0;
        for (int g = 0; g < e->n_group; g++) fm_sched_give_up(e->lane[i].seat[g].sched);
    }
}

/* Other ranks cannot be asked to try again: their news is the end of the job. */
static fm_status failed(fm_engine *e, fm_status why)
{
    if (fm_world_comm(e->world)->n_rank > 1) fm_world_abort(e->world, "%s", fm_why());
    fm__engine_give_up(e);
    return why;
}

static fm_status guarded(fm_engine *e, fm_status (*part)(fm_engine *e, fm_lane *l), fm_lane *l)
{
    fm_alloc_guard_begin();
    const fm_status rc = part(e, l);
    fm_alloc_guard_end();
    return rc == FM_OK ? FM_OK : failed(e, rc);
}

/* The oldest pass ends and its lane goes on; but first every idle lane that
 * has work gets a pass into flight, or a lane alone its next one. */
static fm_status advance(fm_engine *e)
{
    fm_lane *l = idle_with_work(e);
    if (l) FM_TRY(guarded(e, launch, l));
    if (l && l->n_flight && idle_with_work(e)) return FM_OK;
    if (!(l = oldest_in_flight(e))) return FM_OK;
    FM_TRY(guarded(e, launch_ahead, l));
    FM_TRY(guarded(e, finish, l));
    post(e, l);
    return e->n_lane > 1 ? guarded(e, launch, l) : FM_OK;
}

fm_status fm__engine_step_own(fm_engine *e)
{
    const double  began    = fm_now();
    const int64_t n_before = fm__lanes_stats(e).n_output;
    fm_threads_pin(e->threads);
    FM_TRY(advance(e));
    const double n_new = (double)(fm__lanes_stats(e).n_output - n_before);
    if (n_new > 0) e->last_gen_throughput = n_new / (fm_now() - began);
    return FM_OK;
}

fm_status fm__engine_drain(fm_engine *e)
{
    for (fm_lane *l; (l = oldest_in_flight(e));) {
        FM_TRY(guarded(e, finish, l));
        post(e, l);
    }
    return FM_OK;
}

int fm__engine_busy_own(const fm_engine *e)
{
    for (int i = 0; i < e->n_lane; i++)
        if (e->lane[i].n_flight || fm__lane_busy(e, &e->lane[i])) return 1;
    return 0;
}

fm_status fm_engine_step(fm_engine *e)
{
    if (!e) return fm_fail(FM_E_ARG, "fm_engine_step: engine is NULL");
    return e->replicas ? fm__replicas_step(e) : fm__engine_step_own(e);
}

int fm_engine_busy(const fm_engine *e)
{
    return e && (fm__engine_busy_own(e) || (e->replicas && fm__replicas_busy(e->replicas)));
}

fm_engine_info fm__engine_info_own(const fm_engine *e)
{
    const int      n_seat = e->n_lane * e->n_group;
    fm_engine_info info   = {.plan                = e->plan,
                             .sched               = fm__lanes_stats(e),
                             .n_thread            = e->limits.n_thread,
                             .steps_per_round     = e->n_lane,
                             .load_seconds        = e->load_seconds,
                             .forward_seconds     = e->forward_seconds,
                             .last_gen_throughput = e->last_gen_throughput};
    info.plan.n_page      = 0;
    for (int i = 0; i < n_seat; i++) {
        const fm_seat    *s = fm__seat(e, i);
        const fm_kv_stats k = fm_kv_get_stats(s->kv);
        info.kv.hit_tokens += k.hit_tokens;
        info.kv.asked_tokens += k.asked_tokens;
        info.kv.evicted_pages += k.evicted_pages;
        info.n_free_page += fm_kv_free_pages(s->kv);
        info.n_idle_page += fm_kv_evictable_pages(s->kv);
        info.plan.n_page += fm_kv_get_options(s->kv)->n_page;
    }
    info.plan.max_tokens = (int64_t)info.plan.n_page * info.plan.page_size;
    return info;
}

fm_engine_info fm_engine_get_info(const fm_engine *e)
{
    fm_engine_info info = fm__engine_info_own(e);
    if (e->replicas) fm__replicas_add_info(e->replicas, &info);
    return info;
}

const fm_model_config *fm_engine_config(const fm_engine *e)
{
    return &e->config;
}

const fm_tokenizer *fm_engine_tokenizer(const fm_engine *e)
{
    return e->tokenizer;
}

int fm_engine_max_running(const fm_engine *e)
{
    return e->max_running;
}

int fm_engine_context(const fm_engine *e)
{
    return e->limits.max_context;
}

void fm__engine_flush_own(fm_engine *e)
{
    for (int i = 0; i < e->n_lane * e->n_group; i++) fm_kv_flush(fm__seat(e, i)->kv);
}

void fm_engine_flush_cache(fm_engine *e)
{
    fm__engine_flush_own(e);
    if (e->replicas) fm__replicas_flush(e->replicas);
}
