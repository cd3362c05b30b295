/* SPDX-License-Identifier: Apache-2.0 */
/* A request to /v1/responses in the words of a chat.
 *
 *     turns of previous_response_id + items of `input`  ─▶  messages
 *
 * `instructions` are a system message of this request alone: those of the previous
 * response do not go on. */
#include <stdlib.h>
#include <string.h>

#include "llm/serve/read/ask.h"
#include "llm/serve/loop/responses_store.h"
#include "llm/serve/read/unsupported.h"
#include "llm/serve/reply/write.h"

static const char *text_at(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

/* ---- items -------------------------------------------------------------------- */

/* A string, or parts of type input_text, output_text or text, joined. */
static fm_status join_text(fm_str *out, const json_t *v, size_t item)
{
    size_t        i;
    const json_t *part;
    fm_str_puts(out, "");
    if (json_is_string(v)) fm_str_add(out, json_string_value(v), json_string_length(v));
    if (json_is_string(v)) return FM_OK;
    if (!json_is_array(v))
        return fm_fail(
            FM_E_FORMAT,
            "request: input[%zu].content: expected a string or a list of parts, found %s", item,
            fm_json_kind(v));
    json_array_foreach(v, i, part)
    {
        const json_t *text = json_object_get(part, "text");
        const char   *type = text_at(part, "type");
        if ((strcmp(type, "input_text") && strcmp(type, "output_text") && strcmp(type, "text")) ||
            !json_is_string(text))
            return fm_fail(
                FM_E_FORMAT,
                "request: input[%zu].content[%zu]: only parts of text are understood, not "
                "\"%.40s\"",
                item, i, type);
        fm_str_add(out, json_string_value(text), json_string_length(text));
    }
    return FM_OK;
}

static fm_status add_message(json_t *turns, const char *role, const json_t *content,
                             const json_t *call_id, size_t item)
{
    fm_str          text = {0};
    const fm_status rc   = join_text(&text, content, item);
    if (rc == FM_OK)
        json_array_append_new(turns, json_pack("{s:s, s:s%, s:O*}", "role", role, "content",
                                               text.text, text.len, "tool_call_id", call_id));
    fm_str_fini(&text);
    return rc;
}

/* Calls that follow each other, or a text, are one turn of the assistant. */
static json_t *calls_of_last_turn(json_t *turns)
{
    const size_t n    = json_array_size(turns);
    json_t      *last = n ? json_array_get(turns, n - 1) : NULL;
    if (!last || strcmp(text_at(last, "role"), "assistant")) {
        last = json_pack("{s:s, s:s}", "role", "assistant", "content", "");
        json_array_append_new(turns, last);
    }
    if (!json_object_get(last, "tool_calls")) json_object_set_new(last, "tool_calls", json_array());
    return json_object_get(last, "tool_calls");
}

static fm_status add_call(json_t *turns, const json_t *v, size_t item)
{
    json_t *name = json_object_get(v, "name"), *arguments = json_object_get(v, "arguments");
    if (!json_is_string(name) || !json_is_string(arguments))
        return fm_fail(FM_E_FORMAT,
                       "request: input[%zu]: a function_call needs a name and arguments", item);
    json_array_append_new(calls_of_last_turn(turns),
                          json_pack("{s:O*, s:s, s:{s:O, s:O}}", "id",
                                    json_object_get(v, "call_id"), "type", "function", "function",
                                    "name", name, "arguments", arguments));
    return FM_OK;
}

static fm_status add_item(json_t *turns, const json_t *v, size_t item)
{
    const char *type = text_at(v, "type"), *role = text_at(v, "role");
    if (!json_is_object(v))
        return fm_fail(FM_E_FORMAT, "request: input[%zu]: expected an object, found %s", item,
                       fm_json_kind(v));
    if (!strcmp(type, "reasoning")) return FM_OK; /* thoughts are not sent back */
    if (!strcmp(type, "function_call")) return add_call(turns, v, item);
    if (!strcmp(type, "function_call_output"))
        return add_message(turns, "tool", json_object_get(v, "output"),
                           json_object_get(v, "call_id"), item);
    if (*type && strcmp(type, "message"))
        return fm_fail(FM_E_NOSUP, "request: input[%zu].type: not supported: \"%.40s\"", item,
                       type);
    if (!*role)
        return fm_fail(FM_E_FORMAT, "request: input[%zu].role is missing or no string", item);
    return add_message(turns, role, json_object_get(v, "content"), NULL, item);
}

static fm_status add_input(json_t *turns, const json_t *input)
{
    size_t        i;
    const json_t *v;
    if (json_is_string(input)) return add_message(turns, "user", input, NULL, 0);
    if (!json_is_array(input))
        return fm_fail(FM_E_FORMAT, "request: input: expected a string or a list, found %s",
                       fm_json_kind(input));
    json_array_foreach(input, i, v) FM_TRY(add_item(turns, v, i));
    return FM_OK;
}

/* The chat so far: a list that the caller owns. */
static fm_status recall(json_t **turns, const json_t *body, const fm__facts *facts)
{
    const char *id   = NULL;
    fm_str      text = {0};
    FM_TRY(fm__opt_text(&id, body, "previous_response_id"));
    if (!id) {
        *turns = json_array();
        return FM_OK;
    }
    if (!fm__responses_get(facts->responses, id, NULL, &text))
        return fm_fail(FM_E_ARG,
                       "request: previous_response_id: there is no response \"%.80s\" here (any "
                       "more)",
                       id);
    const fm_status rc = fm_json_parse(turns, text.text, text.len, "the previous response");
    fm_str_fini(&text);
    return rc;
}

/* ---- other fields --------------------------------------------------------------- */

static void convert_tools(json_t *chat, const json_t *body)
{
    size_t        i;
    const json_t *v, *choice = json_object_get(body, "tool_choice");
    json_t       *list = json_array();
    json_array_foreach(json_object_get(body, "tools"), i, v)
    {
        json_t *about =
            json_pack("{s:O*, s:O*, s:O*, s:O*}", "name", json_object_get(v, "name"), "description",
                      json_object_get(v, "description"), "parameters",
                      json_object_get(v, "parameters"), "strict", json_object_get(v, "strict"));
        json_array_append_new(
            list, json_pack("{s:O*, s:o}", "type", json_object_get(v, "type"), "function", about));
    }
    json_object_set_new(chat, "tools", list);
    if (json_is_object(choice) && !strcmp(text_at(choice, "type"), "function"))
        json_object_set_new(chat, "tool_choice",
                            json_pack("{s:s, s:{s:O*}}", "type", "function", "function", "name",
                                      json_object_get(choice, "name")));
    else if (choice)
        json_object_set(chat, "tool_choice", (json_t *)choice);
}

/* text.format, whose schema is beside its type instead of inside it. */
static void convert_format(json_t *chat, const json_t *body)
{
    json_t *format = json_object_get(json_object_get(body, "text"), "format");
    if (!format || json_is_null(format)) return;
    if (strcmp(text_at(format, "type"), "json_schema")) {
        json_object_set(chat, "response_format", format);
        return;
    }
    json_object_set_new(chat, "response_format",
                        json_pack("{s:s, s:{s:O*, s:O*, s:O*}}", "type", "json_schema",
                                  "json_schema", "name", json_object_get(format, "name"), "schema",
                                  json_object_get(format, "schema"), "strict",
                                  json_object_get(format, "strict")));
}

static void copy_fields(json_t *chat, const json_t *body)
{
    static const char *const names[][2] = {
        {"model", "model"},
        {"stream", "stream"},
        {"temperature", "temperature"},
        {"top_p", "top_p"},
        {"max_output_tokens", "max_completion_tokens"},
        {"parallel_tool_calls", "parallel_tool_calls"},
        {"top_k", "top_k"},
        {"min_p", "min_p"},
        {"seed", "seed"},
        {"stop", "stop"},
        {"stop_token_ids", "stop_token_ids"},
        {"min_tokens", "min_tokens"},
        {"ignore_eos", "ignore_eos"},
        {"logit_bias", "logit_bias"},
        {"repetition_penalty", "repetition_penalty"},
        {"frequency_penalty", "frequency_penalty"},
        {"presence_penalty", "presence_penalty"},
        {"priority", "priority"},
        {"chat_template_kwargs", "chat_template_kwargs"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        json_t *v = json_object_get(body, names[i][0]);
        if (v) json_object_set(chat, names[i][1], v);
    }
    json_t *effort = json_object_get(json_object_get(body, "reasoning"), "effort");
    if (effort) json_object_set(chat, "reasoning_effort", effort);
}

static fm_status refuse_fields(const json_t *body)
{
    static const char *const fields[] = {"background", "conversation", "prompt", "top_logprobs",
                                         "max_tool_calls"};
    FM_TRY(fm__refuse_unsupported(body));
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        const json_t *v = json_object_get(body, fields[i]);
        if (v && !json_is_null(v) && !json_is_false(v) &&
            !(json_is_integer(v) && !json_integer_value(v)))
            return fm_fail(FM_E_NOSUP, "request: %s: not supported in /v1/responses", fields[i]);
    }
    if (!strcmp(text_at(body, "truncation"), "auto"))
        return fm_fail(FM_E_NOSUP, "request: truncation: not supported; conversations are not cut");
    return FM_OK;
}

/* What a response repeats of its request: members of an object, with defaults. */
static void note_request(fm__ask *a, const json_t *body)
{
    static const struct {
        const char *field, *otherwise;
    } said[] = {
        {"instructions", "null"},
        {"max_output_tokens", "null"},
        {"metadata", "{}"},
        {"parallel_tool_calls", "true"},
        {"previous_response_id", "null"},
        {"reasoning", "{\"effort\":null,\"summary\":null}"},
        {"text", "{\"format\":{\"type\":\"text\"}}"},
        {"tool_choice", "\"auto\""},
        {"tools", "[]"},
        {"user", "null"},
    };
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
        const json_t *v    = json_object_get(body, said[i].field);
        char         *text = v && !json_is_null(v)
                                 ? json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY | JSON_PRESERVE_ORDER)
                                 : NULL;
        fm_str_printf(&a->repeated, ",\"%s\":%s", said[i].field, text ? text : said[i].otherwise);
        free(text);
    }
    fm_str_puts(&a->repeated, ",\"temperature\":"); /* as they are in force */
    fm__put_float(&a->repeated, a->params->sampling.temperature);
    fm_str_puts(&a->repeated, ",\"top_p\":");
    fm__put_float(&a->repeated, a->params->sampling.top_p);
}

