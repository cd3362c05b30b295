/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that concern every worker: /flush_cache, /abort_request, /start_profile,
 * /stop_profile.  All workers that are up get the request.  Where they reply alike the client
 * gets that reply, else a line per worker; one that refuses makes the whole an error. */
#include <string.h>

#include "json/read.h"
#include "llm/route/gather.h"
#include "llm/serve/reply/error.h"

static const double patience   = 30;
static const size_t most_bytes = (size_t)1 << 20;

static int status_of(const fm__gather_part *p) { return p->is_whole ? p->query.status : 502; }

static int worst_status(const fm__gather *g)
{
    int worst = 0;
    for (int i = 0; i < g->n_part; i++)
        if (status_of(&g->part[i]) > worst) worst = status_of(&g->part[i]);
    return worst;
}

static int are_alike(const fm__gather *g)
{
    const fm_query *first = &g->part[0].query;
    for (int i = 0; i < g->n_part; i++) {
        const fm_query *q = &g->part[i].query;
        if (!g->part[i].is_whole || q->status != first->status || q->reply.len != first->reply.len)
            return 0;
        if (q->reply.len && memcmp(q->reply.text, first->reply.text, q->reply.len)) return 0;
    }
    return 1;
}

/* A text in one line; of an error its message. */
static void put_text(fm_str *out, const fm_str *reply)
{
    json_t *body = NULL;
    fm_json_parse(&body, reply->text ? reply->text : "", reply->len, "reply");
    const char *message = json_string_value(json_object_get(body, "message"));
    const char *text    = message ? message : reply->text ? reply->text : "";
    for (const char *at = text; *at;) {
        const size_t n = strcspn(at, "\r\n");
        fm_str_add(out, at, n);
        at += n + strspn(at + n, "\r\n");
        if (n && *at) fm_str_puts(out, " ");
    }
    json_decref(body);
}

static void put_lines(fm_str *out, const fm__gather *g)
{
    for (const fm__gather_part *p = g->part; p < g->part + g->n_part; p++) {
        fm_str_printf(out, "%s%s: ", p > g->part ? "\n" : "", p->worker->url);
        if (p->is_whole)
            put_text(out, &p->query.reply);
        else
            fm_str_puts(out, p->why);
    }
}

static void finish(fm__gather *g)
{
    const fm_query *first = &g->part[0].query;
    const int       worst = worst_status(g);
    fm_str          lines = {0};
    put_lines(&lines, g);
    if (are_alike(g))
        fm_exchange_reply(g->x, first->status, first->type, NULL,
                          first->reply.text ? first->reply.text : "", first->reply.len);
    else if (worst >= 400)
        fm__reply_error(g->x, worst, lines.text);
    else
        fm_exchange_reply(g->x, worst, "text/plain", NULL, lines.text, lines.len);
    fm_str_fini(&lines);
}

void fm__broadcast(fm_route *r, fm_exchange *x)
{
    fm_str target = {0};
    fm__target_of(&target, x);
    const fm__gather_ask ask = {.method     = x->method,
                                .target     = target.text,
                                .body       = x->body,
                                .body_len   = x->body_len,
                                .seconds    = patience,
                                .most_bytes = most_bytes,
                                .finish     = finish};
    if (!fm__gather_begin(r, x, &ask)) fm__reply_error(x, 503, "no worker is up");
    fm_str_fini(&target);
}
