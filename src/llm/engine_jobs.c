/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's two doors: prompts come in, events go out. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "llm/engine_internal.h"
#include "llm/engine_replicas.h"

static void free_job(fm_job *j)
{
    if (!j) return;
    fm_stop_fini(&j->stop);
    fm_matcher_destroy(j->matcher);
    free(j->bias);
    free(j->request.token);
    free(j);
}

static void free_list(fm_job *first)
{
    for (fm_job *j = first, *next; j; j = next) {
        next = j->next;
        free_job(j);
    }
}

void fm__engine_free_jobs(fm_engine *e)
{
    free_list(e->jobs);
    free(e->outbox.post);
    fm_str_fini(&e->outbox.text);
}

static int32_t room_for(const fm_engine *e, int32_t n_prompt, int max_new)
{
    const int64_t want = (int64_t)n_prompt + (max_new > 0 ? max_new : 0);
    const int64_t most = e->limits.max_context;
    return (int32_t)(want < most ? want : most);
}

static fm_status copy_prompt(fm_job *j, const fm_prompt *p, const int32_t *token, int32_t n,
                             int32_t room)
{
    fm_request  *r    = &j->request;
    const size_t bias = (size_t)p->sampling.n_bias * sizeof *j->bias;

    r->token = malloc((size_t)room * sizeof *r->token + 4);
    j->bias  = malloc(bias + sizeof *j->bias);
    if (!r->token || !j->bias) return fm_fail(FM_E_OOM, "request of %d tokens", (int)n);
    memcpy(r->token, token, (size_t)n * sizeof *token);
    if (bias) memcpy(j->bias, p->sampling.bias, bias);
    r->n_prompt = r->n_token = n;
    r->priority              = p->priority;
    r->sampling              = p->sampling;
    r->sampling.bias         = j->bias;
    if (p->prompt_logprobs && p->logprob_from < n - 1) r->n_score = n - 1 - p->logprob_from;
    return FM_OK;
}

static uint64_t seed_of(const fm_engine *e, const fm_prompt *p)
{
    return p->sampling.has_seed ? p->sampling.seed : fm_rng_key("request", e->seed + e->next_id);
}

static fm_status make_job(fm_engine *e, const fm_prompt *p, const int32_t *token, int32_t n,
                          int index, fm_job **out)
{
    fm_status rc = FM_OK;
    fm_job   *j  = calloc(1, sizeof *j);
    if (!j) return fm_fail(FM_E_OOM, "request");
    fm_request *r = &j->request;

    FM_GO(copy_prompt(j, p, token, n, room_for(e, n, p->sampling.max_new_tokens)));
    if (p->grammar) {
        FM_GO(fm_matcher_create(&j->matcher, p->grammar, p->grammar_after));
        r->allowed = fm_matcher_allowed(j->matcher);
    }
    fm_stop_init(&j->stop, p->stop, p->n_stop, p->keep_stop);
    if (e->tokenizer) j->detok = fm_detokenizer_begin(e->tokenizer, p->keep_special);
    r->id = j->id    = e->next_id;
    r->sampling.seed = seed_of(e, p) + (uint64_t)index;
    r->user          = j;
    j->index         = index;
    j->stopped       = -1;
    j->submitted     = fm_now();

    *out = j;
    j    = NULL;
out:
    free_job(j); /* NULL when all went well */
    return rc;
}

/* What a program hands over may be anything. */
static fm_status check_counts(const fm_prompt *p)
{
    enum { MAX_ANSWERS = 4096, MAX_STOPS = 1024 };
    if (!p->text && (p->n_token < 0 || (p->n_token && !p->token)))
        return fm_fail(FM_E_ARG, "the prompt has %d tokens%s", (int)p->n_token,
                       p->n_token < 0 ? "" : " but no list of them");
    if (p->n < 0 || p->n > MAX_ANSWERS)
        return fm_fail(FM_E_ARG, "n is %d, from 0 to %d are allowed", p->n, MAX_ANSWERS);
    if (p->n_stop < 0 || p->n_stop > MAX_STOPS)
        return fm_fail(FM_E_ARG, "n_stop is %d, from 0 to %d are allowed", p->n_stop, MAX_STOPS);
    for (int i = 0; i < p->n_stop; i++)
        if (!p->stop || !p->stop[i]) return fm_fail(FM_E_ARG, "stop string %d is NULL", i);
    return FM_OK;
}

static fm_status check_tokens(const fm_engine *e, const int32_t *token, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        if (token[i] < 0 || token[i] >= e->config.vocab)
            return fm_fail(FM_E_ARG, "prompt token %d is %d, outside the vocabulary of %d", (int)i,
                           (int)token[i], e->config.vocab);
    return FM_OK;
}

/* Seats are alike, here and in every replica. */
static fm_status check_room(const fm_engine *e, const fm_prompt *p, int32_t n)
{
    const fm_request r = {.n_prompt = n, .sampling = p->sampling};
    return fm_sched_check(fm__seat(e, 0)->sched, &r);
}