static void note_turns(fm__ask *a, const json_t *turns)
{
    char *text = json_dumps(turns, JSON_COMPACT | JSON_PRESERVE_ORDER);
    FM_BUG_UNLESS(text != NULL);
    fm_str_puts(&a->turns, text);
    free(text);
}

static fm_status convert(fm__ask *a, json_t *chat, const json_t *body, const fm__facts *facts)
{
    json_t       *turns        = NULL;
    const char   *instructions = NULL;
    const json_t *input        = json_object_get(body, "input");
    FM_TRY(refuse_fields(body));
    FM_TRY(fm__opt_text(&instructions, body, "instructions"));
    a->stores = 1;
    FM_TRY(fm_json_opt_bool(&a->stores, body, "store", fm__at));
    if (!input || json_is_null(input)) return fm_fail(FM_E_FORMAT, "request: input is missing");
    FM_TRY(recall(&turns, body, facts));
    const fm_status rc = add_input(turns, input);
    if (rc == FM_OK) note_turns(a, turns);
    if (instructions)
        json_array_insert_new(turns, 0,
                              json_pack("{s:s, s:s}", "role", "system", "content", instructions));
    json_object_set_new(chat, "messages", turns);
    FM_TRY(rc);
    copy_fields(chat, body);
    convert_tools(chat, body);
    convert_format(chat, body);
    a->format_field = "text.format";
    return FM_OK;
}

fm_status fm__read_responses(fm__ask *a, const json_t *body, const fm__reader *r)
{
    json_t   *chat = json_object();
    fm_status rc   = convert(a, chat, body, r->facts);
    if (rc == FM_OK) rc = fm__read_chat(a, chat, r);
    if (rc == FM_OK) note_request(a, body);
    json_decref(chat);
    return rc;
}
