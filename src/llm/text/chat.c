/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/text/chat.h"

#include <string.h>

#include "llm/text/chat_internal.h"

#define ASSISTANT "<｜Assistant｜>"

static const char *const style_name[] = {
    [FM_CHAT_V2] = "v2",    [FM_CHAT_V3] = "v3",     [FM_CHAT_R1] = "r1",
    [FM_CHAT_V31] = "v3.1", [FM_CHAT_KIMI] = "kimi",
};

const char *fm_chat_style_name(fm_chat_style s)
{
    return style_name[s];
}

static fm_chat_style style_of_vocabulary(const fm_tokenizer *t)
{
    if (fm_token_id(t, "<|im_middle|>") >= 0) return FM_CHAT_KIMI;
    if (fm_token_id(t, ASSISTANT) < 0) return FM_CHAT_V2;
    if (fm_token_id(t, "<｜search▁begin｜>") >= 0) return FM_CHAT_V31;
    return fm_token_id(t, "<think>") >= 0 ? FM_CHAT_R1 : FM_CHAT_V3;
}

fm_chat_style fm_chat_style_of(const fm_tokenizer *t)
{
    const char *text = fm_tokenizer_chat_template(t);
    if (!text) return style_of_vocabulary(t);
    if (strstr(text, "<|im_middle|>")) return FM_CHAT_KIMI;
    if (strstr(text, ASSISTANT)) {
        if (strstr(text, "thinking") && strstr(text, "</think>")) return FM_CHAT_V31;
        return strstr(text, ASSISTANT "<think>") ? FM_CHAT_R1 : FM_CHAT_V3;
    }
    return strstr(text, "Assistant:") ? FM_CHAT_V2 : style_of_vocabulary(t);
}

fm__role fm__role_of(const fm_chat_message *m)
{
    static const char *const name[] = {"system", "user", "assistant", "tool"};
    if (!m->role) return FM__N_ROLE;
    if (strcmp(m->role, "developer") == 0) return FM__ROLE_SYSTEM;
    for (int i = 0; i < FM__N_ROLE; i++)
        if (strcmp(m->role, name[i]) == 0) return (fm__role)i;
    return FM__N_ROLE;
}

static fm_status check_calls(const fm_chat_message *m, int index)
{
    for (int i = 0; i < m->n_call; i++)
        if (!m->call[i].name)
            return fm_fail(FM_E_ARG, "messages[%d]: tool call %d has no function name", index, i);
    return FM_OK;
}

static fm_status check_message(const fm_chat *chat, int index, fm_chat_style style)
{
    const fm_chat_message *m    = &chat->message[index];
    const fm__role         role = fm__role_of(m);
    if (role == FM__N_ROLE)
        return fm_fail(FM_E_ARG, "messages[%d]: unknown role \"%.40s\"", index, fm__text(m->role));
    if (m->n_call && role != FM__ROLE_ASSISTANT)
        return fm_fail(FM_E_ARG, "messages[%d]: only the assistant calls tools", index);
    if (m->prefix && (role != FM__ROLE_ASSISTANT || index + 1 < chat->n_message || m->n_call))
        return fm_fail(FM_E_ARG, "messages[%d]: only a last answer without tool calls can go on",
                       index);
    if (style == FM_CHAT_V2 && (m->n_call || role == FM__ROLE_TOOL))
        return fm_fail(FM_E_ARG, "messages[%d]: this model's chat layout has no tools", index);
    if (style == FM_CHAT_KIMI && role == FM__ROLE_TOOL && !m->tool_call_id)
        return fm_fail(FM_E_ARG, "messages[%d]: a tool's result needs a tool_call_id", index);
    return check_calls(m, index);
}

static fm_status check(const fm_chat *chat, fm_chat_style style)
{
    if (chat->n_message <= 0) return fm_fail(FM_E_ARG, "messages: there is none");
    for (int i = 0; i < chat->n_message; i++) FM_TRY(check_message(chat, i, style));
    if (chat->n_tool && style == FM_CHAT_V2)
        return fm_fail(FM_E_ARG, "tools: this model's chat layout has none");
    for (int i = 0; i < chat->n_tool; i++)
        if (!chat->tool[i].name || !chat->tool[i].parameters || !chat->tool[i].json)
            return fm_fail(FM_E_ARG, "tools[%d]: name, parameters or JSON text missing", i);
    return FM_OK;
}

/* Copies the text of a token: the vocabulary's bytes have no end mark. */
static void token_text(fm_str *out, const fm_tokenizer *t, int32_t id)
{
    size_t      n;
    const char *bytes = fm_token_bytes(t, id, &n);
    fm_str_add(out, bytes, n);
}

static const char *last_of(const char *text, const char *tag)
{
    const char *last = NULL;
    for (const char *p = text; (p = strstr(p, tag)); p += strlen(tag)) last = p;
    return last;
}

/* The last tag in what is there of the answer decides. */
static fm_reasoning_mode reasoning_after(const char *begun)
{
    const char *open = last_of(begun, "<think>"), *close = last_of(begun, "</think>");
    if (!open && !close) return FM_REASONING_IF_TAGGED;
    return !close || (open && open > close) ? FM_REASONING_OPEN : FM_REASONING_OFF;
}

fm_status fm_chat_render_answer(const fm_chat *chat, fm_chat_style style, const fm_tokenizer *t,
                                fm_str *out, fm_reasoning_mode *answer)
{
    FM_TRY(check(chat, style));
    fm_str        bos = {0}, eos = {0};
    fm__rendering r = {chat, "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "", out, 0};
    if (t) {
        token_text(&bos, t, fm_tokenizer_bos(t));
        token_text(&eos, t, fm_tokenizer_eos(t));
        r.bos           = bos.text;
        r.eos           = eos.text;
        r.template_text = fm__text(fm_tokenizer_chat_template(t));
    }
    switch (style) {
    case FM_CHAT_V2: fm__render_v2(&r); break;
    case FM_CHAT_V3: fm__render_v3(&r, ASSISTANT); break;
    case FM_CHAT_R1: fm__render_v3(&r, ASSISTANT "<think>\n"); break;
    case FM_CHAT_V31: fm__render_v31(&r); break;
    case FM_CHAT_KIMI: fm__render_kimi(&r); break;
    }
    *answer = reasoning_after(out->text + r.answer);
    fm_str_fini(&bos);
    fm_str_fini(&eos);
    return FM_OK;
}

fm_status fm_chat_render(const fm_chat *chat, fm_chat_style style, const fm_tokenizer *t,
                         fm_str *out)
{
    fm_reasoning_mode answer;
    return fm_chat_render_answer(chat, style, t, out, &answer);
}
