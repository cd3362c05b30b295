/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/serve/reply/responses_object.h"

#include <string.h>

#include "llm/serve/loop/responses_store.h"
#include "llm/serve/reply/write.h"

void fm__put_item_id(fm_str *out, const fm__call *c, fm__item_kind kind, int at)
{
    static const char *const prefix[] = {"", "rs", "msg", "fc"};
    fm_str                   id       = {0};
    fm_str_printf(&id, "%s_%s%02d", prefix[kind], c->name + strcspn(c->name, "_") + 1, at);
    fm__put_word(out, id.text);
    fm_str_fini(&id);
}

void fm__put_part(fm_str *out, fm__item_kind kind, const char *text, size_t len)
{
    fm_str_puts(out, kind == FM__ITEM_TEXT
                         ? "{\"type\":\"output_text\",\"annotations\":[],\"logprobs\":[]"
                           ",\"text\":"
                         : "{\"type\":\"reasoning_text\",\"text\":");
    fm__put_text(out, text, len);
    fm_str_puts(out, "}");
}

static void put_content(fm_str *out, fm__item_kind kind, const char *text, size_t len)
{
    fm_str_puts(out, "[");
    if (text) fm__put_part(out, kind, text, len);
    fm_str_puts(out, "]");
}

static void put_call(fm_str *out, const fm__tool_call *t, const char *text, size_t len)
{
    fm_str_puts(out, ",\"type\":\"function_call\",\"call_id\":");
    fm__put_word(out, t->id.text);
    fm_str_puts(out, ",\"name\":");
    fm__put_word(out, t->name.text);
    fm_str_puts(out, ",\"arguments\":");
    fm__put_text(out, text ? text : "", len);
}

void fm__put_item(fm_str *out, const fm__call *c, fm__item_kind kind, int at,
                  const fm__tool_call *call, const char *text, size_t len, const char *status)
{
    fm_str_puts(out, "{\"id\":");
    fm__put_item_id(out, c, kind, at);
    fm_str_printf(out, ",\"status\":\"%s\"", status);
    if (kind == FM__ITEM_CALL) {
        put_call(out, call, text, len);
    } else {
        fm_str_puts(out, kind == FM__ITEM_TEXT
                             ? ",\"type\":\"message\",\"role\":\"assistant\",\"content\":"
                             : ",\"type\":\"reasoning\",\"summary\":[],\"content\":");
        put_content(out, kind, text, len);
    }
    fm_str_puts(out, "}");
}

static const char *status_of(const fm__answer *a)
{
    if (a->finish == FM_FINISH_STOP) return "completed";
    return a->finish == FM_FINISH_ABORT ? "cancelled" : "incomplete";
}

/* The items a stream tells of, in its order; the last one is cut where the answer is. */
static void put_output(fm_str *out, const fm__call *c, const fm__answer *a)
{
    const int   has_text = a->said.len || (!a->n_call && !a->thought.len);
    const char *status   = a->finish == FM_FINISH_STOP ? "completed" : "incomplete";
    int         n        = 0;
    if (a->thought.len)
        fm__put_item(out, c, FM__ITEM_THOUGHT, n++, NULL, a->thought.text, a->thought.len,
                     has_text || a->n_call ? "completed" : status);
    if (has_text) {
        if (n) fm_str_puts(out, ",");
        fm__put_item(out, c, FM__ITEM_TEXT, n++, NULL, a->said.text ? a->said.text : "",
                     a->said.len, a->n_call ? "completed" : status);
    }
    for (int i = 0; i < a->n_call; i++) {
        const fm__tool_call *t = &a->call[i];
        if (n) fm_str_puts(out, ",");
        fm__put_item(out, c, FM__ITEM_CALL, n++, t, t->arguments.text, t->arguments.len,
                     i < a->n_call - 1 ? "completed" : status);
    }
}

static void put_usage(fm_str *out, const fm__call *c)
{
    const fm__usage u = fm__call_usage(c);
    fm_str_printf(out,
                  "{\"input_tokens\":%lld,\"input_tokens_details\":{\"cached_tokens\":%lld},"
                  "\"output_tokens\":%lld,\"output_tokens_details\":{\"reasoning_tokens\":%lld},"
                  "\"total_tokens\":%lld}",
                  (long long)u.prompt, (long long)u.cached, (long long)u.output,
                  (long long)u.thought, (long long)(u.prompt + u.output));
}

void fm__put_response(fm_str *out, const fm__call *c, int in_progress)
{
    const fm__answer *a = &c->answer[0];
    fm_str_puts(out, "{\"id\":");
    fm__put_word(out, c->name);
    fm_str_printf(out, ",\"object\":\"response\",\"created_at\":%lld,\"status\":\"%s\",\"model\":",
                  (long long)c->created, in_progress ? "in_progress" : status_of(a));
    fm__put_word(out, c->ask->model);
    fm_str_puts(out, ",\"output\":[");
    if (!in_progress) put_output(out, c, a);
    fm_str_puts(out, "],\"usage\":");
    if (in_progress)
        fm_str_puts(out, "null");
    else
        put_usage(out, c);
    fm_str_printf(out,
                  ",\"error\":null,\"incomplete_details\":%s,\"background\":false,\"store\":%s,"
                  "\"truncation\":\"disabled\"",
                  !in_progress && a->finish == FM_FINISH_LENGTH
                      ? "{\"reason\":\"max_output_tokens\"}"
                      : "null",
                  c->ask->stores ? "true" : "false");
    fm_str_add(out, c->ask->repeated.text, c->ask->repeated.len);
    fm_str_puts(out, "}");
}

/* The answer as the next turn of the chat. */
static void put_turn(fm_str *out, const fm__answer *a)
{
    fm_str_puts(out, "{\"role\":\"assistant\",\"content\":");
    fm__put_text(out, a->said.text ? a->said.text : "", a->said.len);
    for (int i = 0; i < a->n_call; i++) {
        fm_str_puts(out, i ? ",{\"id\":" : ",\"tool_calls\":[{\"id\":");
        fm__put_word(out, a->call[i].id.text);
        fm_str_puts(out, ",\"type\":\"function\",\"function\":{\"name\":");
        fm__put_word(out, a->call[i].name.text);
        fm_str_puts(out, ",\"arguments\":");
        fm__put_text(out, a->call[i].arguments.text ? a->call[i].arguments.text : "",
                     a->call[i].arguments.len);
        fm_str_puts(out, "}}");
    }
    fm_str_puts(out, a->n_call ? "]}" : "}");
}

void fm__keep_response(const fm__call *c)
{
    fm_str object = {0}, turns = {0};
    if (!c->ask->stores) return;
    fm__put_response(&object, c, 0);
    fm_str_add(&turns, c->ask->turns.text, c->ask->turns.len - 1); /* without its ] */
    if (turns.len > 1) fm_str_puts(&turns, ",");
    put_turn(&turns, &c->answer[0]);
    fm_str_puts(&turns, "]");
    fm__responses_put(c->responses, c->name, &object, &turns);
    fm_str_fini(&object);
    fm_str_fini(&turns);
}
