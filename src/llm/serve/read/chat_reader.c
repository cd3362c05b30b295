/* SPDX-License-Identifier: Apache-2.0 */
/* The messages and tools of a chat request -> the prompt's text. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>

#include "llm/serve/read/ask.h"

typedef struct {
    fm__ask         *ask;
    const json_t    *body;
    const fm__facts *facts;
    fm_chat          chat;
    fm_chat_message *message;
    fm_chat_call   **call; /* [n_message] owned */
    fm_chat_tool    *tool;
    fm_grammar_tool *form; /* [n_tool] the same, as the grammar wants them */
    int              n_read;
    char           **owned; /* texts made here */
    size_t           n_owned, cap_owned;
} reading;

static const char *keep(reading *r, char *text)
{
    if (r->n_owned == r->cap_owned) {
        r->cap_owned = r->cap_owned ? 2 * r->cap_owned : 16;
        r->owned     = realloc(r->owned, r->cap_owned * sizeof *r->owned);
        FM_BUG_UNLESS(r->owned != NULL);
    }
    FM_BUG_UNLESS(text != NULL);
    return r->owned[r->n_owned++] = text;
}

static fm_status no_nul(const json_t *v, const char *field, int i)
{
    if (strlen(json_string_value(v)) == json_string_length(v)) return FM_OK;
    return fm_fail(FM_E_FORMAT, "request: %s[%d] contains a NUL character", field, i);
}

/* A string, or a list of {type: "text", text}, joined. */
static fm_status read_content(reading *r, const char **out, const json_t *v, int i)
{
    size_t        k;
    const json_t *part;
    if (!v || json_is_null(v)) return FM_OK;
    if (json_is_string(v)) {
        *out = json_string_value(v);
        return no_nul(v, "messages", i);
    }
    if (!json_is_array(v))
        return fm_fail(FM_E_FORMAT,
                       "request: messages[%d].content: expected a string or a list of parts, "
                       "found %s",
                       i, fm_json_kind(v));
    fm_str joined = {0};
    fm_str_puts(&joined, "");
    *out         = joined.text;
    fm_status rc = FM_OK;
    json_array_foreach (v, k, part) {
        const char   *type = json_string_value(json_object_get(part, "type"));
        const json_t *text = json_object_get(part, "text");
        if (!type || strcmp(type, "text"))
            rc = fm_fail(FM_E_FORMAT,
                         "request: messages[%d].content[%zu]: only parts of type \"text\" are "
                         "understood",
                         i, k);
        else if (!json_is_string(text))
            rc = fm_fail(FM_E_FORMAT,
                         "request: messages[%d].content[%zu].text: expected a string, found %s", i,
                         k, fm_json_kind(text));
        else if ((rc = no_nul(text, "messages", i)) == FM_OK)
            fm_str_puts(&joined, json_string_value(text));
        if (rc != FM_OK) break;
    }
    *out = keep(r, joined.text);
    return rc;
}

static fm_status read_call(reading *r, fm_chat_call *out, const json_t *v, int i)
{
    const json_t *function  = json_object_get(v, "function");
    const json_t *arguments = json_object_get(function, "arguments");
    const json_t *name = json_object_get(function, "name"), *id = json_object_get(v, "id");
    if (!json_is_string(name))
        return fm_fail(FM_E_FORMAT,
                       "request: messages[%d].tool_calls: a call without function.name", i);
    FM_TRY(no_nul(name, "messages", i));
    *out = (fm_chat_call){
        .name = json_string_value(name), .arguments = "{}", .id = json_string_value(id)};
    if (json_is_string(arguments)) {
        FM_TRY(no_nul(arguments, "messages", i));
        out->arguments = json_string_value(arguments);
    } else if (json_is_object(arguments)) {
        out->arguments = keep(r, json_dumps(arguments, 0));
    } else if (arguments && !json_is_null(arguments)) {
        return fm_fail(FM_E_FORMAT,
                       "request: messages[%d].tool_calls: arguments: expected a string, found %s",
                       i, fm_json_kind(arguments));
    }
    return FM_OK;
}

