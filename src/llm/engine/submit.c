/* SPDX-License-Identifier: Apache-2.0 */
/* Prompts come in: checked once, turned into jobs, given to a partition or to
 * another replica. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "llm/engine/engine_internal.h"
#include "llm/engine/replicas.h"

/* A prompt that passed every check. */
typedef struct {
    const fm_prompt *p;
    const int32_t   *token; /* [n] */
    int32_t          n;
    int              n_answer;
    uint64_t         id, seed;
    const fm_begun  *begun; /* [n_answer] or NULL */
} checked;

/* --- checks ---------------------------------------------------------------- */

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

/* Partitions are alike, here and in every replica: the first answers for all. */
static fm_status check_room(const fm_engine *e, const fm_prompt *p, int32_t n)
{
    const fm_request r = {.n_prompt = n, .sampling = p->sampling};
    return fm_sched_check(fm__partition(e, 0)->sched, &r);
}

static fm_status check(const fm_engine *e, const fm_prompt *p, const int32_t *token, int32_t n)
{
    FM_TRY(check_tokens(e, token, n));
    FM_TRY(fm_sampling_check(&p->sampling, e->config.vocab));
    if (p->prompt_logprobs && (p->logprob_from < 0 || p->logprob_from > n))
        return fm_fail(FM_E_ARG, "logprob_start_len is %d, and the prompt has %d tokens",
                       (int)p->logprob_from, (int)n);
    if (p->n_stop && !e->tokenizer) return fm_fail(FM_E_ARG, "stop strings need a tokenizer");
    return check_room(e, p, n);
}

/* No longer than the answer may get: fm_sched_replay() takes no token beyond. */
static fm_status check_begun(const fm_engine *e, const fm_prompt *p, int32_t n, const fm_begun *b)
{
    const int64_t room = e->limits.max_context - (int64_t)n;
    if (b->n > p->sampling.max_new_tokens || b->n > room)
        return fm_fail(FM_E_ARG, "an answer of %d tokens cannot be gone on with", (int)b->n);
    return check_tokens(e, b->token, b->n);
}

/* --- jobs ------------------------------------------------------------------ */

static int32_t room_for(const fm_engine *e, const checked *c)
{
    const int     max_new = c->p->sampling.max_new_tokens;
    const int64_t want    = (int64_t)c->n + (max_new > 0 ? max_new : 0);
    const int64_t most    = e->limits.max_context;
    return (int32_t)(want < most ? want : most);
}

static fm_status copy_prompt(fm_job *j, const checked *c, int32_t room)
{
    const fm_prompt *p    = c->p;
    fm_request      *r    = &j->request;
    const size_t     bias = (size_t)p->sampling.n_bias * sizeof *j->bias;

    r->token = malloc((size_t)room * sizeof *r->token + 4);
    j->bias  = malloc(bias + sizeof *j->bias);
    if (!r->token || !j->bias) return fm_fail(FM_E_OOM, "request of %d tokens", (int)c->n);
    memcpy(r->token, c->token, (size_t)c->n * sizeof *c->token);
    if (bias) memcpy(j->bias, p->sampling.bias, bias);
    r->n_prompt = r->n_token = c->n;
    r->priority              = p->priority;
    r->sampling              = p->sampling;
    r->sampling.bias         = j->bias;
    if (p->prompt_logprobs && p->logprob_from < c->n - 1)
        r->n_score = c->n - 1 - p->logprob_from;
    return FM_OK;
}

static int is_penalised(const fm_sampling *p)
{
    return p->frequency_penalty != 0 || p->presence_penalty != 0 || p->repetition_penalty != 1;
}

static size_t longest_stop(const fm_prompt *p)
{
    size_t most = 0;
    for (int i = 0; i < p->n_stop; i++) {
        const size_t n = strlen(p->stop[i]);
        if (n > most) most = n;
    }
    return most;
}

static fm_status follow_grammar(const fm_engine *e, const checked *c, fm_job *j)
{
    fm_request *r = &j->request;
    FM_TRY(fm_matcher_create(&j->matcher, c->p->grammar, c->p->grammar_after));
    r->allowed    = fm_matcher_allowed(j->matcher);
    r->mask_words = (int32_t)fm_matcher_mask_words(j->matcher);
    if (!e->draft.most) return FM_OK;
    j->mask           = calloc((size_t)(e->draft.most * r->mask_words), sizeof *j->mask);
    r->allowed_behind = j->mask;
    return j->mask ? FM_OK : fm_fail(FM_E_OOM, "masks of drafts");
}

static fm_status fill_job(fm_engine *e, const checked *c, fm_job *j, int index)
{
    fm_request *r = &j->request;
    fm_stop_init(&j->stop, c->p->stop, c->p->n_stop, c->p->keep_stop);
    fm_str_reserve(&j->stop.held, longest_stop(c->p) + e->token_text);
    FM_TRY(copy_prompt(j, c, room_for(e, c)));
    if (c->begun && c->begun[index].n) r->n_score = 0; /* reported with the first token */
    if (c->p->grammar) FM_TRY(follow_grammar(e, c, j));
    if (e->tokenizer) j->detok = fm_detokenizer_begin(e->tokenizer, c->p->keep_special);
    r->id            = c->id;
    j->serial        = ++e->draft.n_job;
    j->needs_token   = j->matcher || is_penalised(&r->sampling);
    r->is_sequential = j->needs_token || e->draft.most; /* until it is known to get no drafts */
    r->sampling.seed = c->seed + (uint64_t)index;
    r->user          = j;
    j->index         = index;
    j->stopped       = -1;
    return FM_OK;
}

