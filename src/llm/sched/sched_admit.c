/* SPDX-License-Identifier: Apache-2.0 */
/* Admission: which waiting requests start, and in which order. */
#include <string.h>

#include "llm/sched/sched_internal.h"

enum {
    SHARED_MIN = 32, /* cached tokens worth waiting for */
    PATIENCE   = 64, /* times a request may be overtaken; then it goes first */
    SHARING    = 4,  /* requests that share pages of the pool take little of the room that one whose
                      * pages are loaded waits for: so many of them count as one */
};

static void start(fm_sched *s, fm_request *r)
{
    const fm_status begun = fm_kv_begin(s->kv, &r->lease, r->token, fm_request_n_lookup(r));
    FM_BUG_UNLESS(begun == FM_OK);
    for (fm_request *q = fm__queue_first(&s->waiting); q != r; q = fm_request_next(q))
        ++*(q->is_loading && 2 * r->lease.n_cached >= r->n_prompt ? &q->n_passed : &q->n_overtaken);
    fm__queue_remove(&s->waiting, r);

    r->has_lease  = 1;
    r->kept       = 0; /* the state of a cached row is not kept */
    r->n_loaded   = 0;
    r->state      = FM_REQ_RUNNING;
    r->n_computed = r->n_published = r->lease.n_cached;
    if (!r->n_preempted) {
        r->n_cached = r->lease.n_cached;
        r->admitted = s->now;
        if (r->n_from_disk > r->n_cached) r->n_from_disk = r->n_cached; /* evicted again */
        if (r->n_from_host > r->n_cached - r->n_from_disk)
            r->n_from_host = r->n_cached - r->n_from_disk;
    } else {
        r->preempted_s += s->now - r->preempted;
    }
    s->n_promised = -1;
    s->stats.n_admission++;
    s->running[s->n_running++] = (fm__slot){.r = r, .is_new = 1};
}

int32_t fm_sched_promised(const fm_sched *s)
{
    const fm_request *r = s->awaits_lookups ? fm__queue_first(&s->waiting) : NULL;
    int32_t           n = 0, n_idle;
    for (int i = 0; r && i < FM_SCHED_LOOKUPS; i++, r = fm_request_next(r)) {
        if (!r->n_loaded) continue;
        (void)fm_kv_probe(s->kv, r->token, fm_request_n_lookup(r), &n_idle);
        n += n_idle < r->n_loaded ? n_idle : r->n_loaded;
    }
    return n;
}

/* The same, which only a start changes while requests are admitted. */
static int32_t promised(fm_sched *s)
{
    if (s->n_promised < 0) s->n_promised = fm_sched_promised(s);
    return s->n_promised;
}

/* Starts r if rows and pages allow.  With nothing running it always may. */
static int try_start(fm_sched *s, fm_request *r)
{
    int32_t       n_idle;
    const int32_t n_cached = fm_kv_probe(s->kv, r->token, fm_request_n_lookup(r), &n_idle);
    const int32_t share    = fm__prefill_share(s, r, n_cached);
    const int32_t own      = n_idle < r->n_loaded ? n_idle : r->n_loaded;
    const int32_t kept     = n_idle + promised(s) - own; /* not to be evicted for r */
    if (!share || (s->n_running && !fm__fits(s, r, n_cached, n_idle, kept))) return 0;

    start(s, r);
    fm__give_prefill(s, &s->running[s->n_running - 1], share);
    return 1;
}

static int32_t n_match(const fm_sched *s, const fm_request *r)
{
    return fm_kv_match(s->kv, r->token, fm_request_n_lookup(r) - 1);
}

static int are_alike(const fm_request *a, const fm_request *b, int32_t from, int32_t to)
{
    return !memcmp(a->token + from, b->token + from, (size_t)(to - from) * sizeof *a->token);
}

static int was_overtaken_enough(const fm_request *r)
{
    return r->n_overtaken + r->n_passed / SHARING >= PATIENCE;
}

/* A running request is about to prefill a good part of this prompt. */
static int better_waits(const fm_sched *s, const fm_request *r)
{
    if (!fm_kv_get_options(s->kv)->share || was_overtaken_enough(r)) return 0;

    const int32_t here = n_match(s, r);
    const int32_t good = fm__pages(s, here + SHARED_MIN) * s->opt.page_size;
    if (good >= fm_request_n_lookup(r)) return 0;
    for (int i = 0; i < s->n_running; i++) {
        const fm_request *by = s->running[i].r;
        if (by->n_computed >= by->n_prompt || by->n_prompt < good || fm__is_ending(by)) continue;
        if (are_alike(r, by, here, good) && are_alike(r, by, 0, here)) return 1;
    }
    return 0;
}

/* One that was preempted or begun elsewhere goes first: its client is already streaming. */
static int is_its_turn(const fm_request *r)
{
    return r->n_preempted || fm_request_n_output(r) || was_overtaken_enough(r);
}

static int ranks_before(const fm__candidate *a, const fm__candidate *b)
{
    if (a->r->priority != b->r->priority) return a->r->priority > b->r->priority;
    if (is_its_turn(a->r) || is_its_turn(b->r)) return is_its_turn(a->r) > is_its_turn(b->r);
    return a->n_match > b->n_match; /* a stable sort keeps arrivals in order */
}

static int sort_candidates(fm_sched *s)
{
    fm__candidate *c = s->candidate;
    int            n = 0;

    for (fm_request *r = fm__queue_first(&s->waiting); r; r = fm_request_next(r), n++) {
        const fm__candidate new = {r, n_match(s, r)};
        int                 at  = n;
        while (at > 0 && ranks_before(&new, &c[at - 1])) at--;
        memmove(&c[at + 1], &c[at], (size_t)(n - at) * sizeof *c);
        c[at] = new;
    }
    return n;
}

/* Starts r, or keeps a place for it while another request computes its prompt.
 * 0: neither is possible, and nothing behind it in the queue may start either. */
static int admit_or_hold(fm_sched *s, fm_request *r, int *n_held)
{
    if (r->is_loading) return !was_overtaken_enough(r); /* its pages may be waiting for room */
    if (s->awaits_lookups && !r->is_looked_up) return 0;
    if (s->n_running + *n_held == s->opt.max_running) return 0;
    if (!better_waits(s, r)) return try_start(s, r);
    ++*n_held;
    return 1;
}

static void admit_longest_prefix(fm_sched *s)
{
    const int n      = sort_candidates(s);
    int       n_held = 0;
    for (int i = 0; i < n && admit_or_hold(s, s->candidate[i].r, &n_held); i++) continue;
}

static void admit_in_line(fm_sched *s)
{
    int n_held = 0;
    for (fm_request *r = fm__queue_first(&s->waiting), *next; r; r = next) {
        next = fm_request_next(r);
        if (!admit_or_hold(s, r, &n_held)) return;
    }
}

static int budget_left(const fm_sched *s)
{
    return s->n_running < s->opt.max_running && s->n_prefill_row < fm__prefill_budget(&s->opt);
}

void fm__admit(fm_sched *s)
{
    if (!s->waiting.n || !budget_left(s)) return;
    s->n_promised = -1;
    if (s->opt.policy == FM_POLICY_LPM && s->waiting.n <= FM__LPM_MAX) admit_longest_prefix(s);
    else                                                               admit_in_line(s);
}
