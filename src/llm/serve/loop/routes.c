/* SPDX-License-Identifier: Apache-2.0 */
/* From a request to what answers it, and what is noted about it. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "llm/serve/loop/gate.h"
#include "llm/serve/loop/routes.h"
#include "llm/serve/reply/access.h"
#include "llm/serve/reply/write.h"

static int method_of(const char *name)
{
    if (!strcmp(name, "GET") || !strcmp(name, "HEAD")) return FM__GET;
    if (!strcmp(name, "POST")) return FM__POST;
    return !strcmp(name, "PUT") ? FM__PUT : 0;
}

static void reply_wrong_method(fm_exchange *x, int how)
{
    static const struct {
        int         how;
        const char *name;
    } method[]   = {{FM__GET, "GET, HEAD"}, {FM__POST, "POST"}, {FM__PUT, "PUT"}};
    fm_str methods = {0};
    for (int i = 0; i < 3; i++)
        if (how & method[i].how)
            fm_str_printf(&methods, "%s%s", methods.len ? ", " : "", method[i].name);
    fm__reply_wrong_method(x, methods.text);
    fm_str_fini(&methods);
}

static void run_route(fm_serve *s, fm_exchange *x, int i)
{
    if (fm__routes[i].dialect)
        fm__call_begin(s, x, fm__routes[i].dialect);
    else if (fm__routes[i].text)
        fm__call_begin_text(s, x, fm__routes[i].text);
    else
        fm__routes[i].run(s, x);
}

static int find_route(const fm_exchange *x)
{
    int i = 0;
    while (i < fm__n_route && strcmp(x->path, fm__routes[i].path)) i++;
    return i;
}

/* NULL: it does not ask for one model. */
static const char *model_asked_for(const fm_exchange *x)
{
    static const char models[] = "/v1/models/";
    const size_t      n        = strlen(models);
    return method_of(x->method) == FM__GET && !strncmp(x->path, models, n) ? x->path + n : NULL;
}

/* What is known from the head alone. */
int fm__serve_admit(void *ctx, fm_exchange *x)
{
    fm_serve      *s     = ctx;
    const int      i     = find_route(x);
    const int      found = i < fm__n_route;
    const fm__gate gate  = {.host  = s->opt->host,
                            .key   = (const char *const *)&s->opt->api_key,
                            .n_key = s->opt->api_key != NULL,
                            .cors  = &s->cors};
    if (!x->request_id[0]) fm__name_request(x, ~s->key, s->n_named++);
    if (fm__cors_handle(&s->cors, x)) return 1;
    if (fm__gate_refuses(&gate, x, found && fm__routes[i].how & FM__OPEN)) return 1;
    if (found && fm__routes[i].how & method_of(x->method)) return 0;
    if (found)
        reply_wrong_method(x, fm__routes[i].how);
    else if (!model_asked_for(x) && !fm__is_response_path(x))
        fm__reply_error(x, 404, "there is nothing at this path; GET /openapi.json lists the paths");
    else
        return 0;
    return 1;
}

void fm__serve_handle(void *ctx, fm_exchange *x)
{
    fm_serve *s = ctx;
    if (fm__serve_admit(s, x)) return;
    const char *model = model_asked_for(x);
    if (model)
        fm__reply_one_model(s, x, model);
    else if (fm__is_response_path(x))
        fm__handle_response(s, x);
    else
        run_route(s, x, find_route(x));
}

void fm__serve_gone(void *ctx, fm_exchange *x)
{
    fm__call *c = x->user;
    x->user     = NULL;
    if (c) fm__call_drop(ctx, c);
}

static void write_access_line(fm_serve *s, const fm_exchange *x)
{
    const fm__call *c    = x->user;
    fm_str          line = {0};
    fm__put_access(&line, x);
    if (c && c->ask) {
        const fm__usage u = fm__call_usage(c);
        fm_str_puts(&line, ",\"id\":");
        fm__put_word(&line, c->name);
        fm_str_printf(
            &line,
            ",\"stream\":%s,\"prompt_tokens\":%lld,\"cached_tokens\":%lld,\"output_tokens\":%lld",
            c->ask->stream ? "true" : "false", (long long)u.prompt, (long long)u.cached,
            (long long)u.output);
    }
    fm_str_puts(&line, "}\n");
    s->hooks.access(s->hooks.ctx, line.text);
    fm_str_fini(&line);
}

void fm__serve_ended(void *ctx, const fm_exchange *x)
{
    fm_serve *s = ctx;
    if (x->status >= 100 && x->status < 600) s->metrics.n_status[x->status / 100]++;
    if (s->opt->log_requests && s->hooks.access) write_access_line(s, x);
}

void fm__serve_refusal(void *ctx, const fm_exchange *x, int status, const char *why, fm_str *body)
{
    (void)ctx;
    fm__put_error_at(body, x->path, status, why);
}
