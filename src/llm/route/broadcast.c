/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that concern every worker: /flush_cache, /abort_request.  One worker's reply is
 * passed on as any other; the same request goes to the others, whose replies nobody reads. */
#include "llm/route/route_internal.h"

static const double patience = 30;

static void on_head(void *ctx, int status, const fm_http_head *h)
{
    (void)ctx;
    (void)status;
    (void)h;
}

static void on_data(void *ctx, const char *bytes, size_t n)
{
    (void)ctx;
    (void)bytes;
    (void)n;
}

static void on_done(void *ctx, const char *why)
{
    (void)ctx;
    (void)why;
}

static void send_copy(const fm_exchange *x, fm_worker *w)
{
    fm_str headers = {0}, target = {0};
    if (w->api_key) fm_str_printf(&headers, "Authorization: Bearer %s\r\n", w->api_key);
    fm__target_of(&target, x);
    const fm_fetch_ask ask = {.method          = x->method,
                              .target          = target.text,
                              .headers         = headers.text,
                              .body            = {x->body},
                              .body_len        = {x->body_len},
                              .connect_seconds = patience,
                              .head_seconds    = patience,
                              .idle_seconds    = patience,
                              .head            = on_head,
                              .data            = on_data,
                              .done            = on_done};
    fm_upstream_send(w->upstream, &ask);
    fm_str_fini(&headers);
    fm_str_fini(&target);
}

void fm__broadcast(fm_route *r, fm_exchange *x)
{
    fm_worker *first = r->workers;
    while (first && (first->health != FM_WORKER_UP || first->draining)) first = first->next;
    for (fm_worker *w = first ? first->next : NULL; w; w = w->next)
        if (w->health == FM_WORKER_UP) send_copy(x, w);
    fm__rcall_begin(r, x, NULL, first ? first->id : 0);
}