static fm_status make_jobs(fm_engine *e, const checked *c, fm_submitted *p)
{
    for (int i = 0; i < c->n_answer; i++) {
        fm_job *j = calloc(1, sizeof *j);
        if (!j) return fm_fail(FM_E_OOM, "request");
        fm__job_link(p, j);
        FM_TRY(fill_job(e, c, j, c->n_answer - 1 - i)); /* the list begins with the last linked */
    }
    return FM_OK;
}

static void schedule(fm_engine *e, fm_job *j)
{
    j->partition       = fm__partition_for(e, j->request.token, j->request.n_prompt);
    const fm_status rc = fm_sched_submit(j->partition->sched, &j->request);
    FM_BUG_UNLESS(rc == FM_OK); /* it was checked */
    j->partition->load += j->of->load;
    e->stop_text += j->stop.held.cap;
}

/* All n answers or none. */
static fm_status take_prompt(fm_engine *e, const checked *c)
{
    const fm_submitted new = {.id     = c->id,
                              .n_left = c->n_answer,
                              .load   = (int64_t)c->n + c->p->sampling.max_new_tokens,
                              .when   = fm_now()};
    fm_submitted *p = NULL;
    FM_TRY(fm__jobs_add(&e->jobs, &new, &p));
    const fm_status rc = make_jobs(e, c, p);
    if (rc != FM_OK) {
        fm__jobs_remove(&e->jobs, p);
        return rc;
    }
    for (fm_job *j = p->job; j; j = j->next) schedule(e, j);
    for (fm_job *j = p->job; c->begun && j; j = j->next)
        fm__post_begun(e, j, &c->begun[j->index]);
    return FM_OK;
}

static fm_status submit_tokens(fm_engine *e, const fm_prompt *p, const int32_t *token, int32_t n,
                               const fm_begun *begun, uint64_t *id)
{
    FM_TRY(check(e, p, token, n));
    const fm_sampling *s = &p->sampling;
    const checked c = {.p        = p,
                       .token    = token,
                       .n        = n,
                       .n_answer = p->n > 1 ? p->n : 1,
                       .id       = p->id ? p->id : e->n_submitted + 1,
                       .seed = s->has_seed ? s->seed : fm_rng_key("request", e->seed + e->n_submitted),
                       .begun = begun};
    int is_sent = 0;
    for (int i = 0; begun && i < c.n_answer; i++) FM_TRY(check_begun(e, p, n, &begun[i]));
    if (e->replicas && !begun) FM_TRY(fm__replicas_submit(e, p, token, n, c.id, c.seed, &is_sent));
    if (!is_sent) FM_TRY(take_prompt(e, &c));
    e->n_submitted++;
    if (id) *id = c.id;
    return FM_OK;
}

static fm_status submit(fm_engine *e, const fm_prompt *p, const fm_begun *begun, uint64_t *id)
{
    FM_TRY(check_counts(p));
    if (!p->text) return submit_tokens(e, p, p->token, p->n_token, begun, id);
    if (!e->tokenizer) return fm_fail(FM_E_ARG, "this model has no tokenizer: give token ids");
    fm_ids    ids = {0};
    fm_status rc = fm_encode(e->tokenizer, e->scratch, p->text, p->text_len, FM_ENCODE_BOS, &ids);
    if (rc == FM_OK) rc = submit_tokens(e, p, ids.id, (int32_t)ids.n, begun, id);
    fm_ids_fini(&ids);
    return rc;
}

fm_status fm_engine_submit(fm_engine *e, const fm_prompt *p, uint64_t *id)
{
    if (!e || !p) return fm_fail(FM_E_ARG, "fm_engine_submit: engine or prompt is NULL");
    return submit(e, p, NULL, id);
}

fm_status fm_engine_resume(fm_engine *e, const fm_prompt *p, const fm_begun *begun, uint64_t *id)
{
    return submit(e, p, begun, id);
}

static void cancel(fm_engine *e, const fm_submitted *p)
{
    if (p->replica) fm__replicas_cancel(e->replicas, p);
    for (fm_job *j = p->job; j; j = j->next)
        fm_sched_cancel(j->partition->sched, &j->request);
}

void fm_engine_cancel(fm_engine *e, uint64_t id)
{
    const fm_submitted *p = e ? fm__jobs_find(&e->jobs, id) : NULL;
    if (p) cancel(e, p);
}

void fm_engine_cancel_all(fm_engine *e)
{
    for (const fm_submitted *p = fm__jobs_first(&e->jobs); p; p = fm__jobs_next(&e->jobs, p))
        cancel(e, p);
}

fm_grammars *fm_engine_grammars(fm_engine *e)
{
    return e->grammars;
}
