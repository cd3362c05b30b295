/* SPDX-License-Identifier: Apache-2.0 */
/* Which tokenizer the workers have: as the options say, or else as the first worker says,
 * if its files can be read here. */
#include <stdlib.h>
#include <string.h>

#include "json/read.h"
#include "llm/route/route_internal.h"

static const double patience = 10;

static void on_head(void *ctx, int status, const fm_http_head *h)
{
    (void)h;
    ((fm_worker *)ctx)->model_status = status;
}

static void on_data(void *ctx, const char *bytes, size_t n)
{
    fm_worker *w = ctx;
    if (w->model_info.len < (size_t)1 << 20) fm_str_add(&w->model_info, bytes, n);
}

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
    fm_worker *w    = ctx;
    json_t    *info = NULL;
    w->model_fetch  = NULL;
    if (!why && w->model_status == 200 && w->model_info.len &&
        fm_json_parse(&info, w->model_info.text, w->model_info.len, "model_info") == FM_OK) {
        const char *path = json_string_value(json_object_get(info, "tokenizer_path"));
        if (path) open_tokenizer(w->route, path);
    }
    json_decref(info);
    fm_str_fini(&w->model_info);
}

void fm__find_model(fm_route *r, fm_worker *w)
{
    fm_str headers = {0};
    if (r->policy != FM_ROUTE_CACHE_AWARE || r->prompts || w->model_fetch || w->model_status)
        return;
    if (w->api_key) fm_str_printf(&headers, "Authorization: Bearer %s\r\n", w->api_key);
    const fm_fetch_ask a = {.method          = "GET",
                            .target          = "/get_model_info",
                            .headers         = headers.text,
                            .connect_seconds = patience,
                            .head_seconds    = patience,
                            .idle_seconds    = patience,
                            .head            = on_head,
                            .data            = on_data,
                            .done            = on_done,
                            .ctx             = w};
    w->model_fetch       = fm_upstream_send(w->upstream, &a);
    fm_str_fini(&headers);
}
