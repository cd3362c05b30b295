/* SPDX-License-Identifier: Apache-2.0 */
/* A worker whose HTTP loop answers while its engine hangs: its health checks are good and its
 * streams stand still.  It is down when
 *
 *     requests are under way there,
 *     no byte of any of their replies has come for the limit, and
 *     the engine's counter of steps (num_steps_total of its /metrics) has not moved either.
 *
 * A healthy engine that computes a long prompt makes steps, or one very long step: the limit
 * contains the time of a step over 128 Ki prompt tokens at the rate that the worker reported.
 * Workers that report no rate or count no steps are not judged. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "llm/route/route_internal.h"

static const double longest_step = 131072; /* prompt tokens */
static const double patience = 2, interval = 1;
static const size_t most_bytes = (size_t)8 << 20;

/* -1: it is not there. */
static double read_steps(const char *text)
{
    static const char name[] = "num_steps_total";
    const size_t      n      = strlen(name);
    for (const char *at = text; *at; at += strcspn(at, "\n"), at += *at == '\n') {
        const size_t len = strcspn(at, "{ \n");
        if (*at == '#' || len < n || strncmp(at + len - n, name, n)) continue;
        const char *value = at + strcspn(at, "\n");
        while (value > at && value[-1] != ' ') value--;
        return strtod(value, NULL);
    }
    return -1;
}

static double limit(const fm_worker *w)
{
    return w->route->opt->hang_seconds + longest_step / w->feed.prefill_rate;
}

static double silence(const fm_worker *w, double now) { return now - w->progress.heard; }

static void on_done(void *ctx, const char *why)
{
    fm_worker          *w    = ctx;
    fm_worker_progress *s    = &w->progress;
    const double        now  = fm_now();
    const int           ok   = !why && s->query.status == 200 && s->query.reply.len;
    const double        step = ok ? read_steps(s->query.reply.text) : -1;
    fm_str_fini(&s->query.reply);
    if (step < 0 || step != s->n_step) {
        s->n_step = step;
        s->moved  = now;
    }
    if (!w->n_active || silence(w, now) < limit(w) || now - s->moved < limit(w)) return;
    s->is_hung = 1;
    fm__health_fail(w, "its engine has made no step for %.0f s", silence(w, now));
}

void fm__progress_tick(fm_route *r)
{
    const double now = fm_now(), often = r->opt->hang_seconds / 4;
    const double pause = often < interval ? often : interval;
    if (r->opt->hang_seconds <= 0) return;
    for (fm_worker *w = r->workers; w; w = w->next) {
        fm_worker_progress *s = &w->progress;
        if (w->health != FM_WORKER_UP || !w->n_active || w->feed.prefill_rate <= 0) continue;
        if (silence(w, now) < pause || s->query.fetch || now - s->asked < pause) continue;
        const fm_query_ask ask = {.method     = "GET",
                                  .target     = "/metrics",
                                  .seconds    = patience,
                                  .most_bytes = most_bytes,
                                  .done       = on_done,
                                  .ctx        = w};
        s->asked               = now;
        fm_query_send(&s->query, w, &ask);
    }
}
