/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's loop: this is all of it; everything else is a room it visits.
 *
 *     plan     each partition's scheduler picks rows: decodes, then prefill chunks
 *     share    the other ranks of this replica receive the plan
 *     run      every rank runs the forward pass on its rows
 *     choose   a token for every out row, sampled on the device or here
 *     commit   tokens are appended, prefixes published, ended requests retired
 *     post     text and events for the caller
 *     chain    with speculation: the MTP layer drafts tokens for the next step
 *
 * llm/engine/step.h says what steps, micro-batches and partitions are. */
#include "llm/engine.h"

#include <omp.h>

#include "base/alloc_guard.h"
#include "base/clock.h"
#include "base/finite.h"
#include "llm/engine/engine_internal.h"
#include "llm/engine/replicas.h"

/* --- the phases of a step --------------------------------------------------- */

/* Rows of all partitions; s->n_row is 0 where none has anything to run.  Pages that go to
 * tiers below the pool, or come from there, are moved before the pass. */
static fm_status plan(fm_engine *e, fm_micro_batch *m, fm_step *s)
{
    s->n_row = s->n_out = 0;
    fm__partitions_balance(e, m);
    FM_TRY(fm__tiers_prepare(e, m));
    for (int g = 0; g < e->n_group; g++) {
        fm_sched *sched = m->partition[g].sched;
        fm_sched_set_time(sched, fm_now());
        fm__draft(e, &m->partition[g]);
        const fm_batch *b = s->batch[g] = fm_sched_plan(sched);
        if (!b) continue;
        for (int i = 0; i < b->n_out; i++) s->out[s->n_out++] = fm_sched_out(sched, b, i);
        s->n_row += b->n_row;
    }
    s->chain = m->chain;
    return fm__tiers_move(e, m, s->n_row > 0);
}

/* Steps that are in flight together have different buffers on the wire. */
static int wire_slot(const fm_engine *e, const fm_micro_batch *m, const fm_step *s)
{
    return e->overlaps ? (int)(s->serial % FM_STEPS_IN_FLIGHT) : (int)(m - e->micro);
}

/* What this rank runs of the plan is in s->plan then. */
static fm_status share(fm_engine *e, const fm_micro_batch *m, fm_step *s)
{
    s->serial = e->n_launched++;
    fm__engine_doing(e, s->batch[0], s->serial);
    if (e->tracing) fm__tracing_serial(e->tracing, s->serial);
    if (!e->courier) {
        s->plan.batch = *s->batch[0];
        return FM_OK;
    }
    const fm_step_plan p = {.head  = {FM_PLAN_STEP, wire_slot(e, m, s), s->serial, 0},
                            .batch = s->batch,
                            .page0 = m->page0,
                            .kept0 = m->kept0};
    return fm_courier_send(e->courier, &p, &s->plan);
}

fm_status fm__engine_forward(fm_engine *e, const fm_batch *b)
{
    fm_run_start(e->run, b);
    e->model->forward(e->run);
    return fm_run_finish(e->run); /* the only error check */
}

/* The tokens that the request's grammar allows at a row: each draft has a mask of its own. */
static const uint32_t *allowed_at(const fm_request *r, int32_t pos)
{
    if (!r->allowed || !r->drafts_at || pos <= r->drafts_at) return r->allowed;
    return r->allowed_behind + (size_t)(pos - r->drafts_at - 1) * (size_t)r->mask_words;
}

/* How the token of an out row is to be sampled. */
static fm_draw draw_of(const fm_out *o)
{
    const fm_request *r = o->r;
    return (fm_draw){&r->sampling, r->token + r->n_prompt, o->pos + 1 - r->n_prompt,
                     allowed_at(r, o->pos)};
}

/* Queues sampling behind the pass where the back end can do it: not where a row
 * scores the prompt, and FM_E_FULL where it is too much for the back end. */
static fm_status sample_on_device(fm_engine *e, fm_step *s)
{
    s->is_on_device = 0;
    if (!e->run->ops->sample) return FM_OK;
    for (int i = 0; i < s->n_out; i++) {
        if (s->out[i]->is_score) return FM_OK;
        e->draw[i] = draw_of(s->out[i]);
    }
    const fm_status rc = fm_run_choose(e->run, &s->plan.batch, e->draw, &s->ticket);
    s->is_on_device    = rc == FM_OK;
    return rc == FM_E_FULL ? FM_OK : rc;
}

