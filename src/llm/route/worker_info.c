/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker says of itself when it is up (GET /get_server_info): which tokenizer it has, which
 * is the router's where the options name none and its files can be read here, and whether its
 * answers are those of the other workers. */
#include <stdlib.h>
#include <string.h>

#include "json/read.h"
#include "llm/route/route_internal.h"

static const double patience   = 10;
static const size_t most_bytes = (size_t)1 << 20;

static void open_tokenizer(fm_route *r, const char *path)
{
    if (r->policy != FM_ROUTE_CACHE_AWARE || r->prompts) return;
    if (fm__prompts_open(&r->prompts, path, r->opt) == FM_OK && fm__prompts_start(r) == FM_OK)
        fm__say(r, "prompts are read with the tokenizer of %s", path);
    else
        fm__say(r, "prompts cannot be read, requests are placed by load: %s", fm_why());
}

/* A tokenizer of its own or that of the model. */
static const char *tokenizer_of(const json_t *info)
{
    const char *path = json_string_value(json_object_get(info, "tokenizer_path"));
    return path ? path : json_string_value(json_object_get(info, "model_path"));
}

const fm_worker *fm__worker_differs(fm_str *how, const fm_worker *w)
{
    const fm_worker *other = w->route->workers;
    while (other && (other == w || other->leaving || !other->settings.is_known))
        other = other->next;
    if (!other || !w->settings.is_known) return NULL;
    fm_settings_compare(how, &w->settings, &other->settings);
    return how->len ? other : NULL;
}

static void say_differences(const fm_worker *w)
{
    fm_str           how   = {0};
    const fm_worker *other = fm__worker_differs(&how, w);
    if (other)
        fm__say(w->route, "worker %d %s may answer otherwise than worker %d: %s", w->id, w->url,
                other->id, how.text);
    fm_str_fini(&how);
}

static void on_done(void *ctx, const char *why)
{
    fm_worker      *w    = ctx;
    const fm_query *q    = &w->info;
    json_t         *info = NULL;
    if (!why && q->status == 200 && q->reply.len &&
        fm_json_parse(&info, q->reply.text, q->reply.len, "server_info") == FM_OK &&
        json_is_object(info)) {
        if (tokenizer_of(info)) open_tokenizer(w->route, tokenizer_of(info));
        fm_settings_read(&w->settings, info);
        say_differences(w);
    }
    json_decref(info);
    fm_str_fini(&w->info.reply);
}

void fm__ask_worker_info(fm_worker *w)
{
    if (w->info.fetch || w->info.status) return;
    const fm_query_ask ask = {.method     = "GET",
                              .target     = "/get_server_info",
                              .seconds    = patience,
                              .most_bytes = most_bytes,
                              .done       = on_done,
                              .ctx        = w};
    fm_query_send(&w->info, w, &ask);
}
