/* SPDX-License-Identifier: Apache-2.0 */
/* Chat messages -> the prompt text a model was trained on: the layouts of V2,
 * V3, R1, V3.1 and Kimi, chosen by looking at the tokenizer's own template. */
#ifndef FM_LLM_TEXT_CHAT_H
#define FM_LLM_TEXT_CHAT_H

#include "base/status.h"
#include "base/str.h"
#include "llm/text/reasoning.h"
#include "llm/text/tokenizer.h"

typedef enum {
    FM_CHAT_V2,  /* "User: ", plain words */
    FM_CHAT_V3,  /* V3, V3-0324, R1-0528 */
    FM_CHAT_R1,  /* V3's, the answer begins inside <think> */
    FM_CHAT_V31, /* thinking on or off per request */
    FM_CHAT_KIMI,
} fm_chat_style;

typedef struct {
    const char *name;      /* function */
    const char *arguments; /* JSON text, inserted verbatim */
    const char *id;        /* may be NULL */
} fm_chat_call;

typedef struct {
    const char         *role;         /* system, developer (the same), user, assistant, tool */
    const char         *content;      /* NULL = "" */
    const char         *reasoning;    /* assistant: reasoning_content, or NULL; only Kimi has it */
    const fm_chat_call *call;         /* [n_call] assistant's tool calls */
    int                 n_call;
    const char         *tool_call_id; /* tool; Kimi's results need it */
    const char         *name;         /* Kimi: stands in the role's place; may be NULL */
    int                 prefix;       /* last message, assistant: go on from here */
} fm_chat_message;

typedef struct {
    const char *name, *description; /* description may be NULL */
    const char *parameters;         /* JSON schema as text */
    const char *json;               /* the whole tool as JSON text */
} fm_chat_tool;

typedef struct {
    const fm_chat_message *message; /* [n_message] */
    int                    n_message;
    const fm_chat_tool    *tool;    /* [n_tool] */
    int                    n_tool;
    int                    thinking;       /* V3.1 */
    int                    add_generation; /* end with the assistant's opening */
} fm_chat;

/* By the template's own marks; the vocabulary where there is no template. */
fm_chat_style fm_chat_style_of(const fm_tokenizer *t);
const char   *fm_chat_style_name(fm_chat_style s);

/* Appends the rendered prompt, BOS text included: encode it without
 * FM_ENCODE_BOS.  FM_E_ARG names the message that makes no sense; *out is then
 * as it was.  `t` gives the texts of BOS and EOS and the template's variant;
 * NULL: the usual ones. */
fm_status fm_chat_render(const fm_chat *chat, fm_chat_style style, const fm_tokenizer *t,
                         fm_str *out);

/* The same, and how the answer goes on from there: FM_REASONING_OPEN where its
 * opening or its prefix leaves a <think> open, FM_REASONING_OFF where they
 * close one, FM_REASONING_IF_TAGGED where they have no tag. */
fm_status fm_chat_render_answer(const fm_chat *chat, fm_chat_style style, const fm_tokenizer *t,
                                fm_str *out, fm_reasoning_mode *answer);

#endif
