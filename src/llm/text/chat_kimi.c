/* SPDX-License-Identifier: Apache-2.0 */
/* Kimi-K2, K2-Thinking, Moonlight: every message is
 *
 *     <|im_ROLE|>name<|im_middle|>{c}<|im_end|>
 *
 * Calls are numbered through the whole conversation, functions.NAME:IDX; a
 * client's own ids are replaced by these in calls and in results alike. */
#include <string.h>

#include "llm/text/chat_internal.h"

#define MIDDLE "<|im_middle|>"
#define END    "<|im_end|>"

static void put(const fm__rendering *r, const char *text)
{
    fm_str_puts(r->out, fm__text(text));
}

static int is_kimi_id(const char *id)
{
    return id && strncmp(id, "functions.", strlen("functions.")) == 0;
}

/* Call number `index` of the conversation. */
static void put_call_id(const fm__rendering *r, const fm_chat_call *call, int index)
{
    if (is_kimi_id(call->id)) put(r, call->id);
    else fm_str_printf(r->out, "functions.%s:%d", call->name, index);
}

/* The id a result answers: that of the latest call before it with this id. */
static void put_result_id(const fm__rendering *r, int i_message)
{
    const char         *id    = r->chat->message[i_message].tool_call_id;
    const fm_chat_call *found = NULL;
    int                 index = 0, found_index = 0;
    for (int i = 0; i < i_message; i++) {
        const fm_chat_message *m = &r->chat->message[i];
        for (int c = 0; c < m->n_call; c++, index++)
            if (m->call[c].id && strcmp(m->call[c].id, id) == 0) {
                found       = &m->call[c];
                found_index = index;
            }
    }
    if (found) put_call_id(r, found, found_index);
    else put(r, id);
}

static void put_calls(const fm__rendering *r, const fm_chat_message *m, int index)
{
    put(r, "<|tool_calls_section_begin|>");
    for (int i = 0; i < m->n_call; i++) {
        put(r, "<|tool_call_begin|>");
        put_call_id(r, &m->call[i], index + i);
        put(r, "<|tool_call_argument_begin|>");
        put(r, m->call[i].arguments);
        put(r, "<|tool_call_end|>");
    }
    put(r, "<|tool_calls_section_end|>");
}

/* K2-Thinking shows the model its reasoning only within the exchange that is
 * still going on: after the last answer that called no tool. */
static int current_exchange(const fm_chat *chat)
{
    for (int i = chat->n_message - 1; i >= 0; i--) {
        const fm_chat_message *m = &chat->message[i];
        if (fm__role_of(m) == FM__ROLE_ASSISTANT && !m->n_call && !m->prefix) return i + 1;
    }
    return 0;
}

static void put_thought(const fm__rendering *r, int i_message)
{
    const fm_chat_message *m = &r->chat->message[i_message];
    if (!strstr(r->template_text, "<think>") || (m->prefix && !m->reasoning)) return;
    const int shown = i_message >= current_exchange(r->chat);
    fm_str_printf(r->out, "<think>%s</think>", shown ? fm__text(m->reasoning) : "");
}

static void put_message(const fm__rendering *r, int i_message, int n_call_before)
{
    static const char *const mark[] = {"<|im_system|>", "<|im_user|>", "<|im_assistant|>",
                                       "<|im_system|>"};
    static const char *const word[] = {"system", "user", "assistant", "tool"};
    const fm_chat_message   *m      = &r->chat->message[i_message];
    const fm__role           role   = fm__role_of(m);
    put(r, mark[role]);
    put(r, m->name ? m->name : word[role]);
    put(r, MIDDLE);
    if (role == FM__ROLE_ASSISTANT) put_thought(r, i_message);
    if (role == FM__ROLE_TOOL) {
        put(r, "## Return of ");
        put_result_id(r, i_message);
        put(r, "\n");
    }
    put(r, m->content);
    if (m->n_call) put_calls(r, m, n_call_before);
    if (!m->prefix) put(r, END);
}

static void put_tools(const fm__rendering *r)
{
    if (r->chat->n_tool == 0) return;
    put(r, "<|im_system|>tool_declare" MIDDLE "[");
    for (int i = 0; i < r->chat->n_tool; i++) {
        put(r, i ? ", " : "");
        put(r, r->chat->tool[i].json);
    }
    put(r, "]" END);
}

static void put_default_system(const fm__rendering *r)
{
    const char *first = "You are a helpful assistant"; /* Moonlight and the first K2 */
    const char *later = "You are Kimi, an AI assistant created by Moonshot AI.";
    put(r, "<|im_system|>system" MIDDLE);
    put(r, strstr(r->template_text, first) ? first : later);
    put(r, END);
}

void fm__render_kimi(fm__rendering *r)
{
    const fm_chat *chat   = r->chat;
    int            n_call = 0;
    put_tools(r);
    if (fm__role_of(&chat->message[0]) != FM__ROLE_SYSTEM) put_default_system(r);
    for (int i = 0; i < chat->n_message; i++) {
        if (chat->message[i].prefix) fm__answer_begins(r);
        put_message(r, i, n_call);
        n_call += chat->message[i].n_call;
    }
    if (chat->message[chat->n_message - 1].prefix) return;
    fm__answer_begins(r);
    if (chat->add_generation) put(r, "<|im_assistant|>assistant" MIDDLE);
}
