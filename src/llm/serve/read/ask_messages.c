/* SPDX-License-Identifier: Apache-2.0 */
/* An Anthropic request in OpenAI's words. */
#include <string.h>

#include "llm/serve/read/ask.h"

static const char *type_of(const json_t *v)
{
    const char *type = json_string_value(json_object_get(v, "type"));
    return type ? type : "";
}

/* A string, or blocks of type text, joined; NULL with a reason. */
static fm_status text_of(fm_str *out, const json_t *v, const char *field)
{
    size_t        i;
    const json_t *block;
    fm_str_puts(out, "");
    if (!v || json_is_null(v)) return FM_OK;
    if (json_is_string(v)) {
        fm_str_add(out, json_string_value(v), json_string_length(v));
        return FM_OK;
    }
    if (!json_is_array(v))
        return fm_fail(FM_E_FORMAT, "request: %s: expected a string or a list of blocks, found %s",
                       field, fm_json_kind(v));
    json_array_foreach (v, i, block) {
        const json_t *text = json_object_get(block, "text");
        if (strcmp(type_of(block), "text") || !json_is_string(text))
            return fm_fail(FM_E_FORMAT,
                           "request: %s[%zu]: only blocks of type \"text\" are understood here",
                           field, i);
        fm_str_add(out, json_string_value(text), json_string_length(text));
    }
    return FM_OK;
}

static fm_status add_text(json_t *list, const char *role, const json_t *content, const char *id,
                          const char *field)
{
    fm_str          text = {0};
    const fm_status rc   = text_of(&text, content, field);
    if (rc == FM_OK)
        json_array_append_new(list, json_pack("{s:s, s:s%, s:s*}", "role", role, "content",
                                              text.text, text.len, "tool_call_id", id));
    fm_str_fini(&text);
    return rc;
}

static fm_status add_call(json_t *calls, const json_t *block)
{
    json_t *name = json_object_get(block, "name"), *id = json_object_get(block, "id");
    json_t *input = json_object_get(block, "input");
    if (!json_is_string(name) || (input && !json_is_object(input)))
        return fm_fail(FM_E_FORMAT,
                       "request: messages: a tool_use block needs a name and an input object");
    json_array_append_new(calls,
                          json_pack("{s:O*, s:s, s:{s:O, s:O*}}", "id", id, "type", "function",
                                    "function", "name", name, "arguments", input));
    return FM_OK;
}

/* Blocks of one turn: text and calls stay together, results become turns. */
static fm_status add_blocks(json_t *list, const char *role, const json_t *blocks)
{
    size_t        i;
    const json_t *block;
    fm_str        text  = {0};
    json_t       *calls = json_array();
    fm_status     rc    = FM_OK;
    fm_str_puts(&text, "");
    json_array_foreach (blocks, i, block) {
        const char   *type  = type_of(block);
        const json_t *words = json_object_get(block, "text");
        if (!strcmp(type, "text") && json_is_string(words))
            fm_str_add(&text, json_string_value(words), json_string_length(words));
        else if (!strcmp(type, "tool_use")) rc = add_call(calls, block);
        else if (!strcmp(type, "tool_result"))
            rc = add_text(list, "tool", json_object_get(block, "content"),
                          json_string_value(json_object_get(block, "tool_use_id")),
                          "tool_result.content");
        else if (strcmp(type, "thinking") && strcmp(type, "redacted_thinking"))
            rc = fm_fail(FM_E_FORMAT,
                         "request: messages: blocks of type \"%.40s\" are not understood", type);
        if (rc != FM_OK) break;
    }
    if (rc == FM_OK && (text.len || json_array_size(calls))) {
        json_t *m = json_pack("{s:s, s:s%}", "role", role, "content", text.text, text.len);
        if (json_array_size(calls)) json_object_set(m, "tool_calls", calls);
        json_array_append_new(list, m);
    }
    json_decref(calls);
    fm_str_fini(&text);
    return rc;
}

