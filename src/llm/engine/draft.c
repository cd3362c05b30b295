/* SPDX-License-Identifier: Apache-2.0 */
/* Speculation: which running requests get draft tokens before a step is planned,
 * how many, and what is learned when the step is committed. */
#include "base/clock.h"
#include "llm/engine/engine_internal.h"

enum {
    LOOK_AGAIN = 64, /* outputs after which a draft that should not pay is tried again */
    WAIT_AGAIN = 8,  /* outputs after which a request planned ahead waits for its token, to look */
};

/* Whether its drafts have failed lately is asked anew now and then. */
static int drafts_for(const fm_engine *e, const fm_job *j, double threshold)
{
    const double all  = fm_acceptance_rate(&e->draft.all, 0.5);
    const double rate = fm_acceptance_rate(&j->acceptance, all);
    const int    n    = e->draft.is_adaptive ? fm_drafts_that_pay(rate, threshold, e->draft.most)
                                             : e->draft.most;
    return n || fm_request_n_output(&j->request) % LOOK_AGAIN ? n : 1;
}

/* A request without drafts may be planned ahead of its last token again. */
static void propose(fm_engine *e, fm_partition *p, fm_job *j, double threshold)
{
    fm_request *r = &j->request;
    int32_t     draft[FM_MAX_DRAFT];
    if (!j->ngram) return;
    if (r->n_pending) {
        if (fm_request_n_output(r) % WAIT_AGAIN == 0) r->is_sequential = 1;
        return;
    }
    int n = drafts_for(e, j, threshold);
    if (n) n = fm_ngram_propose(j->ngram, r->token, r->n_token, draft, n);
    r->is_sequential = j->needs_token || n > 0;
    fm_sched_propose(p->sched, r, draft, n);
}

void fm__draft(fm_engine *e, fm_partition *p)
{
    if (!e->draft.most) return;
    const double threshold = fm_step_cost_threshold(&e->draft.cost);
    for (int i = 0; i < fm_sched_n_running(p->sched); i++)
        propose(e, p, fm_sched_running(p->sched, i)->user, threshold);
}

/* The out rows of one request from `i` on; counts those that were sampled and taken. */
static int rows_of_one(const fm_step *s, int i, int *n_taken)
{
    int n = 0;
    *n_taken = 0;
    for (; i + n < s->n_out && s->out[i + n]->r == s->out[i]->r && !s->out[i + n]->is_score; n++)
        *n_taken += s->out[i + n]->is_taken;
    return n;
}

void fm__draft_learn(fm_engine *e, const fm_step *s)
{
    int n_token = 0, is_decode = s->n_row == s->n_out;
    if (!e->draft.most) return;
    for (int i = 0, n; i < s->n_out; i += n) {
        int n_taken = 0;
        n           = rows_of_one(s, i, &n_taken);
        n_token += n_taken;
        if (!n) is_decode = 0;
        if (!n) n = 1;
        if (n < 2 || !s->out[i]->r || !n_taken) continue;
        fm_job *j = s->out[i]->r->user;
        fm_acceptance_add(&j->acceptance, n - 1, n_taken - 1);
        fm_acceptance_add(&e->draft.all, n - 1, n_taken - 1);
    }
    const double now = fm_now(), began = s->launched > e->draft.finished ? s->launched : e->draft.finished;
    if (is_decode) fm_step_cost_add(&e->draft.cost, s->n_row, n_token, now - began);
    e->draft.finished = now;
}