static fm_status run(fm_engine *e, const fm_micro_batch *m, fm_step *s)
{
    FM_TRY(fm__engine_forward(e, &s->plan.batch));
    FM_TRY(sample_on_device(e, s));
    for (int g = 0; e->overlaps && g < e->n_group; g++)
        if (s->batch[g]) fm_sched_launched(m->partition[g].sched);
    return FM_OK;
}

/* One row of logits, changed in place: a token, or the log-probability of the
 * prompt's next one. */
static void sample_row(fm_engine *e, const fm_out *o, float *logits, fm_sampled *out)
{
    const fm_model_config *c = &e->config;
    fm_sampler            *s = e->sampler[omp_get_thread_num()];
    const fm_request      *r = o->r;

    if (!r || r->finish != FM_FINISH_NONE) return; /* the request gets no more tokens */
    if (!fm_all_finite(logits, c->vocab)) {
        *out = (fm_sampled){.id = FM_NO_TOKEN};
        return;
    }
    if (o->is_score) {
        fm_score(s, logits, r->token[o->pos + 1], r->sampling.top_logprobs, out);
        return;
    }
    const fm_draw d = draw_of(o);
    if (d.allowed) fm_sample_only(logits, c->vocab, d.allowed);
    fm_sample(s, d.how, logits, d.output, d.n_output, c->eos, c->n_eos, out);
}

/* Into e->sampled.  A device that is waited for may wait for other ranks' devices: these ranks get
 * the plan first. */
static fm_status choose(fm_engine *e, const fm_step *s)
{
    const float *logits = NULL;
    if (e->courier && e->run->ops->sample) FM_TRY(fm_courier_settle(e->courier));
    if (s->is_on_device) return fm_run_chosen(e->run, s->ticket, e->sampled);
    FM_TRY(fm_run_logits(e->run, &s->plan.batch, &logits));
#pragma omp parallel for schedule(dynamic) num_threads(e->limits.n_thread)
    for (int i = 0; i < s->n_out; i++)
        sample_row(e, s->out[i], (float *)logits + (size_t)i * (size_t)e->config.vocab,
                   &e->sampled[i]);
    return FM_OK;
}

static fm_status commit(fm_engine *e, const fm_micro_batch *m, const fm_step *s)
{
    const int32_t *token = e->token;
    for (int i = 0; i < s->n_out; i++) e->token[i] = e->sampled[i].id;
    for (int g = 0; g < e->n_group; g++) {
        if (!s->batch[g]) continue;
        fm_sched_commit(m->partition[g].sched, token);
        token += s->batch[g]->n_out;
    }
    fm__draft_learn(e, s);
    fm__tiers_learn(e, s);
    return FM_OK;
}

static fm_status post(fm_engine *e, fm_micro_batch *m, const fm_step *s)
{
    fm__post_step(e, s);
    for (int g = 0; g < e->n_group; g++) fm__post_ended(e, &m->partition[g]);
    return fm__tiers_demote(e, m);
}

/* --- which step is next ---------------------------------------------------- */

/* A phase ended: the trace, if there is one, notes its time. */
static fm_status traced(fm_engine *e, fm_phase p, fm_status rc)
{
    fm__trace_phase(e, p);
    return rc;
}

static fm_status launch(fm_engine *e, fm_micro_batch *m)
{
    fm_step *s = &m->step[(m->oldest + m->n_in_flight) % FM_STEPS_IN_FLIGHT];
    FM_TRY(traced(e, FM_PHASE_PLAN, plan(e, m, s)));
    if (!s->n_row) return FM_OK;
    m->n_in_flight++;
    s->launched = fm_now();
    FM_TRY(traced(e, FM_PHASE_SHARE, share(e, m, s)));
    FM_TRY(traced(e, FM_PHASE_RUN, run(e, m, s)));
    e->forward_seconds += fm_now() - s->launched;
    return FM_OK;
}

/* Overlap schedule: the next step is launched before the tokens of the one in flight are known. */
static fm_status launch_ahead(fm_engine *e, fm_micro_batch *m)
{
    return e->overlaps && m->step[m->oldest].is_on_device ? launch(e, m) : FM_OK;
}

