/* SPDX-License-Identifier: Apache-2.0 */
/* /generate: SGLang's own form; text or ids, one or a batch. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>

#include "llm/serve/ask.h"

enum { DEFAULT_TOKENS = 128 };

/* The first entry, if it is a list with one entry per prompt. */
static const json_t *for_prompt(const json_t *v, int i)
{
    return json_is_array(v) ? json_array_get(v, (size_t)i) : v;
}

static fm_status read_one_params(fm__ask *a, fm__params *p, const json_t *v, const json_t *body,
                                 const fm__reader *r)
{
    json_t *empty = json_object();
    if (v && !json_is_null(v) && !json_is_object(v)) {
        json_decref(empty);
        return fm_fail(FM_E_FORMAT, "request: sampling_params: expected an object, found %s",
                       fm_json_kind(v));
    }
    const json_t *o  = json_is_object(v) ? v : empty;
    fm_status     rc = fm__read_params(p, o, &fm__native_names, r->facts, DEFAULT_TOKENS);
    if (rc == FM_OK) rc = fm__read_n(a, o);
    json_decref(empty);
    int64_t       top  = 0;
    const json_t *tops = json_object_get(body, "top_logprobs_num");
    if (rc == FM_OK && !json_is_array(tops))
        rc = fm_json_opt_int(&top, body, "top_logprobs_num", 0, FM_MAX_TOP_LOGPROBS, fm__at);
    p->sampling.logprobs     = a->logprobs;
    p->sampling.top_logprobs = a->logprobs ? (int)top : 0;
    a->top_logprobs          = p->sampling.top_logprobs;
    return rc;
}

static fm_status read_params(fm__ask *a, const json_t *body, const fm__reader *r, int n_prompt)
{
    const json_t *v = json_object_get(body, "sampling_params");
    const int     n = json_is_array(v) ? n_prompt : 1;
    if (json_is_array(v) && (int)json_array_size(v) != n_prompt)
        return fm_fail(FM_E_FORMAT, "request: sampling_params has %zu entries for %d prompts",
                       json_array_size(v), n_prompt);
    a->params = calloc((size_t)n, sizeof *a->params);
    if (!a->params) return fm_fail(FM_E_OOM, "request");
    a->n_params = n;
    int first   = 1;
    for (int i = 0; i < n; i++) {
        a->n = 1;
        FM_TRY(read_one_params(a, &a->params[i], for_prompt(v, i), body, r));
        if (i && a->n != first)
            return fm_fail(FM_E_NOSUP, "request: sampling_params: n must be the same for all");
        first = a->n;
    }
    return FM_OK;
}

static fm_status read_logprobs(fm__ask *a, const json_t *body)
{
    const json_t *v = json_object_get(body, "return_logprob");
    if (json_is_array(v)) a->logprobs = json_is_true(json_array_get(v, 0));
    else FM_TRY(fm_json_opt_bool(&a->logprobs, body, "return_logprob", fm__at));
    return fm_json_opt_bool(&a->text_in_logprobs, body, "return_text_in_logprobs", fm__at);
}

/* One start for all prompts, or one for each; -1: none. */
static fm_status read_logprob_starts(fm__ask *a, const json_t *body)
{
    const json_t *v     = json_object_get(body, "logprob_start_len");
    int64_t       start = -1;
    if (!a->logprobs) return FM_OK;
    if (!json_is_array(v))
        FM_TRY(fm_json_opt_int(&start, body, "logprob_start_len", -1, INT32_MAX, fm__at));
    for (int i = 0; i < a->n_prompt; i++) {
        const json_t *own = json_is_array(v) ? json_array_get(v, (size_t)i) : NULL;
        if (own && (!json_is_integer(own) || json_integer_value(own) < -1 ||
                    json_integer_value(own) > INT32_MAX))
            return fm_fail(FM_E_FORMAT, "request: logprob_start_len[%d] is no position", i);
        a->prompt[i].logprob_from = (int32_t)(own ? json_integer_value(own) : start);
    }
    return FM_OK;
}

static fm_status read_prompt(fm__prompt *p, const json_t *text, const json_t *ids,
                             const fm__reader *r)
{
    if (ids) return fm__read_ids(p, ids, "input_ids");
    if (!json_is_string(text))
        return fm_fail(FM_E_FORMAT, "request: text: expected a string, found %s",
                       fm_json_kind(text));
    return fm__encode_text(p, r, json_string_value(text), json_string_length(text), FM_ENCODE_BOS);
}

static fm_status read_rids(fm__ask *a, const json_t *v)
{
    if (!json_is_array(v)) return FM_OK;
    for (int i = 0; i < a->n_prompt; i++) {
        const char *rid = json_string_value(json_array_get(v, (size_t)i));
        if (rid && strlen(rid) < FM__MAX_NAME && !(a->prompt[i].rid = strdup(rid)))
            return fm_fail(FM_E_OOM, "request");
    }
    return FM_OK;
}

fm_status fm__read_generate(fm__ask *a, const json_t *body, const fm__reader *r)
{
    const json_t *text = json_object_get(body, "text"), *ids = json_object_get(body, "input_ids");
    if (json_is_null(ids)) ids = NULL;
    if (json_is_null(text)) text = NULL;
    if (!text == !ids)
        return fm_fail(FM_E_FORMAT, "request: exactly one of text and input_ids is needed");
    a->is_list  = ids ? json_is_array(json_array_get(ids, 0)) : json_is_array(text);
    const int n = a->is_list ? (int)json_array_size(ids ? ids : text) : 1;

    FM_TRY(fm__read_shared(a, body, r->facts));
    FM_TRY(read_logprobs(a, body));
    FM_TRY(read_params(a, body, r, n));
    FM_TRY(fm__add_prompts(a, n));
    for (int i = 0; i < n; i++)
        FM_TRY(read_prompt(&a->prompt[i], a->is_list ? for_prompt(text, i) : text,
                           a->is_list && ids ? json_array_get(ids, (size_t)i) : ids, r));
    FM_TRY(read_rids(a, json_object_get(body, "rid")));
    FM_TRY(read_logprob_starts(a, body));
    return fm__check_lengths(a, r->facts);
}
