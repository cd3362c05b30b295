/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/route/query.h"

#include <stdio.h>

#include "llm/route/worker.h"

static void on_head(void *ctx, int status, const fm_http_head *h)
{
    fm_query   *q    = ctx;
    const char *type = fm_http_head_get(h, "Content-Type");
    q->status        = status;
    snprintf(q->type, sizeof q->type, "%s", type ? type : "text/plain");
}

static void on_data(void *ctx, const char *bytes, size_t n)
{
    fm_query *q = ctx;
    if (q->is_too_long || q->reply.len + n > q->most_bytes)
        q->is_too_long = 1;
    else
        fm_str_add(&q->reply, bytes, n);
}

static void on_done(void *ctx, const char *why)
{
    fm_query *q = ctx;
    q->fetch    = NULL;
    q->done(q->ctx, !why && q->is_too_long ? "its reply is too long" : why);
}

int fm_query_send(fm_query *q, struct fm_worker *w, const fm_query_ask *ask)
{
    fm_str headers = {0};
    fm_query_fini(q);
    *q = (fm_query){.most_bytes = ask->most_bytes, .done = ask->done, .ctx = ask->ctx};
    if (w->api_key) fm_str_printf(&headers, "Authorization: Bearer %s\r\n", w->api_key);
    if (ask->headers) fm_str_puts(&headers, ask->headers);
    const fm_fetch_ask a = {.method          = ask->method,
                            .target          = ask->target,
                            .headers         = headers.text,
                            .body            = {ask->body},
                            .body_len        = {ask->body_len},
                            .connect_seconds = ask->seconds,
                            .head_seconds    = ask->seconds,
                            .idle_seconds    = ask->seconds,
                            .head            = on_head,
                            .data            = on_data,
                            .done            = on_done,
                            .ctx             = q};
    q->fetch             = fm_upstream_send(w->upstream, &a);
    fm_str_fini(&headers);
    return q->fetch != NULL;
}

void fm_query_fini(fm_query *q)
{
    if (q->fetch) fm_fetch_cancel(q->fetch);
    fm_str_fini(&q->reply);
    *q = (fm_query){0};
}
