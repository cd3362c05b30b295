/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates for a call: workers that are up, have room and have not just failed it. */
#include <math.h>

#include "base/clock.h"
#include "llm/route/route_internal.h"

enum { MAX_CANDIDATES = 1024 };
static const double guessed_rate = 5000, guessed_row = 1e-4, believed_seconds = 4;

/* How much a worker is to be preferred; those of the best rank are candidates. */
typedef enum { UNFIT, AVOIDED, SUSPECT, FIT } rank;

static int is_avoided(const fm__rcall *c, const fm_worker *w)
{
    for (int i = 0; i < FM__MAX_AVOID; i++)
        if (c->avoid[i] == w->id) return 1;
    return 0;
}

static int has_room(const fm_route *r, const fm_worker *w)
{
    const int64_t most = r->opt->max_concurrent_per_worker;
    return !most || w->n_active < most;
}

static rank rank_of(fm_route *r, const fm__rcall *c, fm_worker *w, double now)
{
    if (w->health != FM_WORKER_UP || !has_room(r, w)) return UNFIT;
    if (c->pinned ? c->pinned != w->id : w->draining) return UNFIT;
    if (!r->opt->no_breaker && !fm_breaker_allows(&w->breaker, &r->breaker, now)) return UNFIT;
    if (is_avoided(c, w)) return AVOIDED;
    return fm_worker_is_suspect(w, now) ? SUSPECT : FIT;
}

static int collect(fm_route *r, const fm__rcall *c, fm_worker **list)
{
    const double now  = fm_now();
    rank         best = AVOIDED;
    int          n    = 0;
    for (fm_worker *w = r->workers; w && n < MAX_CANDIDATES; w = w->next) {
        const rank k = rank_of(r, c, w, now);
        if (k < best) continue;
        if (k > best) n = 0;
        best      = k;
        list[n++] = w;
    }
    return n;
}

/* Pages that have to be evicted there for this request. */
static int64_t pages_to_evict(const fm_worker *w, const fm__rcall *c, int32_t n_cached)
{
    const fm_worker_feed *f = &w->feed;
    if (!f->page_size) return 0;
    const int64_t added = (int64_t)c->prompt.n - n_cached + c->n_output + w->promised_tokens;
    const int64_t room  = (int64_t)f->n_page - (int64_t)(f->pages.n_held + f->pages.n_expected);
    const int64_t n     = (added + f->page_size - 1) / f->page_size - room;
    return n > 0 ? n : 0;
}

/* How many of its evicted pages will be asked for again: the share that several prompts had. */
static double shared_part(const fm_worker_feed *f)
{
    return f->n_page ? (double)f->pages.n_shared / f->n_page : 0;
}

/* Workers evict what was not used for the longest time, and what was used t seconds ago is asked
 * for again about once in t seconds, if it is shared.  So a new prefix goes where it evicts the
 * oldest pages, as it would in one cache as large as all of them, and where most pages belong to
 * one prompt alone.  Ages within a factor of two count as equal. */
static void expect_losses(fm_candidate *c, fm_worker *const *list, int n, const fm__rcall *call)
{
    int64_t      n_evict[MAX_CANDIDATES];
    double       age[MAX_CANDIDATES], youngest = HUGE_VAL;
    const double now = fm_now();
    for (int i = 0; i < n; i++) {
        n_evict[i] = pages_to_evict(list[i], call, c[i].n_cached);
        age[i]     = n_evict[i] ? fm_cache_index_age(&list[i]->feed.pages, n_evict[i], now) : 0;
        if (age[i] > 0 && age[i] < youngest) youngest = age[i];
    }
    for (int i = 0; i < n; i++) {
        const double evicted = (double)n_evict[i] * list[i]->feed.page_size;
        if (age[i] > 0)
            c[i].n_lost = ldexp(evicted * shared_part(&list[i]->feed), -ilogb(age[i] / youngest));
    }
}

/* Only ratios between workers matter.  What equal workers report differs by what each has computed
 * lately and what ran beside it, most of all in their first seconds: each counts as twice as fast
 * as it says, up to the best.  One that seems slow gets no new prefixes, and would seem slow for
 * ever: after a time without another rate it counts as the best until it has computed a prefix; the
 * slower it is, the longer that time. */
static double rate_of(const fm_worker *w, double best, double now)
{
    const double own = w->feed.prefill_rate;
    if (own <= 0 || 2 * own > best) return best;
    return now - w->feed.rated > believed_seconds * best / own ? best : 2 * own;
}

static fm_candidate candidate_of(const fm_worker *w, fm__rcall *c, double best, double now)
{
    const double row = w->feed.row_seconds;
    return (fm_candidate){.load           = w->n_active + w->feed.elsewhere,
                          .pending_tokens = w->pending_tokens,
                          .n_cached       = fm__prompt_cached(c, w),
                          .prefill_rate   = rate_of(w, best, now),
                          .row_seconds    = row > 0 ? row : guessed_row};
}

static double best_prefill_rate(fm_worker *const *list, int n)
{
    double best = 0;
    for (int i = 0; i < n; i++)
        if (list[i]->feed.prefill_rate > best) best = list[i]->feed.prefill_rate;
    return best > 0 ? best : guessed_rate;
}

fm_worker *fm__choose_worker(fm_route *r, fm__rcall *c, int32_t *n_cached)
{
    fm_worker             *list[MAX_CANDIDATES];
    fm_candidate           candidate[MAX_CANDIDATES];
    const fm_candidate_ask ask = {.n_prompt = (int32_t)c->prompt.n, .n_output = c->n_output};
    const int              n   = collect(r, c, list);
    if (!n) return NULL;
    const double best = best_prefill_rate(list, n), now = fm_now();
    for (int i = 0; i < n; i++) candidate[i] = candidate_of(list[i], c, best, now);
    expect_losses(candidate, list, n, c);
    const int i = fm_policy_choose(r->policy, candidate, n, &ask, &r->policy_state);
    *n_cached   = candidate[i].n_cached;
    return list[i];
}
