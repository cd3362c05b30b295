/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/chat/completions, and /v1/messages by way of it. */
#include <stdlib.h>

#include "llm/serve/read/ask.h"
#include "llm/serve/read/unsupported.h"

static fm_status read_logprobs(fm_sampling *s, const json_t *body)
{
    int64_t top = 0;
    FM_TRY(fm_json_opt_bool(&s->logprobs, body, "logprobs", fm__at));
    FM_TRY(fm_json_opt_int(&top, body, "top_logprobs", 0, FM_MAX_TOP_LOGPROBS, fm__at));
    if (top && !s->logprobs)
        return fm_fail(FM_E_ARG, "request: top_logprobs needs logprobs to be true");
    s->top_logprobs = (int)top;
    return FM_OK;
}

static fm_status read_prompt(fm__ask *a, const json_t *body, const fm__reader *r)
{
    const json_t *ids = json_object_get(body, "input_ids");
    if (ids && !json_is_null(ids)) return fm__read_ids(&a->prompt[0], ids, "input_ids");
    fm_str    text = {0};
    fm_status rc   = fm__render_chat(a, body, r, &text);
    if (rc == FM_OK) rc = fm__encode_text(&a->prompt[0], r, text.text, text.len, 0);
    fm_str_fini(&text);
    return rc;
}

fm_status fm__read_chat(fm__ask *a, const json_t *body, const fm__reader *r)
{
    a->params = calloc(1, sizeof *a->params);
    if (!a->params) return fm_fail(FM_E_OOM, "request");
    a->n_params = 1;
    FM_TRY(fm__read_shared(a, body, r->facts));
    FM_TRY(fm__read_n(a, body));
    FM_TRY(fm__read_params(a->params, body, &fm__openai_names, r->facts, 0));
    FM_TRY(fm__read_format(a->params, body, a->format_field));
    FM_TRY(read_logprobs(&a->params->sampling, body));
    FM_TRY(fm__add_prompts(a, 1));
    FM_TRY(read_prompt(a, body, r));
    if (a->tools) a->params->keep_special = 1; /* the marks of a call are special tokens */
    return fm__check_lengths(a, r->facts);
}

fm_status fm__read_messages(fm__ask *a, const json_t *body, const fm__reader *r)
{
    json_t *chat = NULL;
    FM_TRY(fm__refuse_unsupported(body));
    FM_TRY(fm__chat_of_messages(&chat, body));
    const fm_status rc = fm__read_chat(a, chat, r);
    json_decref(chat);
    return rc;
}
