/* SPDX-License-Identifier: Apache-2.0 */
/* Who joins, and in which order. */
#include <string.h>

#include "llm/sched/sched_internal.h"

enum { SHARED_MIN = 32 }; /* tokens worth waiting for */

/* Only the prompt is looked up: generated tokens are computed again in their
 * own form.  Where some exist the prompt's last row needs no logits; rows that
 * are still to be scored need them. */
static int32_t n_lookup(const fm_request *r)
{
    if (r->n_scored < r->n_score) return fm_request_next_score(r) + 1;
    return r->n_prompt + (r->n_token > r->n_prompt);
}

static void start(fm_sched *s, fm_request *r)
{
    fm__queue_remove(&s->waiting, r);
    const fm_status begun = fm_kv_begin(s->kv, &r->lease, r->token, n_lookup(r));
    FM_BUG_UNLESS(begun == FM_OK);

    r->has_lease  = 1;
    r->state      = FM_REQ_RUNNING;
    r->n_computed = r->n_published = r->lease.n_cached;
    if (!r->n_preempted) {
        r->n_cached = r->lease.n_cached;
        r->admitted = s->now;
    }
    s->stats.n_admission++;
    s->running[s->n_running++] = (fm__slot){.r = r, .out = -1, .is_new = 1};
}

/* Joins if rows and pages allow.  The first of all always may. */
static int try_start(fm_sched *s, fm_request *r)
{
    if (s->n_running == s->opt.max_running) return 0;

    int32_t       n_idle;
    const int32_t n_cached = fm_kv_probe(s->kv, r->token, n_lookup(r), &n_idle);
    const int32_t share    = fm__prefill_share(s, r, n_cached);
    if (!share || (s->n_running && !fm__fits(s, r, n_cached, n_idle))) return 0;

    start(s, r);
    fm__give_prefill(s, &s->running[s->n_running - 1], share);
    return 1;
}

static int32_t shared_prefix(const fm_request *a, const fm_request *b)
{
    const int32_t n = a->n_prompt < b->n_prompt ? a->n_prompt : b->n_prompt;
    int32_t       i = 0;
    while (i < n && a->token[i] == b->token[i]) i++;
    return i;
}

/* Someone running is about to compute a good part of this prompt. */
static int better_waits(const fm_sched *s, const fm__candidate *c)
{
    for (int i = 0; i < s->n_running; i++) {
        const fm_request *r = s->running[i].r;
        if (r->n_computed >= r->n_prompt) continue;
        const int32_t most = n_lookup(c->r) - 1;
        int32_t       n    = shared_prefix(r, c->r);
        if (n > most) n = most;
        if (n - n % s->opt.page_size - c->n_match >= SHARED_MIN) return 1;
    }
    return 0;
}

static int ranks_before(const fm__candidate *a, const fm__candidate *b)
{
    if (a->r->priority != b->r->priority) return a->r->priority > b->r->priority;
    return a->n_match > b->n_match; /* a stable sort keeps arrivals in order */
}

static int sort_candidates(fm_sched *s)
{
    fm__candidate *c = s->candidate;
    int            n = 0;

    for (fm_request *r = s->waiting.head; r; r = r->next, n++) {
        const fm__candidate new = {r, fm_kv_match(s->kv, r->token, n_lookup(r) - 1)};
        int                 at  = n;
        while (at > 0 && ranks_before(&new, &c[at - 1])) at--;
        memmove(&c[at + 1], &c[at], (size_t)(n - at) * sizeof *c);
        c[at] = new;
    }
    return n;
}

static void admit_longest_prefix(fm_sched *s)
{
    const int n = sort_candidates(s);
    for (int i = 0; i < n; i++) {
        const fm__candidate *c = &s->candidate[i];
        if (!better_waits(s, c) && !try_start(s, c->r)) return;
    }
}

static int budget_left(const fm_sched *s)
{
    return s->n_running < s->opt.max_running && s->n_prefill_row < fm__prefill_budget(&s->opt);
}

void fm__admit(fm_sched *s)
{
    if (!s->waiting.n || !budget_left(s)) return;
    if (s->opt.policy == FM_POLICY_LPM && s->waiting.n <= FM__LPM_MAX) {
        admit_longest_prefix(s);
        return;
    }
    while (s->waiting.head && try_start(s, s->waiting.head)) continue;
}