static fm_status read_calls(reading *r, fm_chat_message *m, const json_t *v, int i)
{
    size_t        k;
    const json_t *item;
    if (!v || json_is_null(v)) return FM_OK;
    if (!json_is_array(v))
        return fm_fail(FM_E_FORMAT, "request: messages[%d].tool_calls: expected a list, found %s",
                       i, fm_json_kind(v));
    r->call[i] = calloc(json_array_size(v) + 1, sizeof **r->call);
    if (!r->call[i]) return fm_fail(FM_E_OOM, "request");
    m->call = r->call[i];
    json_array_foreach (v, k, item) FM_TRY(read_call(r, &r->call[i][m->n_call++], item, i));
    return FM_OK;
}

static fm_status read_message(reading *r, const json_t *v, int i)
{
    fm_chat_message *m = &r->message[i];
    if (!json_is_object(v))
        return fm_fail(FM_E_FORMAT, "request: messages[%d]: expected an object, found %s", i,
                       fm_json_kind(v));
    const json_t *role = json_object_get(v, "role"), *name = json_object_get(v, "name");
    if (!json_is_string(role))
        return fm_fail(FM_E_FORMAT, "request: messages[%d].role is missing or no string", i);
    FM_TRY(no_nul(role, "messages", i));
    m->role = json_string_value(role);
    FM_TRY(read_content(r, &m->content, json_object_get(v, "content"), i));
    const json_t *thought = json_object_get(v, "reasoning_content"),
                 *id      = json_object_get(v, "tool_call_id");
    if (json_is_string(thought)) {
        FM_TRY(no_nul(thought, "messages", i));
        m->reasoning = json_string_value(thought);
    }
    m->tool_call_id = json_string_value(id);
    m->name         = json_string_value(name);
    m->prefix       = json_is_true(json_object_get(v, "prefix"));
    FM_TRY(read_calls(r, m, json_object_get(v, "tool_calls"), i));
    if (!m->content && !m->n_call && !m->reasoning)
        return fm_fail(FM_E_FORMAT, "request: messages[%d].content is missing", i);
    return FM_OK;
}

static fm_status read_messages(reading *r)
{
    size_t        i;
    const json_t *v, *list = json_object_get(r->body, "messages");
    int           go_on = 0;
    if (!json_is_array(list))
        return fm_fail(FM_E_FORMAT, "request: messages: expected a list, found %s",
                       fm_json_kind(list));
    const size_t n = json_array_size(list);
    r->message     = calloc(n + 1, sizeof *r->message);
    r->call        = calloc(n + 1, sizeof *r->call);
    if (!r->message || !r->call) return fm_fail(FM_E_OOM, "request");
    json_array_foreach (list, i, v) {
        r->n_read = (int)i + 1;
        FM_TRY(read_message(r, v, (int)i));
    }
    FM_TRY(fm_json_opt_bool(&go_on, r->body, "continue_final_message", fm__at));
    if (go_on && n && r->message[n - 1].role && !strcmp(r->message[n - 1].role, "assistant"))
        r->message[n - 1].prefix = 1;
    r->chat.message   = r->message;
    r->chat.n_message = (int)n;
    return FM_OK;
}

static fm_status read_tool(reading *r, const json_t *v, int i)
{
    const json_t *f    = json_object_get(v, "function");
    const char   *type = json_string_value(json_object_get(v, "type"));
    if (type && strcmp(type, "function"))
        return fm_fail(FM_E_NOSUP,
                       "request: tools[%d].type: not supported; tools of type \"%.40s\" would have "
                       "to run in this server",
                       i, type);
    if (!f) f = v; /* some clients leave out the wrapper */
    const json_t *name = json_object_get(f, "name"), *about = json_object_get(f, "description");
    const json_t *parameters = json_object_get(f, "parameters");
    if (!json_is_string(name) || !json_string_length(name))
        return fm_fail(FM_E_FORMAT, "request: tools[%d].function.name is missing or no string", i);
    FM_TRY(no_nul(name, "tools", i));
    if (!fm_tool_calls_can_name(json_string_value(name)))
        return fm_fail(FM_E_ARG,
                       "request: tools[%d].function.name: \"%.60s\" has a blank, a control "
                       "character, < or `, or is too long",
                       i, json_string_value(name));
    if (json_is_string(about)) FM_TRY(no_nul(about, "tools", i));
    fm_chat_tool *t = &r->tool[i];
    t->name         = json_string_value(name);
    t->description  = json_string_value(about);
    t->parameters   = json_is_object(parameters)
                          ? keep(r, json_dumps(parameters, JSON_PRESERVE_ORDER))
                          : "{\"type\": \"object\", \"properties\": {}}";
    t->json         = keep(r, json_dumps(v, JSON_PRESERVE_ORDER));
    const int strict = json_is_true(json_object_get(f, "strict"));
    r->form[i]       = (fm_grammar_tool){t->name, t->parameters, strict};

    char *name_copy = strdup(t->name);
    if (!name_copy) return fm_fail(FM_E_OOM, "request");
    r->ask->tool_name[r->ask->n_tool++] = name_copy;
    return FM_OK;
}

