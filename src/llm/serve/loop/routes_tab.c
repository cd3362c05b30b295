/* SPDX-License-Identifier: Apache-2.0 */
/* Which path does what. */

#include "base/clock.h"
#include "llm/serve/page/page.h"
#include "llm/serve/loop/routes.h"

static void page(fm_serve *s, fm_exchange *x)
{
    (void)s;
    fm_exchange_reply(x, 200, "text/html; charset=utf-8",
                      "Cache-Control: no-cache\r\nX-Content-Type-Options: nosniff\r\n",
                      fm_page_html, fm_page_html_len);
}

/* Alive: a step ended lately, or there is nothing to do. */
static void health(fm_serve *s, fm_exchange *x)
{
    const fm__engine_state e    = fm__engine_get_state(s->engine_thread);
    const int              busy = e.info.sched.n_running + e.info.sched.n_waiting > 0;
    if (s->draining)
        fm__reply_error(x, 503, "the server is shutting down");
    else if (busy && fm_now() - e.last_step > 120)
        fm__reply_error(x, 503, "no step has ended for two minutes");
    else
        fm_exchange_reply(x, 200, "text/plain", NULL, "", 0);
}

static void health_generate(fm_serve *s, fm_exchange *x)
{
    if (s->draining)
        fm__reply_error(x, 503, "the server is shutting down");
    else
        fm__call_begin_probe(s, x);
}

static void abort_request(fm_serve *s, fm_exchange *x)
{
    json_t *body = NULL;
    if (fm_json_parse(&body, x->body, x->body_len, "request") != FM_OK || !json_is_object(body)) {
        fm__reply_error(x, 400, body ? "request: expected a JSON object" : fm_why());
        json_decref(body);
        return;
    }
    const char *rid = json_string_value(json_object_get(body, "rid"));
    const int   all = json_is_true(json_object_get(body, "abort_all"));
    if (!all && !rid) {
        fm__reply_error(x, 400, "request: rid is missing, and abort_all is not true");
    } else {
        fm__calls_abort(s, all ? NULL : rid);
        fm_exchange_reply(x, 200, "application/json", NULL, "{\"success\":true}", 16);
    }
    json_decref(body);
}

/* clang-format off */
const fm__route fm__routes[] = {
    {"/v1/chat/completions",      FM__POST,               "chat, OpenAI's form",                 .dialect = &fm__dialect_chat},
    {"/v1/completions",           FM__POST,               "text completion, OpenAI's form",      .dialect = &fm__dialect_completion},
    {"/v1/responses",             FM__POST,               "chat, OpenAI's newer form",           .dialect = &fm__dialect_responses},
    {"/v1/messages",              FM__POST,               "chat, Anthropic's form",              .dialect = &fm__dialect_messages},
    {"/generate",                 FM__POST | FM__PUT,     "text or ids, SGLang's form",          .dialect = &fm__dialect_generate},
    {"/api/chat",                 FM__POST,               "chat, Ollama's form",                 .dialect = &fm__dialect_ollama_chat},
    {"/api/generate",             FM__POST,               "a prompt, Ollama's form",             .dialect = &fm__dialect_ollama_generate},
    {"/v1/messages/count_tokens", FM__POST,               "tokens of a chat, Anthropic's form",  .text = fm__count_tokens},
    {"/v1/tokenize",              FM__POST,               "text to ids",                         .text = fm__tokenize},
    {"/tokenize",                 FM__POST,               "text to ids",                         .text = fm__tokenize},
    {"/v1/detokenize",            FM__POST,               "ids to text",                         .text = fm__detokenize},
    {"/detokenize",               FM__POST,               "ids to text",                         .text = fm__detokenize},
    {"/parse_function_call",      FM__POST,               "tool calls of a finished text",       .text = fm__parse_function_call},
    {"/separate_reasoning",       FM__POST,               "reasoning of a finished text",        .text = fm__separate_reasoning},
    {"/",                         FM__GET | FM__OPEN,     "a page to chat on",                   .run = page},
    {"/health",                   FM__GET | FM__OPEN,     "is it alive",                         .run = health},
    {"/ping",                     FM__GET | FM__OPEN,     "is it alive",                         .run = health},
    {"/health_generate",          FM__GET | FM__OPEN,     "can it generate a token",             .run = health_generate},
    {"/metrics",                  FM__GET | FM__OPEN,     "Prometheus text",                     .run = fm__reply_metrics},
    {"/version",                  FM__GET,                "of this server",                      .run = fm__reply_version},
    {"/openapi.json",             FM__GET,                "this list",                           .run = fm__reply_openapi},
    {"/v1/models",                FM__GET,                "the served model",                    .run = fm__reply_models},
    {"/server_info",              FM__GET,                "settings and state",                  .run = fm__reply_server_info},
    {"/get_server_info",          FM__GET,                "settings and state",                  .run = fm__reply_server_info},
    {"/model_info",               FM__GET,                "about the model",                     .run = fm__reply_model_info},
    {"/get_model_info",           FM__GET,                "about the model",                     .run = fm__reply_model_info},
    {"/v1/loads",                 FM__GET,                "requests that run and wait",          .run = fm__reply_loads},
    {"/api/tags",                 FM__GET,                "the served model, Ollama's form",     .run = fm__reply_ollama_tags},
    {"/api/ps",                   FM__GET,                "the served model, Ollama's form",     .run = fm__reply_ollama_tags},
    {"/api/show",                 FM__POST,               "about the model, Ollama's form",      .run = fm__reply_ollama_show},
    {"/api/version",              FM__GET,                "of this server",                      .run = fm__reply_version},
    {"/cache_feed",               FM__GET,                "prefixes in the cache, for routers",  .run = fm__call_begin_feed},
    {"/flush_cache",              FM__GET | FM__POST,     "forgets cached prefixes",             .run = fm__call_begin_flush},
    {"/start_profile",            FM__GET | FM__POST,     "records where time goes, to a file",  .run = fm__profile_start},
    {"/stop_profile",             FM__GET | FM__POST,     "ends the recording",                  .run = fm__profile_stop},
    {"/abort_request",            FM__POST,               "ends a request",                      .run = abort_request},
};
/* clang-format on */
const int fm__n_route = (int)(sizeof fm__routes / sizeof fm__routes[0]);
