/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a set of questions, and turning a question into a prompt. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eval.h"
#include "json/read.h"

enum { MAX_LINE = 1 << 20, MAX_ITEM = 1 << 20 };

static fm_status check_shape(const fm_eval_item *it, const char *name)
{
    if (!it->task) return fm_fail(FM_E_FORMAT, "%s: task: expected a string", name);
    if (!json_is_array(json_object_get(it->line, "messages")))
        return fm_fail(FM_E_FORMAT, "%s: messages: expected a list", name);
    if (it->tools && !json_is_array(it->tools))
        return fm_fail(FM_E_FORMAT, "%s: tools: expected a list", name);
    if (!json_is_string(json_object_get(it->check, "kind")))
        return fm_fail(FM_E_FORMAT, "%s: check.kind: expected a string", name);
    return FM_OK;
}

static fm_status read_line(fm_eval_set *s, const char *text, size_t len, const char *name)
{
    fm_eval_item *grown = realloc(s->item, (size_t)(s->n + 1) * sizeof *grown);
    if (!grown) return fm_fail(FM_E_OOM, "%s", name);
    s->item          = grown;
    fm_eval_item *it = &grown[s->n];
    *it              = (fm_eval_item){0};
    FM_TRY(fm_json_parse(&it->line, text, len, name));
    s->n++;
    it->task  = json_string_value(json_object_get(it->line, "task"));
    it->check = json_object_get(it->line, "check");
    it->tools = json_object_get(it->line, "tools");
    return check_shape(it, name);
}

static fm_status read_lines(fm_eval_set *s, FILE *f, const char *path, int64_t limit)
{
    fm_status rc   = FM_OK;
    char     *text = NULL;
    size_t    cap  = 0;
    ssize_t   len;
    for (int row = 1; rc == FM_OK && (limit == 0 || s->n < limit) &&
                      (len = getline(&text, &cap, f)) >= 0; row++) {
        char name[512];
        snprintf(name, sizeof name, "%s:%d", path, row);
        if (len > MAX_LINE || s->n >= MAX_ITEM)
            rc = fm_fail(FM_E_FORMAT, "%s: too long for a set of questions", name);
        else if (len > 1)
            rc = read_line(s, text, (size_t)len, name);
    }
    free(text);
    return rc;
}

fm_status fm_eval_load(fm_eval_set *out, const char *path, int64_t limit)
{
    *out    = (fm_eval_set){0};
    FILE *f = fopen(path, "r");
    if (!f) return fm_fail(FM_E_IO, "%s: %s", path, strerror(errno));
    const fm_status rc = read_lines(out, f, path, limit);
    fclose(f);
    FM_TRY(rc);
    return out->n ? FM_OK : fm_fail(FM_E_FORMAT, "%s: there is no question in it", path);
}

void fm_eval_fini(fm_eval_set *s)
{
    for (int i = 0; i < s->n; i++) {
        json_decref(s->item[i].line);
        fm_str_fini(&s->item[i].prompt);
        fm_str_fini(&s->item[i].answer);
    }
    free(s->item);
    *s = (fm_eval_set){0};
}

/* A question in the renderer's terms; the texts are the JSON's own, but for
 * the tools' and their parameters', which are written out. */
typedef struct {
    fm_chat          chat;
    fm_chat_message *message;
    fm_chat_call    *call; /* of all messages, one after the other */
    fm_chat_tool    *tool;
    size_t           n_message, n_call, n_tool;
} conversation;

static size_t count_calls(const json_t *messages)
{
    size_t        i, n = 0;
    const json_t *m;
    json_array_foreach(messages, i, m) n += json_array_size(json_object_get(m, "tool_calls"));
    return n;
}

static const char *text_of(const json_t *obj, const char *key)
{
    return json_string_value(json_object_get(obj, key));
}

static void add_message(conversation *c, const json_t *m)
{
    fm_chat_message *to    = &c->message[c->n_message++];
    const json_t    *calls = json_object_get(m, "tool_calls");
    size_t           i;
    const json_t    *call;
    *to = (fm_chat_message){.role         = text_of(m, "role"),
                            .content      = text_of(m, "content"),
                            .tool_call_id = text_of(m, "tool_call_id"),
                            .call         = c->call + c->n_call,
                            .n_call       = (int)json_array_size(calls)};
    json_array_foreach(calls, i, call) {
        const json_t *f          = json_object_get(call, "function");
        c->call[c->n_call++] = (fm_chat_call){text_of(f, "name"), text_of(f, "arguments"),
                                              text_of(call, "id")};
    }
}

static void add_tool(conversation *c, const json_t *tool)
{
    const json_t *f        = json_object_get(tool, "function");
    c->tool[c->n_tool++] = (fm_chat_tool){
        .name        = text_of(f, "name"),
        .description = text_of(f, "description"),
        .parameters  = json_dumps(json_object_get(f, "parameters"), JSON_ENCODE_ANY),
        .json        = json_dumps(tool, 0),
    };
}

static fm_status build(conversation *c, const fm_eval_item *it)
{
    const json_t *messages = json_object_get(it->line, "messages");
    size_t        i;
    const json_t *v;
    c->message = calloc(json_array_size(messages) + 1, sizeof *c->message);
    c->call    = calloc(count_calls(messages) + 1, sizeof *c->call);
    c->tool    = calloc(json_array_size(it->tools) + 1, sizeof *c->tool);
    if (!c->message || !c->call || !c->tool) return fm_fail(FM_E_OOM, "a question");
    json_array_foreach(messages, i, v) add_message(c, v);
    json_array_foreach(it->tools, i, v) add_tool(c, v);
    c->chat = (fm_chat){.message        = c->message,
                        .n_message      = (int)c->n_message,
                        .tool           = c->tool,
                        .n_tool         = (int)c->n_tool,
                        .thinking       = 1,
                        .add_generation = 1};
    return FM_OK;
}

static void conversation_fini(conversation *c)
{
    for (size_t i = 0; i < c->n_tool; i++) {
        free((char *)c->tool[i].parameters);
        free((char *)c->tool[i].json);
    }
    free(c->tool);
    free(c->call);
    free(c->message);
}

fm_status fm_eval_render(fm_eval_set *s, const fm_tokenizer *t)
{
    const fm_chat_style style = fm_chat_style_of(t);
    for (int i = 0; i < s->n; i++) {
        conversation c  = {0};
        fm_status    rc = build(&c, &s->item[i]);
        if (rc == FM_OK) rc = fm_chat_render(&c.chat, style, t, &s->item[i].prompt);
        conversation_fini(&c);
        FM_TRY(rc);
    }
    return FM_OK;
}