static fm_status submit_job(fm_engine *e, fm_job *j)
{
    const fm_request *r = &j->request;
    j->seat             = fm__lanes_deal(e, r->token, r->n_prompt);
    FM_TRY(fm_sched_submit(j->seat->sched, &j->request));
    j->load = (int64_t)r->n_prompt + r->sampling.max_new_tokens;
    j->seat->load += j->load;
    return FM_OK;
}

/* All n or none: nobody waits for answers to a prompt that was refused. */
static fm_status submit_answers(fm_engine *e, const fm_prompt *p, const int32_t *token, int32_t n)
{
    fm_status rc    = FM_OK;
    fm_job   *first = NULL, **end = &first;

    for (int i = 0; i < (p->n > 1 ? p->n : 1); i++, end = &(*end)->next)
        FM_GO(make_job(e, p, token, n, i, end));
    for (fm_job *j = first; j; j = j->next)
        FM_GO(submit_job(e, j)); /* cannot fail half-way: they are alike */
    *end    = e->jobs;
    e->jobs = first;
    first   = NULL;
out:
    free_list(first);
    return rc;
}

static fm_status submit_tokens(fm_engine *e, const fm_prompt *p, const int32_t *token, int32_t n)
{
    FM_TRY(check_tokens(e, token, n));
    FM_TRY(fm_sampling_check(&p->sampling, e->config.vocab));
    if (p->prompt_logprobs && (p->logprob_from < 0 || p->logprob_from > n))
        return fm_fail(FM_E_ARG, "logprob_start_len is %d, and the prompt has %d tokens",
                       (int)p->logprob_from, (int)n);
    if (p->n_stop && !e->tokenizer) return fm_fail(FM_E_ARG, "stop strings need a tokenizer");
    FM_TRY(check_room(e, p, n));
    if (e->replicas) {
        int is_sent = 0;
        FM_TRY(fm__replicas_submit(e, p, token, n, &is_sent));
        if (is_sent) return FM_OK;
    }
    return submit_answers(e, p, token, n);
}

fm_status fm_engine_submit(fm_engine *e, const fm_prompt *p, uint64_t *id)
{
    if (!e || !p) return fm_fail(FM_E_ARG, "fm_engine_submit: engine or prompt is NULL");
    fm_status rc = check_counts(p);
    if (rc != FM_OK) return rc;
    if (!p->text) {
        rc = submit_tokens(e, p, p->token, p->n_token);
    } else {
        fm_ids ids = {0};
        if (!e->tokenizer) return fm_fail(FM_E_ARG, "this model has no tokenizer: give token ids");
        rc = fm_encode(e->tokenizer, e->scratch, p->text, p->text_len, FM_ENCODE_BOS, &ids);
        if (rc == FM_OK) rc = submit_tokens(e, p, ids.id, (int32_t)ids.n);
        fm_ids_fini(&ids);
    }
    if (rc != FM_OK) return rc;
    if (id) *id = e->next_id;
    e->next_id++;
    return FM_OK;
}

fm_grammars *fm_engine_grammars(fm_engine *e)
{
    return e->grammars;
}

void fm_engine_cancel(fm_engine *e, uint64_t id)
{
    if (!e) return;
    if (e->replicas) fm__replicas_cancel(e->replicas, id);
    for (fm_job *j = e->jobs; j; j = j->next)
        if (j->id == id && j->request.state != FM_REQ_DONE)
            fm_sched_cancel(j->seat->sched, &j->request);
}

static fm_posted *new_post(fm_outbox *box)
{
    if (box->n == box->cap) {
        box->cap  = box->cap ? 2 * box->cap : 64;
        box->post = realloc(box->post, (size_t)box->cap * sizeof *box->post);
        FM_BUG_UNLESS(box->post != NULL);
    }
    return &box->post[box->n++];
}

/* What its text says about the end goes before a length the scheduler has met with
 * the same token. */
static void finish(fm_job *j, fm_finish why)
{
    if (j->request.finish == FM_FINISH_NONE) fm_sched_finish(j->seat->sched, &j->request, why);
    j->request.finish = why;
}

/* The token moves the grammar on; where it allows nothing more, the text ends. */
static void follow_grammar(fm_job *j, int32_t token)
{
    if (!j->matcher || token < 0) return;
    if (fm_matcher_take(j->matcher, token) != FM_OK) finish(j, FM_FINISH_ABORT);
    else if (fm_matcher_is_over(j->matcher)) finish(j, FM_FINISH_STOP);
    j->request.allowed = fm_matcher_allowed(j->matcher);
}

