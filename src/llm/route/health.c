/* SPDX-License-Identifier: Apache-2.0 */
/* Health checks: several good ones in a row make a worker up, several bad ones
 * down, and then what it was doing is done by others. */
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "llm/route/route_internal.h"

static const size_t most_bytes = (size_t)1 << 20; /* of a check's reply */
enum { FEED_PATIENCE = 10 }; /* checks more that a worker's feed is waited for */

/* Requests that are placed before its cache is known would be placed wrongly. */
static int checks_to_be_up(const fm_route *r, const fm_worker *w)
{
    const int is_known = r->policy != FM_ROUTE_CACHE_AWARE || w->feed.page_size || w->feed.is_none;
    return (int)r->opt->health_up + (is_known ? 0 : FEED_PATIENCE);
}

static void take_result(fm_route *r, fm_worker *w, int good, int n_down)
{
    if (good) fm__ask_worker_info(w);
    if (!fm_worker_take_probe(w, good, checks_to_be_up(r, w), n_down)) return;
    fm__say(r, "worker %d %s is %s%s%s", w->id, w->url, fm_worker_health_name(w->health),
            w->why[0] ? ": " : "", w->why);
    if (w->health == FM_WORKER_DOWN) {
        fm__feed_forget(w);
        w->feed.is_none = w->feed.page_size = 0;
        w->info.status                      = 0;
        fm__rcalls_leave(r, w);
    } else {
        w->breaker = (fm_breaker){0}; /* what it did before it was down says nothing now */
        fm__rcalls_pump(r);
    }
}

void fm__health_fail(fm_worker *w, const char *fmt, ...)
{
    va_list more;
    va_start(more, fmt);
    vsnprintf(w->why, sizeof w->why, fmt, more);
    va_end(more);
    fm_query_fini(&w->probe); /* a check under way asks for less than what failed */
    take_result(w->route, w, 0, 1);
}

static void on_done(void *ctx, const char *why)
{
    fm_worker *w = ctx;
    w->why[0]    = 0;
    if (why)
        snprintf(w->why, sizeof w->why, "%s", why);
    else if (w->probe.status != 200)
        snprintf(w->why, sizeof w->why, "status %d", w->probe.status);
    if (!w->why[0]) w->progress.is_hung = 0;
    take_result(w->route, w, !w->why[0], (int)w->route->opt->health_down);
}

/* An engine that has hung must show that it generates again. */
static void send_probe(fm_route *r, fm_worker *w, double now)
{
    const fm_query_ask ask = {.method     = "GET",
                              .target     = w->progress.is_hung ? "/health_generate"
                                                                : r->opt->health_endpoint,
                              .seconds    = r->opt->health_seconds,
                              .most_bytes = most_bytes,
                              .done       = on_done,
                              .ctx        = w};
    w->probed              = now;
    fm_query_send(&w->probe, w, &ask);
}

void fm__health_tick(fm_route *r)
{
    const double now = fm_now();
    for (fm_worker *w = r->workers; w; w = w->next)
        if (fm_worker_probe_is_due(w, r->opt->health_interval, now) &&
            !fm_upstream_is_pending(w->upstream))
            send_probe(r, w, now);
}
