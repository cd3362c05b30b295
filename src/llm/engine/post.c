/* SPDX-License-Identifier: Apache-2.0 */
/* From sampled tokens to events: detokenise, follow the grammar, look for stop
 * strings. */
#include "base/alloc_guard.h"
#include "base/clock.h"
#include "llm/engine/engine_internal.h"

/* A stop string or grammar that ends the text at the same token overrides an end by length. */
static void finish(fm_job *j, fm_finish why)
{
    if (j->request.finish == FM_FINISH_NONE)
        fm_sched_finish(j->partition->sched, &j->request, why);
    j->request.finish = why;
}

/* Advances the grammar and ends the request where the grammar allows no further token. Grammar
 * states are built when first met: the one allocation of a step. */
static void follow_grammar(fm_job *j, int32_t token)
{
    if (!j->matcher) return;
    const int       guard = fm_alloc_guard_pause();
    const fm_status rc    = fm_matcher_take(j->matcher, token);
    fm_alloc_guard_resume(guard);
    if (rc != FM_OK) finish(j, FM_FINISH_ABORT);
    else if (fm_matcher_is_over(j->matcher)) finish(j, FM_FINISH_STOP);
    j->request.allowed = fm_matcher_allowed(j->matcher);
}

/* Adds the job's next piece of text to the event; may end the request at a stop
 * string.  Token -1: there is none, only what was held back. */
static void write_text(fm_engine *e, fm_job *j, int32_t token)
{
    const fm_request *r = &j->request;
    fm_str           *fresh = &e->fresh, *out = &e->events.text;
    if (!e->tokenizer) return;
    fm_str_clear(fresh);
    if (token >= 0 && r->finish != FM_FINISH_STOP) {
        follow_grammar(j, token);
        fm_detokenizer_push(&j->detok, token, fresh);
    }
    if (r->finish != FM_FINISH_NONE) fm_detokenizer_end(&j->detok, fresh);
    const int hit = fm_stop_push(&j->stop, fresh->text, fresh->len, out);
    if (hit >= 0) {
        j->stopped = hit;
        finish(j, FM_FINISH_STOP);
    } else if (r->finish != FM_FINISH_NONE) {
        fm_stop_end(&j->stop, out);
    }
}

static fm_event *begin_event(fm_engine *e, const fm_job *j, const fm_sampled *s)
{
    fm_event *ev = fm_events_begin(&e->events, s ? s->top : NULL, s ? s->n_top : 0);
    ev->id       = j->of->id;
    ev->index    = j->index;
    ev->logprob  = s ? s->logprob : 0;
    ev->n_prompt = j->request.n_prompt;
    ev->n_cached = j->request.n_cached;
    ev->n_cached_host    = j->request.n_from_host;
    ev->n_cached_storage = j->request.n_from_disk;
    ev->when     = fm_now();
    return ev;
}

/* The log-probability of a prompt token. */
static void post_score(fm_engine *e, const fm_job *j, const fm_out *o, const fm_sampled *s)
{
    begin_event(e, j, s)->prompt_at = o->pos + 1;
    fm_events_end(&e->events);
}

/* A token and its text.  Of the tokens a request got in this step only the last
 * may carry the reason why the scheduler ended it. */
static void post_token(fm_engine *e, fm_job *j, int n_output, const fm_sampled *s)
{
    fm_request     *r     = &j->request;
    fm_event       *ev    = begin_event(e, j, s);
    const fm_finish later = n_output < fm_request_n_known(r) ? r->finish : FM_FINISH_NONE;
    if (later != FM_FINISH_NONE) r->finish = FM_FINISH_NONE;
    write_text(e, j, s ? s->id : -1);
    if (s && !j->first_token) {
        j->first_token = ev->when;
        if (e->tracing) fm__tracing_first_token(e->tracing, j);
    }
    ev->token         = s ? s->id : -1;
    ev->finish        = r->finish;
    ev->matched_id    = r->finish == FM_FINISH_STOP && j->stopped < 0 ? r->matched_stop : -1;
    ev->matched_stop  = j->stopped;
    ev->n_output      = n_output;
    ev->n_verify      = j->n_verify;
    ev->n_draft       = j->n_draft;
    ev->n_accepted    = j->n_accepted;
    ev->queue_seconds = r->admitted > 0 ? r->admitted - j->of->when : 0;
    fm_events_end(&e->events);
    j->reported = r->finish != FM_FINISH_NONE;
    if (r->finish == FM_FINISH_NONE) r->finish = later;
}

void fm__post_step(fm_engine *e, const fm_step *s)
{
    for (int i = 0; i < s->n_out; i++) {
        const fm_out *o = s->out[i];
        if (!o->is_taken) continue;
        fm_job *j = o->r->user;
        if (j->reported) continue;
        if (e->sampled[i].id == FM_NO_TOKEN) finish(j, FM_FINISH_ERROR);
        else if (o->is_score) post_score(e, j, o, &e->sampled[i]);
        else post_token(e, j, o->pos + 2 - j->request.n_prompt, &e->sampled[i]);
    }
}

void fm__post_begun(fm_engine *e, fm_job *j, const fm_begun *begun)
{
    for (int32_t i = 0; i < begun->n && !j->reported; i++) {
        const fm_sampled known = {.id = begun->token[i]};
        fm_sched_replay(j->partition->sched, &j->request, known.id);
        post_token(e, j, i + 1, &known);
    }
}

void fm__post_ended(fm_engine *e, fm_partition *p)
{
    for (fm_request *r; (r = fm_sched_pop_done(p->sched));) {
        fm_job *j = r->user;
        if (!j->reported) /* cancelled, or no output was wanted */
            post_token(e, j, fm_request_n_known(r), NULL);
        if (e->tracing) fm__tracing_ended(e->tracing, j);
        p->load -= j->of->load;
        e->stop_text -= j->stop.held.cap;
        fm__job_end(&e->jobs, j);
    }
}

static void forget_polled(fm_engine *e)
{
    if (e->n_polled < e->events.n) return; /* the others stay in front */
    fm_events_clear(&e->events);
    e->n_polled = 0;
}

void fm__post_reserve(fm_engine *e)
{
    const size_t n_out = (size_t)e->limits.max_out * (size_t)e->n_group;
    forget_polled(e);
    fm_events_reserve(&e->events, (int)n_out + e->max_running,
                      n_out * e->token_text + e->stop_text, n_out * FM_MAX_TOP_LOGPROBS);
}

static void post_cancelled(fm_engine *e) /* since the last step */
{
    for (int i = 0; i < fm__n_partition(e); i++) fm__post_ended(e, fm__partition(e, i));
}

int fm_engine_poll(fm_engine *e, fm_event *ev)
{
    if (!e || !ev) return 0;
    forget_polled(e);
    if (!e->events.n) post_cancelled(e);
    if (!e->events.n) return 0;
    *ev = fm_events_get(&e->events, e->n_polled++);
    return 1;
}

void fm_engine_take_events(fm_engine *e, fm_events *out)
{
    forget_polled(e);
    FM_BUG_UNLESS(!e->n_polled);
    post_cancelled(e);
    fm_events_move(out, &e->events);
}
