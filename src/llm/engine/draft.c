/* SPDX-License-Identifier: Apache-2.0 */
/* Speculation: which running requests get draft tokens before a step is planned,
 * how many, and what is learned when the step is committed. */
#include "base/alloc_guard.h"
#include "base/clock.h"
#include "llm/engine/engine_internal.h"

enum { LOOK_AGAIN = 64 }; /* outputs after which a draft that should not pay is tried again */

/* Acceptance rate of a request's drafts of one kind; the rate of all requests is its prior. */
static double rate_of(const fm_engine *e, const fm_acceptance *a)
{
    return fm_acceptance_rate(a, fm_acceptance_rate(&e->draft.all, 0.5));
}

static double threshold_of(const fm_engine *e)
{
    return fm_step_cost_threshold(&e->draft.cost[fm_pace_size(e->draft.n_seq)]);
}

/* Drafts that pay; where none does, one if it is to be tried. */
static int that_pay(const fm_engine *e, const fm_acceptance *a, double threshold, int most,
                    int is_tried)
{
    const int n = e->draft.is_adaptive ? fm_drafts_that_pay(rate_of(e, a), threshold, most) : most;
    return n || !is_tried ? n : most > 0;
}

static int is_to_try(const fm_job *j) { return fm_request_n_output(&j->request) % LOOK_AGAIN == 0; }

/* That a chain pays was measured (fm_pace), what a row costs is a fit over steps that other programs
 * may hold up: it cuts only requests whose drafts fail much more often than others'. */
int fm__drafts_for(const fm_engine *e, fm_job *j, int most)
{
    const double threshold = threshold_of(e), usual = fm_acceptance_rate(&e->draft.all, 0.5) / 2;
    return that_pay(e, &j->acceptance, threshold < usual ? threshold : usual, most, is_to_try(j));
}

/* Tokens that may follow from the request's own text. */
static int copy(const fm_engine *e, fm_job *j, int32_t *draft)
{
    const fm_request *r = &j->request;
    const int         tried = e->overlaps ? e->draft.look.is_trial : is_to_try(j);
    if (!e->draft.is_ngram || r->lease.slot < 0) return 0;
    const int n = that_pay(e, &j->copying, threshold_of(e), e->draft.most, tried);
    if (!n) return 0;
    fm_ngram *g = j->partition->ngram[r->lease.slot];
    fm_ngram_serve(g, j->serial);
    return fm_ngram_propose(g, r->token, r->n_token, draft, n);
}

/* Whether drafts are worth what all sequences lose when a step cannot be planned ahead. */
static int is_worth_waiting(const fm_engine *e, const fm_job *j)
{
    const int waits = !e->overlaps || j->needs_token;
    return waits || !e->draft.is_adaptive || fm_look_proposes(&e->draft.look);
}

/* The better of the two kinds of drafts: the one expected to bring more tokens. */
static int choose(fm_engine *e, fm_job *j, int32_t *draft)
{
    const int    n       = copy(e, j, draft);
    const double copied  = fm_expected_tokens(rate_of(e, &j->copying), n);
    const double chained = fm_expected_tokens(rate_of(e, &j->acceptance), j->n_ahead);
    fm_look_add(&e->draft.look, e->draft.is_adaptive ? copied - 1 : 1);
    j->is_copied = n && copied >= chained && is_worth_waiting(e, j);
    if (j->is_copied) return n;
    for (int i = 0; i < j->n_ahead; i++) draft[i] = j->ahead[i];
    return j->n_ahead;
}

/* A draft that the grammar forbids is cut, with those behind it. */
static int cut(fm_job *j, const int32_t *draft, int n)
{
    j->request.drafts_at = 0;
    if (!j->matcher || !n) return n;
    const int guard      = fm_alloc_guard_pause();
    j->request.drafts_at = j->request.n_token - 1;
    n                    = fm_matcher_peek(j->matcher, draft, n, j->mask);
    fm_alloc_guard_resume(guard);
    return n;
}