static fm_status read_tools(reading *r)
{
    size_t        i;
    const json_t *v, *list = json_object_get(r->body, "tools");
    if (!list || json_is_null(list)) return FM_OK;
    if (!json_is_array(list))
        return fm_fail(FM_E_FORMAT, "request: tools: expected a list, found %s",
                       fm_json_kind(list));
    const size_t n = json_array_size(list);
    if (!n) return FM_OK;
    if (!r->facts->has_tools)
        return fm_fail(FM_E_ARG, "request: tools: this model has no form for tool calls");
    r->tool           = calloc(n, sizeof *r->tool);
    r->form           = calloc(n, sizeof *r->form);
    r->ask->tool_name = calloc(n, sizeof *r->ask->tool_name);
    if (!r->tool || !r->form || !r->ask->tool_name) return fm_fail(FM_E_OOM, "request");
    json_array_foreach (list, i, v) FM_TRY(read_tool(r, v, (int)i));
    r->chat.tool       = r->tool;
    r->chat.n_tool     = (int)n;
    r->ask->tools      = 1;
    r->ask->tool_style = r->facts->tool_style;
    return FM_OK;
}

static int has_tool(const reading *r, const char *name)
{
    for (int i = 0; i < r->chat.n_tool; i++)
        if (!strcmp(r->tool[i].name, name)) return 1;
    return 0;
}

/* The answer goes on from the opening in the form of calls. */
static fm_status constrain_calls(reading *r, const char *name)
{
    int parallel = 1;
    FM_TRY(fm_json_opt_bool(&parallel, r->body, "parallel_tool_calls", fm__at));
    const fm_grammar_calls calls = {.style    = r->ask->tool_style,
                                    .chosen   = name,
                                    .tool     = r->form,
                                    .n_tool   = r->chat.n_tool,
                                    .one_call = !parallel,
                                    .compact  = r->facts->compact_json};
    return r->ask->params ? fm__make_call_grammar(r->ask, r->facts, &calls) : FM_OK;
}

/* none, auto, required, or one function by name. */
static fm_status read_tool_choice(reading *r)
{
    const json_t *v    = json_object_get(r->body, "tool_choice");
    const char   *word = json_string_value(v);
    const char   *name = json_string_value(json_object_get(json_object_get(v, "function"), "name"));
    if (!v || json_is_null(v) || (word && !strcmp(word, "auto"))) return FM_OK;
    if (word && !strcmp(word, "none")) {
        r->ask->tools  = 0;
        r->chat.n_tool = 0;
        return FM_OK;
    }
    if (!(word && !strcmp(word, "required")) && !name)
        return fm_fail(FM_E_FORMAT,
                       "request: tool_choice is none of none, auto, required or a function");
    if (!r->ask->tools) return fm_fail(FM_E_ARG, "request: tool_choice without tools");
    if (name && !has_tool(r, name))
        return fm_fail(FM_E_ARG, "request: tool_choice: there is no tool \"%.60s\"", name);
    fm_tool_calls_opening(r->ask->tool_style, name, &r->ask->forced);
    return constrain_calls(r, name);
}

