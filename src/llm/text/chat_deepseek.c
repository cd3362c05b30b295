/* SPDX-License-Identifier: Apache-2.0 */
/* The layouts of DeepSeek's own models.  {c} is a message's content; nothing
 * is trimmed.
 *
 *     V2    BOS  {c}\n\n  User: {c}\n\n  Assistant: {c}EOS  Assistant:
 *     V3    BOS system  <User>{c}  <Assistant>{c}EOS  <Assistant>
 *     V3.1  BOS system  <User>{c}  <Assistant></think>{c}EOS  <Assistant></think> */
#include <string.h>

#include "llm/text/chat_internal.h"

#define USER          "<｜User｜>"
#define ASSISTANT     "<｜Assistant｜>"
#define CALLS_BEGIN   "<｜tool▁calls▁begin｜>"
#define CALLS_END     "<｜tool▁calls▁end｜>"
#define CALL_BEGIN    "<｜tool▁call▁begin｜>"
#define CALL_END      "<｜tool▁call▁end｜>"
#define CALL_SEP      "<｜tool▁sep｜>"
#define OUTPUTS_BEGIN "<｜tool▁outputs▁begin｜>"
#define OUTPUTS_END   "<｜tool▁outputs▁end｜>"
#define OUTPUT_BEGIN  "<｜tool▁output▁begin｜>"
#define OUTPUT_END    "<｜tool▁output▁end｜>"
#define FENCE         "```"

/* The published V3 and R1 templates know calls and results but not the list
 * of tools, so these words are ours; the form of a call is the model's. */
static const char v3_tools_text[] =
    "\n\n## Tools\n\nYou may call the functions below. To do so, end your answer with calls in "
    "exactly this form, one call per line:\n\n" CALLS_BEGIN CALL_BEGIN "function" CALL_SEP
    "NAME\n" FENCE "json\nARGUMENTS\n" FENCE CALL_END CALLS_END
    "\n\nNAME is a function's name and ARGUMENTS a JSON object that fits its parameters.\n";

static const char v31_tools_text[] = "\n\n## Tools\nYou have access to the following tools:\n";
static const char v31_format_text[] =
    "\nIMPORTANT: ALWAYS adhere to this exact format for tool use:\n" CALLS_BEGIN CALL_BEGIN
    "tool_call_name" CALL_SEP "tool_call_arguments" CALL_END "{{additional_tool_calls}}" CALLS_END
    "\n\nWhere:\n\n"
    "- `tool_call_name` must be an exact match to one of the available tools\n"
    "- `tool_call_arguments` must be valid JSON that strictly follows the tool's Parameters "
    "Schema\n"
    "- For multiple tool calls, chain them directly without separators or spaces\n";

static void put(const fm__rendering *r, const char *text)
{
    fm_str_puts(r->out, fm__text(text));
}

/* All system messages, wherever they stand. */
static void put_system(const fm__rendering *r)
{
    int n = 0;
    for (int i = 0; i < r->chat->n_message; i++) {
        const fm_chat_message *m = &r->chat->message[i];
        if (fm__role_of(m) != FM__ROLE_SYSTEM) continue;
        if (n++) put(r, "\n\n");
        put(r, m->content);
    }
}

static int answer_is_open(const fm_chat *chat)
{
    return chat->message[chat->n_message - 1].prefix;
}

void fm__render_v2(fm__rendering *r)
{
    put(r, r->bos);
    for (int i = 0; i < r->chat->n_message; i++) {
        const fm_chat_message *m    = &r->chat->message[i];
        const fm__role         role = fm__role_of(m);
        if (m->prefix) fm__answer_begins(r);
        put(r, role == FM__ROLE_USER ? "User: " : role == FM__ROLE_ASSISTANT ? "Assistant: " : "");
        put(r, m->content);
        if (role != FM__ROLE_ASSISTANT) put(r, "\n\n");
        else if (!m->prefix) put(r, r->eos);
    }
    if (answer_is_open(r->chat)) return;
    fm__answer_begins(r);
    if (r->chat->add_generation) put(r, "Assistant:");
}

static void put_v3_calls(const fm__rendering *r, const fm_chat_message *m)
{
    put(r, CALLS_BEGIN);
    for (int i = 0; i < m->n_call; i++) {
        put(r, i ? "\n" CALL_BEGIN "function" CALL_SEP : CALL_BEGIN "function" CALL_SEP);
        put(r, m->call[i].name);
        put(r, "\n" FENCE "json\n");
        put(r, m->call[i].arguments);
        put(r, "\n" FENCE CALL_END);
    }
    put(r, CALLS_END);
}

/* The reasoning of earlier turns is left out of the prompt. */
static const char *after_last_thought(const char *content)
{
    for (const char *p; (p = strstr(content, "</think>"));) content = p + strlen("</think>");
    return content;
}

