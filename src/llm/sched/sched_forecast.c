/* SPDX-License-Identifier: Apache-2.0 */
/* Will the pages last?  Pages for known tokens are counted exactly; how many
 * tokens a request will still produce is known only if it ignores the end of
 * text.  Otherwise it is a guess: a newcomer counts with all it may produce,
 * one that runs with `ratio` of it.  The ratio falls slowly while all goes
 * well, and after a preemption rises to what was really produced.
 *
 * Requests of known length give their pages back at a known time, so the need
 * is looked at over intervals of time, and the fullest decides. */
#include "llm/sched/sched_internal.h"

enum {
    GUESS_MAX   = 4096, /* tokens; no guess is longer */
    RATIO_STEPS = 600,  /* decode steps from the ratio at rest to its least */
    STEPS_AHEAD = 20,   /* outputs each running request shall fit after a preemption */
    N_INTERVAL  = 32,
};
static const double ratio_start = 0.7, ratio_least = 0.14;

double fm__ratio_at_rest(const fm_sched *s)
{
    const double r = ratio_start * s->opt.conservativeness;
    return r < 1 ? r : 1;
}

void fm__ratio_fall(fm_sched *s)
{
    const double rest = fm__ratio_at_rest(s), least = rest * ratio_least;

    s->ratio -= (rest - least) / RATIO_STEPS;
    if (s->ratio < least) s->ratio = least;
}

void fm__ratio_raise(fm_sched *s)
{
    double produced = 0, allowed = 1;
    for (int i = 0; i < s->n_running; i++) {
        produced += fm_request_n_output(s->running[i].r) + STEPS_AHEAD;
        allowed += s->running[i].r->sampling.max_new_tokens;
    }
    s->ratio = produced < allowed ? produced / allowed : 1;
}

static int32_t expect_more(const fm_request *r, double ratio)
{
    const int32_t left = fm__left(r);

    if (r->sampling.ignore_eos) return left;
    return (int32_t)((left < GUESS_MAX ? left : GUESS_MAX) * ratio);
}

static void look_ahead(const fm_sched *s)
{
    for (int i = 0; i < s->n_running; i++) {
        const fm__slot   *slot = &s->running[i];
        const fm_request *r    = slot->r;
        s->future[i] = (fm__future){
            .n_token  = r->n_token,
            .n_more   = expect_more(r, slot->is_new ? 1 : s->ratio),
            .n_page   = r->lease.n_page,
            .n_sole   = fm_kv_sole_pages(s->kv, &r->lease),
            .is_exact = r->sampling.ignore_eos,
        };
    }
}

/* Pages that r will want on top of the n_page it has, at the end of its text. */
static int64_t wanted_at_end(const fm_sched *s, const fm_request *r, int32_t n_more, int32_t n_page)
{
    const int32_t want = fm__pages(s, r->n_token + n_more);
    return want > n_page ? want - n_page : 0;
}

/* That of all running requests, summed as if none freed its pages before the last one ended: an
 * upper bound of what any interval wants. */
static int64_t most_wanted(const fm_sched *s)
{
    int64_t sum = 0;
    for (int i = 0; i < s->n_running; i++) {
        const fm__slot *slot = &s->running[i];
        sum += wanted_at_end(s, slot->r, expect_more(slot->r, slot->is_new ? 1 : s->ratio),
                             slot->r->lease.n_page);
    }
    return sum;
}

/* Pages wanted on top of today's at the end of the steps (from, to], counting
 * as still there the sequences that end within them. */
static int64_t pages_wanted(const fm_sched *s, int n, int64_t from, int64_t to)
{
    int64_t sum = 0;
    for (int i = 0; i < n; i++) {
        const fm__future *f = &s->future[i];
        if (f->is_exact && from > 0 && f->n_more <= from) {
            sum -= f->n_sole;
            continue;
        }
        const int64_t more = f->is_exact && to < f->n_more ? to : f->n_more;
        const int32_t want = fm__pages(s, f->n_token + more);
        if (want > f->n_page) sum += want - f->n_page;
    }
    return sum;
}

static int64_t last_known_end(const fm_sched *s, int n)
{
    int64_t last = 0;
    for (int i = 0; i < n; i++)
        if (s->future[i].is_exact && s->future[i].n_more > last) last = s->future[i].n_more;
    return last;
}

int fm__fits(const fm_sched *s, const fm_request *r, int32_t n_cached, int32_t n_idle, int32_t n_kept)
{
    const int     n     = s->n_running + 1;
    const int32_t spare = fm__free_pages(s) - n_kept;
    const int32_t more = expect_more(r, 1), n_page = n_cached / s->opt.page_size;

    if (most_wanted(s) + wanted_at_end(s, r, more, n_page) <= spare) return 1;
    look_ahead(s);
    s->future[n - 1] = (fm__future){.n_token  = r->n_token,
                                    .n_more   = more,
                                    .n_page   = n_page,
                                    .n_sole   = n_idle,
                                    .is_exact = r->sampling.ignore_eos};
    const int64_t last = last_known_end(s, n);
    for (int i = 0; i < N_INTERVAL; i++) {
        const int64_t from = last * i / N_INTERVAL, to = last * (i + 1) / N_INTERVAL;
        if (pages_wanted(s, n, from, to) > spare) return 0;
    }
    return 1;
}
