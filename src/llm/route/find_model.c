/* SPDX-License-Identifier: Apache-2.0 */
/* Which tokenizer the workers have: as the options say, or else as the first worker says,
 * if its files can be read here. */
#include <stdlib.h>
#include <string.h>

#include "json/read.h"
#include "llm/route/route_internal.h"

static const double patience   = 10;
static const size_t most_bytes = (size_t)1 << 20;

static void open_tokenizer(fm_route *r, const char *path)
{
    if (r->prompts) return;
    if (fm__prompts_open(&r->prompts, path, r->opt) == FM_OK && fm__prompts_start(r) == FM_OK)
        fm__say(r, "prompts are read with the tokenizer of %s", path);
    else
        fm__say(r, "prompts cannot be read, requests are placed by load: %s", fm_why());
}

static void on_done(void *ctx, const char *why)
{
    fm_worker      *w    = ctx;
    const fm_query *q    = &w->model;
    json_t         *info = NULL;
    if (!why && q->status == 200 && q->reply.len &&
        fm_json_parse(&info, q->reply.text, q->reply.len, "model_info") == FM_OK) {
        const char *path = json_string_value(json_object_get(info, "tokenizer_path"));
        if (path) open_tokenizer(w->route, path);
    }
    json_decref(info);
    fm_str_fini(&w->model.reply);
}

void fm__find_model(fm_route *r, fm_worker *w)
{
    if (r->policy != FM_ROUTE_CACHE_AWARE || r->prompts || w->model.fetch || w->model.status)
        return;
    const fm_query_ask ask = {.method     = "GET",
                              .target     = "/get_model_info",
                              .seconds    = patience,
                              .most_bytes = most_bytes,
                              .done       = on_done,
                              .ctx        = w};
    fm_query_send(&w->model, w, &ask);
}
