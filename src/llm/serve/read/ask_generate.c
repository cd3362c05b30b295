/* SPDX-License-Identifier: Apache-2.0 */
/* /generate: SGLang's own form; text or ids, one or a batch. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "llm/serve/read/ask.h"

enum { DEFAULT_TOKENS = 128 };

/* A field may be the same for all prompts, or a list with an entry for each; NULL: not given. */
static const json_t *for_prompt(const json_t *v, int i)
{
    const json_t *own = json_is_array(v) ? json_array_get(v, (size_t)i) : v;
    return json_is_null(own) ? NULL : own;
}

static fm_status check_list(const json_t *body, const char *key, int n_prompt)
{
    const json_t *v = json_object_get(body, key);
    if (!json_is_array(v) || (int)json_array_size(v) == n_prompt) return FM_OK;
    return fm_fail(FM_E_FORMAT, "request: %s has %zu entries for %d prompts", key,
                   json_array_size(v), n_prompt);
}

/* An integer for prompt i; not given: *out untouched. */
static fm_status int_for_prompt(int64_t *out, const json_t *body, const char *key, int i,
                                int64_t least, int64_t most)
{
    const json_t *v = for_prompt(json_object_get(body, key), i);
    if (!v) return FM_OK;
    if (!json_is_integer(v) || json_integer_value(v) < least || json_integer_value(v) > most)
        return fm_fail(FM_E_FORMAT,
                       "request: %s: expected an integer from %lld to %lld, or one per prompt", key,
                       (long long)least, (long long)most);
    *out = json_integer_value(v);
    return FM_OK;
}

static fm_status read_logprobs(fm_sampling *s, const json_t *body, int i)
{
    const json_t *v   = for_prompt(json_object_get(body, "return_logprob"), i);
    int64_t       top = 0;
    if (v && !json_is_boolean(v))
        return fm_fail(FM_E_FORMAT,
                       "request: return_logprob: expected true or false, or one per prompt, "
                       "found %s",
                       fm_json_kind(v));
    FM_TRY(int_for_prompt(&top, body, "top_logprobs_num", i, 0, FM_MAX_TOP_LOGPROBS));
    s->logprobs     = json_is_true(v);
    s->top_logprobs = s->logprobs ? (int)top : 0;
    return FM_OK;
}

/* clang-format off */
static const char *const sampling_name[] = {
    "temperature", "top_p", "top_k", "min_p", "repetition_penalty", "frequency_penalty", "presence_penalty",
    "sampling_seed", "max_new_tokens", "min_new_tokens", "n", "ignore_eos", "no_stop_trim",
    "skip_special_tokens", "stop", "stop_token_ids", "logit_bias",
    "json_schema", "regex", "ebnf", "grammar", "guided_json", "guided_regex", "guided_choice",
    "guided_grammar", "whitespace_pattern", "guided_whitespace_pattern", "structured_outputs",
    "response_format", "stop_regex", "structural_tag",
    /* without effect here */
    "spaces_between_special_tokens", "custom_params", "stream_interval",
};
/* clang-format on */
enum { N_SAMPLING_NAME = sizeof sampling_name / sizeof sampling_name[0] };

/* SGLang refuses names that it does not know, too: with "max_tokens" in place of "max_new_tokens"
 * the answer would not be the one that was asked for. */
static fm_status check_names(const json_t *o)
{
    const char *key;
    json_t     *v;
    json_object_foreach((json_t *)o, key, v)
    {
        fm_nearest like = {.word = key};
        for (int i = 0; i < N_SAMPLING_NAME; i++) fm_nearest_offer(&like, sampling_name[i]);
        if (json_is_null(v) || (like.name && !like.distance)) continue;
        return fm_fail(
            FM_E_FORMAT, "request: sampling_params.%.40s: there is no such parameter%s%s%s", key,
            like.name ? "; is " : "", like.name ? like.name : "", like.name ? " meant?" : "");
    }
    return FM_OK;
}

static fm_status read_one_params(fm__ask *a, fm__params *p, const json_t *v, const fm__reader *r)
{
    json_t *empty = json_object();
    if (v && !json_is_object(v)) {
        json_decref(empty);
        return fm_fail(FM_E_FORMAT, "request: sampling_params: expected an object, found %s",
                       fm_json_kind(v));
    }
    const json_t *o  = v ? v : empty;
    fm_status     rc = check_names(o);
    if (rc == FM_OK) rc = fm__read_params(p, o, &fm__native_names, r->facts, DEFAULT_TOKENS);
    if (rc == FM_OK) rc = fm__read_format(p, o, NULL);
    if (rc == FM_OK) rc = fm__read_n(a, o);
    json_decref(empty);
    return rc;
}

static fm_status read_params(fm__ask *a, const json_t *body, const fm__reader *r, int n_prompt)
{
    static const char *const key[] = {"sampling_params", "return_logprob", "top_logprobs_num"};
    const json_t            *v     = json_object_get(body, key[0]);
    int                      n     = 1;
    for (int i = 0; i < 3; i++) {
        FM_TRY(check_list(body, key[i], n_prompt));
        if (json_is_array(json_object_get(body, key[i]))) n = n_prompt;
    }
    a->params = calloc((size_t)n, sizeof *a->params);
    if (!a->params) return fm_fail(FM_E_OOM, "request");
    a->n_params = n;
    int first   = 1;
    for (int i = 0; i < n; i++) {
        a->n = 1;
        FM_TRY(read_one_params(a, &a->params[i], for_prompt(v, i), r));
        FM_TRY(read_logprobs(&a->params[i].sampling, body, i));
        if (i && a->n != first)
            return fm_fail(FM_E_NOSUP, "request: sampling_params: n must be the same for all");
        first = a->n;
    }
    return FM_OK;
}

/* -1: none. */
static fm_status read_logprob_starts(fm__ask *a, const json_t *body)
{
    FM_TRY(check_list(body, "logprob_start_len", a->n_prompt));
    for (int i = 0; i < a->n_prompt; i++) {
        int64_t start = -1;
        FM_TRY(int_for_prompt(&start, body, "logprob_start_len", i, -1, INT32_MAX));
        if (fm__ask_params(a, i)->sampling.logprobs) a->prompt[i].logprob_from = (int32_t)start;
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

static fm_status read_rids(fm__ask *a, const json_t *body)
{
    const json_t *list = json_object_get(body, "rid");
    if (!json_is_array(list)) return FM_OK;
    FM_TRY(check_list(body, "rid", a->n_prompt));
    for (int i = 0; i < a->n_prompt; i++) {
        const json_t *v = for_prompt(list, i);
        if (!v) continue;
        const size_t n = json_string_length(v);
        if (!n || n >= FM__MAX_NAME || strlen(json_string_value(v)) != n)
            return fm_fail(FM_E_FORMAT, "request: rid[%d] is no string, empty or too long", i);
        if (!(a->prompt[i].rid = strdup(json_string_value(v))))
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
    FM_TRY(fm_json_opt_bool(&a->text_in_logprobs, body, "return_text_in_logprobs", fm__at));
    FM_TRY(read_params(a, body, r, n));
    FM_TRY(fm__add_prompts(a, n));
    for (int i = 0; i < n; i++)
        FM_TRY(read_prompt(&a->prompt[i], a->is_list ? for_prompt(text, i) : text,
                           a->is_list && ids ? json_array_get(ids, (size_t)i) : ids, r));
    FM_TRY(read_rids(a, body));
    FM_TRY(read_logprob_starts(a, body));
    return fm__check_lengths(a, r->facts);
}
