/* SPDX-License-Identifier: Apache-2.0 */
/* How each kind of server is asked, and what its events say. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>

#include "bench_online.h"
#include "json/read.h"
#include "llm/text/detokenize.h"

struct fm_wire {
    const char *path;
    int         needs_text;
    json_t *(*body)(const fm_wire_options *o, const fm_data_row *row, int n_output);
    void (*read)(fm_online_answer *a, const json_t *event, double now);
    int (*skim)(const char *json, size_t len, int *has_text); /* or NULL */
};

/* ---- requests ---- */

static json_t *ids_json(const int32_t *id, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++) json_array_append_new(list, json_integer(id[i]));
    return list;
}

static json_t *native_body(const fm_wire_options *o, const fm_data_row *row, int n_output)
{
    return json_pack("{s:o, s:{s:f, s:f, s:i, s:b}, s:b}", "input_ids",
                     ids_json(row->token, row->n_prompt), "sampling_params", "temperature",
                     o->temperature, "top_p", o->top_p, "max_new_tokens", n_output, "ignore_eos",
                     o->ignore_eos, "stream", o->stream);
}

/* What both of OpenAI's endpoints take. */
static json_t *openai_body(const fm_wire_options *o, const char *limit, int n_output)
{
    json_t *b = json_pack("{s:s, s:f, s:f, s:i, s:b, s:b}", "model", o->model, "temperature",
                          o->temperature, "top_p", o->top_p, limit, n_output, "ignore_eos",
                          o->ignore_eos, "stream", o->stream);
    if (o->stream) json_object_set_new(b, "stream_options", json_pack("{s:b}", "include_usage", 1));
    return b;
}

static json_t *completion_body(const fm_wire_options *o, const fm_data_row *row, int n_output)
{
    json_t *b = openai_body(o, "max_tokens", n_output);
    json_object_set_new(b, "prompt", ids_json(row->token, row->n_prompt));
    return b;
}

static json_t *chat_body(const fm_wire_options *o, const fm_data_row *row, int n_output)
{
    fm_str         text = {0};
    fm_detokenizer d    = fm_detokenizer_begin(o->tokenizer, 0);
    for (int i = 0; i < row->n_prompt; i++) fm_detokenizer_push(&d, row->token[i], &text);
    fm_detokenizer_end(&d, &text);
    json_t *said = json_stringn_nocheck(text.text ? text.text : "", text.len);
    fm_str_fini(&text);

    json_t *b = openai_body(o, "max_completion_tokens", n_output);
    json_object_set_new(b, "messages", json_pack("[{s:s, s:o}]", "role", "user", "content", said));
    return b;
}

/* ---- events ---- */

static void fail_answer(fm_online_answer *a, const char *why)
{
    if (!a->error) a->error = strdup(why && *why ? why : "the server reported an error");
}

static int count_of(const json_t *obj, const char *key)
{
    const json_t *v = json_object_get(obj, key);
    return json_is_integer(v) && json_integer_value(v) >= 0 && json_integer_value(v) < INT32_MAX
               ? (int)json_integer_value(v)
               : -1;
}

static void set_finish(fm_online_answer *a, const json_t *reason)
{
    if (!json_is_string(reason)) return;
    a->finish[0] = 0;
    strncat(a->finish, json_string_value(reason), sizeof a->finish - 1);
}

static void add_text(fm_online_answer *a, const json_t *text)
{
    if (json_string_length(text))
        fm_str_add(&a->text, json_string_value(text), json_string_length(text));
}

static void add_ids(fm_online_answer *a, const json_t *list)
{
    const size_t n = json_array_size(list);
    if (n == 0) return;
    int32_t *grown = realloc(a->id, ((size_t)a->n_id + n) * sizeof *grown);
    FM_BUG_UNLESS(grown != NULL);
    a->id = grown;
    for (size_t i = 0; i < n; i++)
        a->id[a->n_id++] = (int32_t)json_integer_value(json_array_get(list, i));
}

static int64_t cached_in(const json_t *obj, const char *key)
{
    const int n = count_of(obj, key);
    return n > 0 ? n : 0;
}

static void set_cached(fm_online_answer *a, const json_t *obj, const json_t *parts)
{
    if (!json_is_object(obj)) return;
    a->cached = (fm_online_cached){.has_parts = json_is_object(parts),
                                   .all       = cached_in(obj, "cached_tokens"),
                                   .device    = cached_in(parts, "device"),
                                   .host      = cached_in(parts, "host"),
                                   .storage   = cached_in(parts, "storage")};
}

/* /generate: the count in meta_info is always the whole; text and ids are, too,
 * unless the server was told to send only what is new. */
static void native_read(fm_online_answer *a, const json_t *event, double now)
{
    const json_t *text   = json_object_get(event, "text"),
                 *ids    = json_object_get(event, "output_ids");
    const json_t *meta   = json_object_get(event, "meta_info");
    const json_t *finish = json_object_get(meta, "finish_reason");
    const int     n      = count_of(meta, "completion_tokens");

    fm_online_arrived(a, now, json_string_length(text) > 0,
                      n >= 0 ? (n > a->n_seen ? n - a->n_seen : 0) : -1);
    if (n >= 0) a->n_output = n;
    if (!json_is_array(ids) || n <= 0 || json_array_size(ids) >= (size_t)n) {
        fm_str_clear(&a->text);
        a->n_id = 0;
    }
    add_text(a, text);
    add_ids(a, ids);
    set_cached(a, meta, json_object_get(meta, "cached_tokens_details"));
    set_finish(a, json_object_get(finish, "type"));
    if (!strcmp(a->finish, "abort"))
        fail_answer(a, json_string_value(json_object_get(finish, "message")));
}