/* chat_template_kwargs.thinking, enable_thinking, or an effort. */
static fm_status read_thinking(reading *r, int *given)
{
    const json_t    *kwargs = json_object_get(r->body, "chat_template_kwargs");
    const char      *effort = NULL;
    const fm_json_at at     = {"request", "chat_template_kwargs."};
    int              on     = -1;
    FM_TRY(fm_json_opt_string(&effort, r->body, "reasoning_effort", fm__at));
    if (effort) on = strcmp(effort, "none") != 0;
    if (kwargs && !json_is_null(kwargs)) {
        if (!json_is_object(kwargs))
            return fm_fail(FM_E_FORMAT,
                           "request: chat_template_kwargs: expected an object, found %s",
                           fm_json_kind(kwargs));
        FM_TRY(fm_json_opt_bool(&on, kwargs, "enable_thinking", at));
        FM_TRY(fm_json_opt_bool(&on, kwargs, "thinking", at));
    }
    *given           = on;
    r->chat.thinking = on > 0;
    return FM_OK;
}

/* Where the prompt has no tag of the answer's, a parser chosen for a template that never opens
 * reasoning may still say that all answers begin inside, those to tool results excepted. */
static fm_reasoning_mode untagged_reasoning(const reading *r, int thinking)
{
    const fm_chat_style    style  = r->facts->chat_style;
    const fm_chat_message *last   = &r->message[r->chat.n_message - 1];
    const int              opens  = style == FM_CHAT_R1 || style == FM_CHAT_V31;
    const int              wanted = r->facts->reasons_on_request ? thinking == 1 : thinking != 0;
    if (!wanted) return FM_REASONING_OFF;
    return opens || !strcmp(last->role, "tool") ? FM_REASONING_IF_TAGGED : r->facts->reasoning;
}

/* How the answer begins, given how the prompt ends. */
static fm_reasoning_mode reasoning_of(const reading *r, fm_reasoning_mode prompt_ends, int thinking)
{
    if (r->ask->forced.len || r->facts->reasoning == FM_REASONING_OFF) return FM_REASONING_OFF;
    return prompt_ends == FM_REASONING_IF_TAGGED ? untagged_reasoning(r, thinking) : prompt_ends;
}

static fm_status render(reading *r, fm_str *out)
{
    int               thinking = -1, stream_reasoning = 1, separate = 1;
    fm_reasoning_mode prompt_ends;
    FM_TRY(read_messages(r));
    FM_TRY(read_tools(r));
    FM_TRY(read_tool_choice(r));
    FM_TRY(read_thinking(r, &thinking));
    FM_TRY(fm_json_opt_bool(&stream_reasoning, r->body, "stream_reasoning", fm__at));
    FM_TRY(fm_json_opt_bool(&separate, r->body, "separate_reasoning", fm__at));
    if (r->ask->forced.len) r->chat.thinking = 0;
    r->chat.add_generation = 1;
    FM_TRY(fm_chat_render_answer(&r->chat, r->facts->chat_style, r->facts->tokenizer, out,
                                 &prompt_ends));
    r->ask->reasoning   = reasoning_of(r, prompt_ends, thinking);
    r->ask->thinks      = r->ask->reasoning == FM_REASONING_OPEN;
    r->ask->one_thought = !stream_reasoning;
    if (!separate) r->ask->reasoning = FM_REASONING_OFF;
    if (r->ask->tools && r->ask->tool_style == FM_TOOLS_KIMI)
        r->ask->reasoning_also_ends = fm_tool_calls_mark(FM_TOOLS_KIMI);
    if (r->ask->forced.len && prompt_ends == FM_REASONING_OPEN)
        fm_str_puts(out, "\n</think>\n\n"); /* a call is no thought */
    fm_str_add(out, r->ask->forced.text, r->ask->forced.len);
    return FM_OK;
}

fm_status fm__render_chat(fm__ask *a, const json_t *body, const fm__reader *reader, fm_str *out)
{
    if (!reader->facts->tokenizer)
        return fm_fail(FM_E_ARG, "request: this model has no tokenizer, so it cannot chat");
    reading         r  = {.ask = a, .body = body, .facts = reader->facts};
    const fm_status rc = render(&r, out);
    for (int i = 0; i < r.n_read; i++) free(r.call[i]);
    for (size_t i = 0; i < r.n_owned; i++) free(r.owned[i]);
    free(r.owned);
    free(r.message);
    free(r.call);
    free(r.tool);
    free(r.form);
    return rc;
}
