/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/route/gather.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"

static void unlink_gather(fm__gather *g)
{
    fm__gather **at = &g->route->gathers;
    while (*at != g) at = &(*at)->next;
    *at = g->next;
}

static void destroy(fm__gather *g)
{
    for (int i = 0; i < g->n_part; i++) {
        fm_query_fini(&g->part[i].query);
        g->part[i].worker->n_gather--;
    }
    free(g);
}

static void end(fm__gather *g)
{
    unlink_gather(g);
    g->finish(g);
    destroy(g);
}

static void on_done(void *ctx, const char *why)
{
    fm__gather_part *p = ctx;
    fm__gather      *g = p->gather;
    p->is_whole        = !why;
    if (why) snprintf(p->why, sizeof p->why, "%s", why);
    g->n_open--;
    if (!g->n_open || (g->is_enough && p->is_whole && g->is_enough(p))) end(g);
}

static void send_part(fm__gather *g, fm_worker *w, const fm__gather_ask *ask, const char *headers)
{
    fm__gather_part   *p = &g->part[g->n_part++];
    const fm_query_ask q = {.method     = ask->method,
                            .target     = ask->target,
                            .headers    = headers,
                            .body       = ask->body,
                            .body_len   = ask->body_len,
                            .seconds    = ask->seconds,
                            .most_bytes = ask->most_bytes,
                            .done       = on_done,
                            .ctx        = p};
    p->gather            = g;
    p->worker            = w;
    w->n_gather++;
    snprintf(p->why, sizeof p->why, "it has not replied in time");
    if (fm_query_send(&p->query, w, &q))
        g->n_open++;
    else
        snprintf(p->why, sizeof p->why, "no connection can be made");
}

static fm__gather *new_gather(fm_route *r, fm_exchange *x, const fm__gather_ask *ask, int n)
{
    fm__gather *g = calloc(1, sizeof *g + (size_t)n * sizeof g->part[0]);
    FM_BUG_UNLESS(g != NULL);
    g->route     = r;
    g->x         = x;
    g->until     = fm_now() + ask->seconds;
    g->is_enough = ask->is_enough;
    g->finish    = ask->finish;
    g->ctx       = ask->ctx;
    g->next      = r->gathers;
    r->gathers   = g;
    return g;
}

int fm__gather_begin(fm_route *r, fm_exchange *x, const fm__gather_ask *ask)
{
    int    n       = 0;
    fm_str headers = {0};
    for (const fm_worker *w = r->workers; w; w = w->next) n += w->health == FM_WORKER_UP;
    if (!n) return 0;
    const char *type = ask->body_len ? fm_exchange_header(x, "Content-Type") : NULL;
    if (type) fm_str_printf(&headers, "Content-Type: %s\r\n", type);
    fm_str_printf(&headers, "x-request-id: %s\r\n", x->request_id);
    fm__gather *g = new_gather(r, x, ask, n);
    for (fm_worker *w = r->workers; w; w = w->next)
        if (w->health == FM_WORKER_UP) send_part(g, w, ask, headers.text);
    fm_str_fini(&headers);
    if (!g->n_open) end(g);
    return 1;
}

void fm__gathers_gone(fm_route *r, const fm_exchange *x)
{
    fm__gather *g = r->gathers;
    while (g && g->x != x) g = g->next;
    if (!g) return;
    unlink_gather(g);
    destroy(g);
}

void fm__gathers_tick(fm_route *r)
{
    const double now = fm_now();
    for (fm__gather *g = r->gathers, *next; g; g = next) {
        next = g->next;
        if (now >= g->until) end(g);
    }
}

void fm__gathers_fini(fm_route *r)
{
    while (r->gathers) fm__gathers_gone(r, r->gathers->x);
}