static fm_status convert_messages(json_t *list, const json_t *body)
{
    size_t        i;
    const json_t *m, *messages = json_object_get(body, "messages"),
                     *system = json_object_get(body, "system");
    if (system && !json_is_null(system)) FM_TRY(add_text(list, "system", system, NULL, "system"));
    if (!json_is_array(messages))
        return fm_fail(FM_E_FORMAT, "request: messages: expected a list, found %s",
                       fm_json_kind(messages));
    json_array_foreach (messages, i, m) {
        const char   *role    = json_string_value(json_object_get(m, "role"));
        const json_t *content = json_object_get(m, "content");
        if (!role || (strcmp(role, "user") && strcmp(role, "assistant") && strcmp(role, "system")))
            return fm_fail(FM_E_FORMAT, "request: messages[%zu].role is none of user, assistant",
                           i);
        if (!content || json_is_null(content))
            return fm_fail(FM_E_FORMAT, "request: messages[%zu].content is missing", i);
        if (json_is_array(content)) FM_TRY(add_blocks(list, role, content));
        else FM_TRY(add_text(list, role, content, NULL, "messages.content"));
    }
    const size_t n    = json_array_size(list);
    json_t      *last = n ? json_array_get(list, n - 1) : NULL;
    const char  *role = json_string_value(json_object_get(last, "role"));
    if (role && !strcmp(role, "assistant") && !json_object_get(last, "tool_calls"))
        json_object_set_new(last, "prefix", json_true()); /* the answer goes on from here */
    return FM_OK;
}

static fm_status convert_tools(json_t *chat, const json_t *body)
{
    size_t        i;
    const json_t *t, *tools = json_object_get(body, "tools"),
                     *choice = json_object_get(body, "tool_choice");
    if (!tools || json_is_null(tools)) return FM_OK;
    if (!json_is_array(tools))
        return fm_fail(FM_E_FORMAT, "request: tools: expected a list, found %s",
                       fm_json_kind(tools));
    json_t *list = json_array();
    json_object_set_new(chat, "tools", list);
    json_array_foreach (tools, i, t) {
        json_t *name = json_object_get(t, "name"), *about = json_object_get(t, "description");
        if (*type_of(t) && strcmp(type_of(t), "custom"))
            return fm_fail(FM_E_NOSUP,
                           "request: tools[%zu].type: not supported; tools of type \"%.40s\" would "
                           "have to run in this server",
                           i, type_of(t));
        if (!json_is_string(name))
            return fm_fail(FM_E_FORMAT, "request: tools[%zu].name is missing or no string", i);
        json_array_append_new(list, json_pack("{s:s, s:{s:O, s:O*, s:O*}}", "type", "function",
                                              "function", "name", name, "description", about,
                                              "parameters", json_object_get(t, "input_schema")));
    }
    const char *type = type_of(choice);
    if (!strcmp(type, "none")) json_object_set_new(chat, "tool_choice", json_string("none"));
    if (!strcmp(type, "any")) json_object_set_new(chat, "tool_choice", json_string("required"));
    if (!strcmp(type, "tool") && json_is_string(json_object_get(choice, "name")))
        json_object_set_new(chat, "tool_choice",
                            json_pack("{s:s, s:{s:O}}", "type", "function", "function", "name",
                                      json_object_get(choice, "name")));
    return FM_OK;
}

static fm_status convert(json_t *chat, const json_t *body)
{
    static const char *const same[] = {"model",    "temperature", "top_p", "top_k", "stream",
                                       "priority", "max_tokens",  "seed",  "rid",   "ignore_eos"};
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        json_t *v = json_object_get(body, same[i]);
        if (v) json_object_set(chat, same[i], v);
    }
    json_t *stops    = json_object_get(body, "stop_sequences"),
           *thinking = json_object_get(body, "thinking");
    if (stops) json_object_set(chat, "stop", stops);
    if (thinking && !json_is_object(thinking) && !json_is_null(thinking))
        return fm_fail(FM_E_FORMAT, "request: thinking: expected an object, found %s",
                       fm_json_kind(thinking));
    if (json_is_object(thinking))
        json_object_set_new(chat, "chat_template_kwargs",
                            json_pack("{s:b}", "thinking", !strcmp(type_of(thinking), "enabled")));
    json_t *list = json_array();
    json_object_set_new(chat, "messages", list);
    FM_TRY(convert_messages(list, body));
    return convert_tools(chat, body);
}

fm_status fm__chat_of_messages(json_t **out, const json_t *body)
{
    json_t         *chat = json_object();
    const fm_status rc   = convert(chat, body);
    if (rc == FM_OK) *out = chat;
    else json_decref(chat);
    return rc;
}