/* The usage of a chunk that has choices counts up to it; alone, it is the end. */
static void openai_read(fm_online_answer *a, const json_t *event, double now, size_t len)
{
    const json_t *choices = json_object_get(event, "choices");
    const json_t *usage   = json_object_get(event, "usage");
    const int     n       = count_of(usage, "completion_tokens");
    const int     counted = json_array_size(choices) > 0 && n >= a->n_seen;
    if (len) fm_online_arrived(a, now, 1, counted ? n - a->n_seen : -1);
    if (n >= 0)
        a->n_output = n;
    else if (a->n_output < a->n_seen)
        a->n_output = a->n_seen;
    set_cached(a, json_object_get(usage, "prompt_tokens_details"), NULL);
    set_finish(a, json_object_get(json_array_get(choices, 0), "finish_reason"));
}

static void completion_read(fm_online_answer *a, const json_t *event, double now)
{
    const json_t *text =
        json_object_get(json_array_get(json_object_get(event, "choices"), 0), "text");
    add_text(a, text);
    openai_read(a, event, now, json_string_length(text));
}

static void chat_read(fm_online_answer *a, const json_t *event, double now)
{
    const json_t *choice = json_array_get(json_object_get(event, "choices"), 0);
    const json_t *said   = json_object_get(choice, "delta");
    if (!said) said = json_object_get(choice, "message");
    const json_t *thought = json_object_get(said, "reasoning_content");
    if (!json_is_string(thought)) thought = json_object_get(said, "reasoning");
    const json_t *content = json_object_get(said, "content");
    add_text(a, thought);
    add_text(a, content);
    openai_read(a, event, now, json_string_length(thought) + json_string_length(content));
}

/* ---- the table ---- */

static const fm_wire native     = {"/generate", 0, native_body, native_read, fm_skim_native};
static const fm_wire completion = {"/v1/completions", 0, completion_body, completion_read, NULL};
static const fm_wire chat       = {"/v1/chat/completions", 1, chat_body, chat_read, NULL};

const fm_wire *fm_wire_find(const char *backend)
{
    static const struct {
        const char    *name;
        const fm_wire *wire;
    } all[] = {{"sglang", &native},        {"sglang-native", &native}, {"sglang-oai", &completion},
               {"vllm", &completion},      {"openai", &completion},    {"lmdeploy", &completion},
               {"sglang-oai-chat", &chat}, {"vllm-chat", &chat},       {"openai-chat", &chat},
               {"lmdeploy-chat", &chat}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (!strcmp(all[i].name, backend)) return all[i].wire;
    return NULL;
}

const char *fm_wire_path(const fm_wire *w)
{
    return w->path;
}

int fm_wire_needs_text(const fm_wire *w)
{
    return w->needs_text;
}

static fm_status add_extra(json_t *body, const char *text)
{
    json_t *extra = NULL;
    FM_TRY(fm_json_parse(&extra, text, strlen(text), "--extra-request-body"));
    const int ok = json_is_object(extra);
    if (ok) json_object_update(body, extra);
    json_decref(extra);
    return ok ? FM_OK : fm_fail(FM_E_ARG, "--extra-request-body: expected an object");
}

fm_status fm_wire_body(fm_str *out, const fm_wire *w, const fm_wire_options *o,
                       const fm_data_row *row, int n_output)
{
    json_t *body = w->body(o, row, n_output);
    FM_BUG_UNLESS(body != NULL);
    fm_status rc = FM_OK;
    if (o->extra && *o->extra) rc = add_extra(body, o->extra);
    char *text = rc == FM_OK ? json_dumps(body, JSON_COMPACT) : NULL;
    json_decref(body);
    if (rc != FM_OK) return rc;
    FM_BUG_UNLESS(text != NULL);
    fm_str_puts(out, text);
    free(text);
    return FM_OK;
}

/* 1: only the count of tokens was read; the event is kept, and parsed if it is the last. */
static int skim(const fm_wire *w, fm_online_answer *a, const char *json, size_t len, double now)
{
    int       has_text = 0;
    const int n        = w->skim ? w->skim(json, len, &has_text) : -1;
    if (n < 0) return 0;
    fm_online_arrived(a, now, has_text, n > a->n_seen ? n - a->n_seen : 0);
    a->n_output = n;
    fm_str_clear(&a->unread);
    fm_str_add(&a->unread, json, len);
    return 1;
}

static void read_whole(const fm_wire *w, fm_online_answer *a, const char *json, size_t len,
                       double now)
{
    json_t *event = NULL;
    if (fm_json_parse(&event, json, len, "the server's reply") != FM_OK) {
        fail_answer(a, fm_why());
        return;
    }
    const json_t *error = json_object_get(event, "error");
    if (error)
        fail_answer(a, json_string_value(json_is_object(error) ? json_object_get(error, "message")
                                                               : error));
    else
        w->read(a, event, now);
    json_decref(event);
}

void fm_wire_read(const fm_wire *w, fm_online_answer *a, const char *json, size_t len, double now)
{
    if (len == 6 && !memcmp(json, "[DONE]", 6)) return;
    if (skim(w, a, json, len, now)) return;
    fm_wire_end(w, a);
    read_whole(w, a, json, len, now);
}

void fm_wire_end(const fm_wire *w, fm_online_answer *a)
{
    if (!a->unread.len) return;
    fm_str event = a->unread;
    a->unread    = (fm_str){0};
    read_whole(w, a, event.text, event.len, a->recent);
    fm_str_fini(&event);
}
