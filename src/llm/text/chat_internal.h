/* SPDX-License-Identifier: Apache-2.0 */
/* One rendering of a chat whose messages have been checked. */
#ifndef FM_LLM_TEXT_CHAT_INTERNAL_H
#define FM_LLM_TEXT_CHAT_INTERNAL_H

#include "llm/text/chat.h"

typedef enum {
    FM__ROLE_SYSTEM,
    FM__ROLE_USER,
    FM__ROLE_ASSISTANT,
    FM__ROLE_TOOL,
    FM__N_ROLE,
} fm__role;

typedef struct {
    const fm_chat *chat;
    const char    *bos, *eos;     /* texts */
    const char    *template_text; /* Jinja, or "" */
    fm_str        *out;
    size_t         answer; /* where in *out the answer to be generated begins, opening included */
} fm__rendering;

fm__role fm__role_of(const fm_chat_message *m); /* FM__N_ROLE: unknown */

/* They set r->answer. */
void fm__render_v2(fm__rendering *r);
void fm__render_v3(fm__rendering *r, const char *opening); /* of a generated answer */
void fm__render_v31(fm__rendering *r);
void fm__render_kimi(fm__rendering *r);

static inline void fm__answer_begins(fm__rendering *r)
{
    r->answer = r->out->len;
}

static inline const char *fm__text(const char *text)
{
    return text ? text : "";
}

#endif