/* The oldest step in flight: its tokens, and with speculation the drafts that follow them. */
static fm_status finish(fm_engine *e, fm_micro_batch *m)
{
    const fm_step *s     = &m->step[m->oldest];
    const double   began = fm_now();
    FM_TRY(traced(e, FM_PHASE_CHOOSE, choose(e, s)));
    e->forward_seconds += fm_now() - began;
    FM_TRY(traced(e, FM_PHASE_COMMIT, commit(e, m, s)));
    FM_TRY(traced(e, FM_PHASE_POST, post(e, m, s)));
    fm__trace_step(e, s);
    m->oldest = (m->oldest + 1) % FM_STEPS_IN_FLIGHT;
    m->n_in_flight--;
    return fm__chain(e, m, wire_slot(e, m, s));
}

static uint32_t oldest_serial(const fm_micro_batch *m)
{
    return m->step[m->oldest].serial;
}

static fm_micro_batch *oldest_in_flight(const fm_engine *e)
{
    fm_micro_batch *oldest = NULL;
    for (int i = 0; i < e->n_micro; i++) {
        fm_micro_batch *m = &e->micro[i];
        if (!m->n_in_flight) continue;
        if (!oldest || (int32_t)(oldest_serial(m) - oldest_serial(oldest)) < 0) oldest = m;
    }
    return oldest;
}

/* With requests of its own, or with some that wait in another micro-batch. */
static fm_micro_batch *idle_with_work(fm_engine *e)
{
    for (int i = 0; i < e->n_micro; i++)
        if (!e->micro[i].n_in_flight && fm__micro_batch_busy(e, &e->micro[i])) return &e->micro[i];
    for (int i = 0; i < e->n_micro; i++) {
        if (e->micro[i].n_in_flight) continue;
        fm__partitions_balance(e, &e->micro[i]);
        if (fm__micro_batch_busy(e, &e->micro[i])) return &e->micro[i];
    }
    return NULL;
}

/* Fills the pipeline: as long as a second micro-batch is idle, a call only launches a step of an
 * idle one. Otherwise it finishes the oldest step and plans the next of that micro-batch. */
static fm_status advance(fm_engine *e)
{
    fm_micro_batch *m = idle_with_work(e);
    if (m) FM_TRY(launch(e, m));
    if (m && m->n_in_flight && idle_with_work(e)) return FM_OK;
    if (!(m = oldest_in_flight(e))) return fm__tiers_wait(e);
    FM_TRY(launch_ahead(e, m));
    FM_TRY(finish(e, m));
    return e->n_micro > 1 ? launch(e, m) : FM_OK;
}

/* --- calls ----------------------------------------------------------------- */

/* After a failed step everything that was in flight is computed again. */
static void give_up(fm_engine *e)
{
    for (int i = 0; i < e->n_micro; i++) {
        e->micro[i].n_in_flight = 0;
        for (int g = 0; g < e->n_group; g++) fm_sched_give_up(e->micro[i].partition[g].sched);
    }
}

/* A failure cannot be retried where other ranks take part: it ends the job. */
static fm_status checked(fm_engine *e, fm_status rc)
{
    if (rc == FM_OK) return FM_OK;
    if (fm_world_comm(e->world)->n_rank > 1) fm_world_abort(e->world, "%s", fm_why());
    give_up(e);
    return rc;
}

fm_status fm__engine_step_own(fm_engine *e)
{
    const double  began = fm_now(), forward = e->forward_seconds;
    const int64_t n_before = fm__partitions_stats(e).n_output;
    fm_threads_pin(e->threads);
    fm__post_reserve(e);
    if (e->tracing) fm__tracing_resume(e->tracing);
    fm_alloc_guard_begin(); /* nothing is allocated from here on */
    const fm_status rc = advance(e);
    fm_alloc_guard_end();
    FM_TRY(checked(e, rc));
    fm__engine_count_time(e, began, e->forward_seconds - forward);
    const double n_new = (double)(fm__partitions_stats(e).n_output - n_before);
    if (n_new > 0) e->last_gen_throughput = n_new / (fm_now() - began);
    return FM_OK;
}

fm_status fm__engine_drain(fm_engine *e)
{
    for (fm_micro_batch *m; (m = oldest_in_flight(e));) FM_TRY(checked(e, finish(e, m)));
    return FM_OK;
}

int fm__engine_busy_own(const fm_engine *e)
{
    for (int i = 0; i < e->n_micro; i++)
        if (e->micro[i].n_in_flight || fm__micro_batch_busy(e, &e->micro[i])) return 1;
    return e->tiers.reports.is_asking;
}

fm_status fm_engine_save(fm_engine *e, int *more)
{
    *more = 0;
    if (fm__engine_busy_own(e)) return FM_OK;
    return checked(e, fm__tiers_save(e, more));
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