static const char *after_first_thought(const char *content)
{
    const char *p = strstr(content, "</think>");
    return p ? p + strlen("</think>") : content;
}

/* An answer to tool results goes on in the turn that called the tools. */
static void put_v3_answer(const fm__rendering *r, const fm_chat_message *m, int after_results,
                          const char *opening)
{
    const char *content = fm__text(m->content);
    if (m->prefix) {
        if (!after_results) put(r, opening);
        put(r, content);
        return;
    }
    if (!after_results) put(r, ASSISTANT);
    put(r, after_results || m->n_call ? content : after_last_thought(content));
    if (m->n_call) put_v3_calls(r, m);
    put(r, r->eos);
}

static void put_v3_tools(const fm__rendering *r)
{
    if (r->chat->n_tool == 0) return;
    put(r, v3_tools_text);
    for (int i = 0; i < r->chat->n_tool; i++) {
        put(r, "\n");
        put(r, r->chat->tool[i].json);
    }
}

void fm__render_v3(fm__rendering *r, const char *opening)
{
    int in_results = 0;
    put(r, r->bos);
    put_system(r);
    put_v3_tools(r);
    for (int i = 0; i < r->chat->n_message; i++) {
        const fm_chat_message *m    = &r->chat->message[i];
        const fm__role         role = fm__role_of(m);
        if (role == FM__ROLE_SYSTEM) continue;
        if (role == FM__ROLE_TOOL) {
            put(r, in_results ? "\n" OUTPUT_BEGIN : OUTPUTS_BEGIN OUTPUT_BEGIN);
            put(r, m->content);
            put(r, OUTPUT_END);
            in_results = 1;
            continue;
        }
        if (in_results) put(r, OUTPUTS_END);
        if (m->prefix) fm__answer_begins(r);
        if (role == FM__ROLE_USER) {
            put(r, USER);
            put(r, m->content);
        } else {
            put_v3_answer(r, m, in_results, opening);
        }
        in_results = 0;
    }
    if (answer_is_open(r->chat)) return;
    if (in_results) put(r, OUTPUTS_END);
    fm__answer_begins(r);
    if (r->chat->add_generation && !in_results) put(r, opening);
}

static void put_v31_tools(const fm__rendering *r)
{
    if (r->chat->n_tool == 0) return;
    put(r, v31_tools_text);
    for (int i = 0; i < r->chat->n_tool; i++) {
        const fm_chat_tool *tool = &r->chat->tool[i];
        fm_str_printf(r->out, "\n### %s\n", tool->name);
        if (tool->description) fm_str_printf(r->out, "Description: %s\n", tool->description);
        fm_str_printf(r->out, "\nParameters: %s\n", tool->parameters);
    }
    put(r, v31_format_text);
}

static void put_v31_answer(const fm__rendering *r, const fm_chat_message *m, fm__role before)
{
    const int   think   = r->chat->thinking && m->prefix;
    const char *content = fm__text(m->content);
    if (before == FM__ROLE_USER) put(r, think ? ASSISTANT "<think>" : ASSISTANT "</think>");
    if (m->prefix || m->n_call || before == FM__ROLE_TOOL) put(r, content);
    else put(r, after_first_thought(content));
    if (m->n_call) {
        put(r, CALLS_BEGIN);
        for (int i = 0; i < m->n_call; i++)
            fm_str_printf(r->out, CALL_BEGIN "%s" CALL_SEP "%s" CALL_END, m->call[i].name,
                          fm__text(m->call[i].arguments));
        put(r, CALLS_END);
    }
    if (!m->prefix) put(r, r->eos);
}

void fm__render_v31(fm__rendering *r)
{
    fm__role before = FM__ROLE_SYSTEM; /* of the last message that is not a system's */
    put(r, r->bos);
    put_system(r);
    put_v31_tools(r);
    for (int i = 0; i < r->chat->n_message; i++) {
        const fm_chat_message *m    = &r->chat->message[i];
        const fm__role         role = fm__role_of(m);
        if (role == FM__ROLE_SYSTEM) continue;
        if (m->prefix) fm__answer_begins(r);
        if (role == FM__ROLE_ASSISTANT) {
            put_v31_answer(r, m, before);
        } else {
            put(r, role == FM__ROLE_USER ? USER : OUTPUT_BEGIN);
            put(r, m->content);
            if (role == FM__ROLE_TOOL) put(r, OUTPUT_END);
        }
        before = role;
    }
    if (answer_is_open(r->chat)) return;
    fm__answer_begins(r);
    if (r->chat->add_generation && before == FM__ROLE_USER)
        put(r, r->chat->thinking ? ASSISTANT "<think>" : ASSISTANT "</think>");
}
