/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates for a call: workers that are up, have room and have not just failed it. */
#include "base/clock.h"
#include "llm/route/route_internal.h"

enum { MAX_CANDIDATES = 1024 };
static const double guessed_rate = 5000, guessed_row = 1e-4;

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

static double used_share(const fm_worker_feed *f)
{
    const double used = (double)(f->pages.n_held + f->pages.n_expected);
    return used < (double)f->n_page ? used / (double)f->n_page : 1;
}

/* Only ratios between workers matter.  What equal workers report differs by what each has computed
 * lately, most of all in their first seconds: those within a factor of two of the best count as
 * equal to it, and so does one that has not said how fast it is. */
static double rate_of(const fm_worker *w, double best)
{
    const double own = w->feed.prefill_rate;
    return own > 0 && own < best / 2 ? own : best;
}

static fm_candidate candidate_of(const fm_worker *w, fm__rcall *c, double rate, double row)
{
    const int elsewhere = w->feed.load - w->n_active; /* sent by other routers */
    return (fm_candidate){.load           = w->n_active + (elsewhere > 0 ? elsewhere : 0),
                          .pending_tokens = w->pending_tokens,
                          .n_cached       = fm__prompt_cached(c, w),
                          .used_share     = used_share(&w->feed),
                          .prefill_rate   = rate_of(w, rate),
                          .row_seconds    = w->feed.row_seconds > 0 ? w->feed.row_seconds : row};
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
    const double rate = best_prefill_rate(list, n);
    for (int i = 0; i < n; i++) candidate[i] = candidate_of(list[i], c, rate, guessed_row);
    const int i = fm_policy_choose(r->policy, candidate, n, &ask, &r->policy_state);
    *n_cached   = candidate[i].n_cached;
    return list[i];
}