/* A request without drafts may be planned ahead of its last token again. */
static void propose(fm_engine *e, fm_partition *p, fm_job *j)
{
    fm_request *r = &j->request;
    int32_t     draft[FM_MAX_DRAFT];
    if (!fm_request_n_output(r)) return;
    if (r->n_pending) {
        if (e->draft.is_ngram && fm_look_is_due(&e->draft.look)) r->is_sequential = 1;
        return;
    }
    const int n = cut(j, draft, choose(e, j, draft));
    if (e->draft.is_ngram && !n)
        r->is_sequential = j->needs_token;
    else if (n)
        r->is_sequential = 1;
    fm_sched_propose(p->sched, r, draft, n);
    j->n_ahead = 0;
}

/* Requests that may have drafts now; 0 where the step is planned ahead of tokens in flight. */
static int n_to_look_at(const fm_partition *p)
{
    int n = 0;
    for (int i = 0; i < fm_sched_n_running(p->sched); i++) {
        const fm_request *r = fm_sched_running(p->sched, i);
        if (r->n_pending) return 0;
        n += fm_request_n_output(r) > 0;
    }
    return n;
}

void fm__draft(fm_engine *e, fm_partition *p)
{
    if (e->draft.can_rest)
        fm_sched_keep_states(p->sched, fm_rest_keeps(&e->draft.rest[fm_pace_size(e->draft.n_seq)]));
    const int n = e->draft.most ? n_to_look_at(p) : 0;
    if (n) fm_look_begin(&e->draft.look);
    for (int i = 0; e->draft.most && i < fm_sched_n_running(p->sched); i++)
        propose(e, p, fm_sched_running(p->sched, i)->user);
    if (n) fm_look_end(&e->draft.look, n);
}

/* The out rows of one request from `i` on; counts those that were sampled and taken. */
static int rows_of_one(const fm_step *s, int i, int *n_taken)
{
    int n    = 0;
    *n_taken = 0;
    for (; i + n < s->n_out && s->out[i + n]->r == s->out[i]->r && !s->out[i + n]->is_score; n++)
        *n_taken += s->out[i + n]->is_taken;
    return n;
}

static void learn_of(fm_engine *e, fm_job *j, int n_draft, int n_accepted)
{
    j->n_verify++;
    j->n_draft += n_draft;
    j->n_accepted += n_accepted;
    if (!n_draft) return;
    if (!j->is_copied) fm_depths_add(&e->draft.depths, n_draft, n_accepted);
    fm_acceptance_add(j->is_copied ? &j->copying : &j->acceptance, n_draft, n_accepted);
    fm_acceptance_add(&e->draft.all, n_draft, n_accepted);
}

void fm__draft_learn(fm_engine *e, const fm_step *s)
{
    int n_token = 0, n_seq = 0, is_decode = s->n_row == s->n_out;
    if (!e->draft.most) return;
    for (int i = 0, n; i < s->n_out; i += n) {
        int n_taken = 0;
        n           = rows_of_one(s, i, &n_taken);
        n_token += n_taken;
        if (!n) is_decode = 0;
        if (!n) n = 1;
        if (!s->out[i]->r || !n_taken) continue;
        n_seq++;
        if (s->out[i]->pos >= s->out[i]->r->n_prompt)
            learn_of(e, s->out[i]->r->user, n - 1, n_taken - 1);
    }
    const double now   = fm_now(),
                 began = s->launched > e->draft.finished ? s->launched : e->draft.finished;
    e->draft.finished  = now;
    fm_rest_step(&e->draft.rest[fm_pace_size(n_seq)], e->draft.pays);
    fm_look_step(&e->draft.look);
    if (n_seq) e->draft.n_seq = n_seq;
    if (!is_decode || !n_seq) return;
    fm_step_cost_add(&e->draft.cost[fm_pace_size(n_seq)], s->n_row, n_token, now - began);
    fm_pace_add(&e->draft.pace, n_seq, s->chain.n_link, now - began + s->chain.seconds);
}