/* The job's next piece of text; may end the request at a stop string. */
static void write_text(fm_engine *e, fm_job *j, int32_t token)
{
    fm_request *r = &j->request;
    if (!e->tokenizer) return;
    fm_str    fresh   = {0};
    const int is_text = token >= 0 && r->finish != FM_FINISH_STOP;
    if (is_text) follow_grammar(j, token);
    if (is_text) fm_detokenizer_push(&j->detok, token, &fresh);
    if (r->finish != FM_FINISH_NONE) fm_detokenizer_end(&j->detok, &fresh);
    const char *text = fresh.text ? fresh.text : "";
    const int   hit  = fm_stop_push(&j->stop, text, fresh.len, &e->outbox.text);
    fm_str_fini(&fresh);
    if (hit >= 0) {
        j->stopped = hit;
        finish(j, FM_FINISH_STOP);
    } else if (r->finish != FM_FINISH_NONE) {
        fm_stop_end(&j->stop, &e->outbox.text);
    }
}

/* What the row at out position i says about the prompt. */
static void post_score(fm_engine *e, const fm_seat_rows *rows, fm_job *j, int i)
{
    const fm_request *r  = &j->request;
    fm_posted        *at = new_post(&e->outbox);
    at->text_at          = e->outbox.text.len;
    at->sampled          = e->sampled[rows->row0 + i];
    at->ev               = (fm_event){.id           = j->id,
                                      .index        = j->index,
                                      .token        = -1,
                                      .prompt_at    = fm_sched_out_pos(rows->batch, i) + 1,
                                      .logprob      = at->sampled.logprob,
                                      .n_top        = at->sampled.n_top,
                                      .matched_id   = -1,
                                      .matched_stop = -1,
                                      .n_prompt     = r->n_prompt,
                                      .n_cached     = r->n_cached};
}

static void post(fm_engine *e, fm_job *j, const fm_sampled *s)
{
    fm_request *r  = &j->request;
    fm_posted  *at = new_post(&e->outbox);
    at->text_at    = e->outbox.text.len;
    if (s) at->sampled = *s;
    write_text(e, j, s ? s->id : -1);
    const int by_id = r->finish == FM_FINISH_STOP && j->stopped < 0;
    at->ev = (fm_event){.id           = j->id,
                        .index        = j->index,
                        .token        = s ? s->id : -1,
                        .prompt_at    = -1,
                        .text_len     = e->outbox.text.len - at->text_at,
                        .logprob      = s ? s->logprob : 0,
                        .n_top        = s ? s->n_top : 0,
                        .finish       = r->finish,
                        .matched_id   = by_id ? r->matched_stop : -1,
                        .matched_stop = j->stopped,
                        .n_prompt     = r->n_prompt,
                        .n_output     = fm_request_n_known(r),
                        .n_cached     = r->n_cached,
                        .queue_seconds = r->admitted > 0 ? r->admitted - j->submitted : 0};
    j->reported = r->finish != FM_FINISH_NONE;
}

static void drop_job(fm_engine *e, fm_job *j)
{
    j->seat->load -= j->load;
    for (fm_job **at = &e->jobs; *at; at = &(*at)->next)
        if (*at == j) {
            *at = j->next;
            break;
        }
    free_job(j);
}

static void clear_if_read(fm_outbox *box)
{
    if (box->next < box->n) return;
    box->n = box->next = 0;
    fm_str_clear(&box->text);
}

static void post_rows(fm_engine *e, const fm_seat_rows *rows)
{
    for (int i = 0; i < rows->batch->n_out; i++) {
        const int at = rows->row0 + i;
        if (!e->row[at]) continue; /* ended before the step did */
        fm_job *j = e->row[at]->user;
        if (j->reported) continue;
        if (fm_request_scores(&j->request, fm_sched_out_pos(rows->batch, i)))
            post_score(e, rows, j, i);
        else
            post(e, j, &e->sampled[at]);
    }
}

void fm__engine_post(fm_engine *e, fm_seat *s, const fm_seat_rows *rows)
{
    clear_if_read(&e->outbox);
    if (rows && rows->batch) post_rows(e, rows);
    for (fm_request *r; (r = fm_sched_pop_done(s->sched));) {
        fm_job *j = r->user;
        if (!j->reported) post(e, j, NULL); /* cancelled, or nothing was asked for */
        drop_job(e, j);
    }
}

void fm__engine_post_event(fm_engine *e, const fm_event *ev)
{
    clear_if_read(&e->outbox);
    fm_posted *at = new_post(&e->outbox);
    at->ev        = *ev;
    at->text_at   = e->outbox.text.len;
    if (ev->n_top) memcpy(at->sampled.top, ev->top, (size_t)ev->n_top * sizeof *ev->top);
    fm_str_add(&e->outbox.text, ev->text, ev->text_len);
}

static void post_cancelled(fm_engine *e) /* since the last step */
{
    for (int i = 0; i < e->n_lane * e->n_group; i++) fm__engine_post(e, fm__seat(e, i), NULL);
}

int fm_engine_poll(fm_engine *e, fm_event *ev)
{
    if (!e || !ev) return 0;
    fm_outbox *box = &e->outbox;
    if (box->next == box->n) post_cancelled(e);
    if (box->next == box->n) return 0;
    const fm_posted *at = &box->post[box->next++];
    *ev                 = at->ev;
    ev->text            = box->text.text ? box->text.text + at->text_at : "";
    ev->top             = at->sampled.top;
    return 1;
}
