/* SPDX-License-Identifier: Apache-2.0 */
/* Speculation: which running requests get draft tokens before a step is planned,
 * how many, and what is learned when the step is committed. */
#include "base/alloc_guard.h"
#include "base/clock.h"
#include "llm/engine/engine_internal.h"

enum {
    LOOK_AGAIN = 64, /* outputs after which a draft that should not pay is tried again */
    WAIT_AGAIN = 8,  /* outputs after which a request that is planned ahead waits once for its
                      * token, to try drafts */
};

/* Acceptance rate of a request's drafts of one kind; the rate of all requests is its prior. */
static double rate_of(const fm_engine *e, const fm_acceptance *a)
{
    return fm_acceptance_rate(a, fm_acceptance_rate(&e->draft.all, 0.5));
}

/* Drafts that pay; where none does, one is tried every LOOK_AGAIN outputs. */
static int that_pay(const fm_engine *e, const fm_job *j, const fm_acceptance *a, int most)
{
    const double threshold = fm_step_cost_threshold(&e->draft.cost[fm_pace_size(e->draft.n_seq)]);
    const int n = e->draft.is_adaptive ? fm_drafts_that_pay(rate_of(e, a), threshold, most) : most;
    return n || fm_request_n_output(&j->request) % LOOK_AGAIN ? n : most > 0;
}

int fm__drafts_for(const fm_engine *e, fm_job *j, int most)
{
    return that_pay(e, j, &j->acceptance, most);
}

/* Tokens that may follow from the request's own text. */
static int copy(const fm_engine *e, fm_job *j, int32_t *draft)
{
    const fm_request *r = &j->request;
    const int         n = e->draft.is_ngram ? that_pay(e, j, &j->copying, e->draft.most) : 0;
    if (!n || r->lease.slot < 0) return 0;
    fm_ngram *g = j->partition->ngram[r->lease.slot];
    fm_ngram_serve(g, j->serial);
    return fm_ngram_propose(g, r->token, r->n_token, draft, n);
}

/* The better of the two kinds of drafts: the one expected to bring more tokens. */
static int choose(const fm_engine *e, fm_job *j, int32_t *draft)
{
    const int    n       = copy(e, j, draft);
    const double copied  = fm_expected_tokens(rate_of(e, &j->copying), n);
    const double chained = fm_expected_tokens(rate_of(e, &j->acceptance), j->n_ahead);
    j->is_copied         = n && copied >= chained;
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
static void propose(const fm_engine *e, fm_partition *p, fm_job *j)
{
    fm_request *r = &j->request;
    int32_t     draft[FM_MAX_DRAFT];
    if (r->n_pending) {
        if (e->draft.is_ngram && fm_request_n_output(r) % WAIT_AGAIN == 0) r->is_sequential = 1;
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

void fm__draft(fm_engine *e, fm_partition *p)
{
    if (e->draft.can_rest) fm_sched_keep_states(p->sched, fm_rest_keeps(&e->draft.rest));
    for (int i = 0; e->draft.most && i < fm_sched_n_running(p->sched); i++)
        propose(e, p, fm_sched_running(p->sched, i)->user);
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
    fm_rest_step(&e->draft.rest, e->draft.pays);
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
    if (!is_decode || !n_seq) return;
    fm_step_cost_add(&e->draft.cost[fm_pace_size(n_seq)], s->n_row, n_token, now - began);
    fm_pace_add(&e->draft.pace, n_seq, s->chain.n_link, now - began + s->chain.seconds);
    e->draft.n_seq = n_seq;
}
