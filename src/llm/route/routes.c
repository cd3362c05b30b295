/* SPDX-License-Identifier: Apache-2.0 */
/* From a request to who answers it: the router itself, one worker or all of them.
 * Paths are the server's (serve/loop/routes_tab.c) and /workers. */
#include <string.h>

#include "llm/route/page/workers_page.h"
#include "llm/route/route_internal.h"
#include "llm/serve/loop/gate.h"
#include "llm/serve/loop/routes.h"
#include "llm/serve/page/page.h"
#include "llm/serve/reply/error.h"

static void health(fm_route *r, fm_exchange *x)
{
    if (r->draining)
        fm__reply_error(x, 503, "the router is shutting down");
    else if (!fm__roster_n_up(r))
        fm__reply_error(x, 503, "no worker is up");
    else
        fm_exchange_reply(x, 200, "text/plain", NULL, "", 0);
}

/* It answers: no reason to start it anew, whatever its workers do. */
static void alive(fm_route *r, fm_exchange *x)
{
    (void)r;
    fm_exchange_reply(x, 200, "text/plain", NULL, "", 0);
}

static void reply_page(fm_exchange *x, const unsigned char *html, size_t n)
{
    fm_exchange_reply(x, 200, "text/html; charset=utf-8",
                      "Cache-Control: no-cache\r\nX-Content-Type-Options: nosniff\r\n", html, n);
}

static void chat_page(fm_route *r, fm_exchange *x)
{
    (void)r;
    reply_page(x, fm_page_html, fm_page_html_len);
}

static void workers_page(fm_route *r, fm_exchange *x)
{
    (void)r;
    reply_page(x, fm_workers_html, fm_workers_html_len);
}

/* clang-format off */
static const struct {
    const char *path;
    int         is_open;
    void (*run)(fm_route *r, fm_exchange *x);
} own[] = {
    {"/",              1, chat_page},
    {"/router",        1, workers_page},
    {"/health",        1, health},
    {"/ping",          1, health},
    {"/readiness",     1, health},
    {"/liveness",      1, alive},
    {"/metrics",       1, fm__reply_route_metrics},
    {"/engine_metrics", 1, fm__engine_metrics},
    {"/flush_cache",   0, fm__broadcast},
    {"/abort_request", 0, fm__broadcast},
    {"/start_profile", 0, fm__broadcast},
    {"/stop_profile",  0, fm__broadcast},
};
/* clang-format on */
enum { N_OWN = sizeof own / sizeof own[0] };

static int is_get(const fm_exchange *x)
{
    return !strcmp(x->method, "GET") || !strcmp(x->method, "HEAD");
}

static int find_own(const char *path)
{
    int i = 0;
    while (i < N_OWN && strcmp(path, own[i].path)) i++;
    return i;
}

static const fm__dialect *dialect_of(const char *path)
{
    for (int i = 0; i < fm__n_route; i++)
        if (!strcmp(path, fm__routes[i].path)) return fm__routes[i].dialect;
    return NULL;
}

int fm__route_admit(void *ctx, fm_exchange *x)
{
    fm_route      *r    = ctx;
    const int      i    = find_own(x->path);
    const fm__gate gate = {
        .host = r->opt->host, .key = r->key, .n_key = r->n_key, .cors = &r->cors};
    if (!x->request_id[0]) fm__name_request(x, ~r->random_key, r->n_named++);
    if (fm__cors_handle(&r->cors, x)) return 1;
    return fm__gate_refuses(&gate, x,
                            (i < N_OWN && own[i].is_open) || !strcmp(x->path, "/health_generate"));
}

void fm__route_handle(void *ctx, fm_exchange *x)
{
    fm_route *r = ctx;
    const int i = find_own(x->path);
    if (fm__route_admit(r, x)) return;
    if (fm__is_admin_path(x->path)) {
        fm__admin_handle(r, x);
    } else if (i < N_OWN) {
        if (own[i].run == fm__broadcast || is_get(x))
            own[i].run(r, x);
        else
            fm__reply_error_with(x, 405, "this path does not know that method",
                                 "Allow: GET, HEAD\r\n");
    } else {
        const int is_post = !strcmp(x->method, "POST") || !strcmp(x->method, "PUT");
        fm__responses_begin(r, x, is_post ? dialect_of(x->path) : NULL);
    }
}

void fm__route_gone(void *ctx, fm_exchange *x)
{
    fm_route  *r = ctx;
    fm__rcall *c = x->user;
    x->user      = NULL;
    if (c)
        fm__rcall_drop(c);
    else
        fm__gathers_gone(r, x);
}

void fm__route_ended(void *ctx, const fm_exchange *x)
{
    fm_route *r = ctx;
    if (x->status >= 100 && x->status < 600) r->counts.n_status[x->status / 100]++;
    if (r->opt->log_requests && r->hooks.access) fm__log_access(r, x);
}

void fm__route_refusal(void *ctx, const fm_exchange *x, int status, const char *why, fm_str *body)
{
    (void)ctx;
    fm__put_error_at(body, x->path, status, why);
}
