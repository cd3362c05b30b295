/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/completions: text or tokens, one or many. */
#include <stdlib.h>
#include <string.h>

#include "llm/serve/read/ask.h"

enum { DEFAULT_TOKENS = 16 };

static fm_status read_logprobs(fm_sampling *s, const json_t *body)
{
    int64_t       top = -1;
    const json_t *v   = json_object_get(body, "logprobs");
    if (json_is_boolean(v)) top = json_is_true(v) ? 0 : -1;
    else FM_TRY(fm_json_opt_int(&top, body, "logprobs", 0, FM_MAX_TOP_LOGPROBS, fm__at));
    s->logprobs     = top >= 0;
    s->top_logprobs = top > 0 ? (int)top : 0;
    return FM_OK;
}

static fm_status need_token(const fm__facts *f, const char *token)
{
    if (f->tokenizer && fm_token_id(f->tokenizer, token) >= 0) return FM_OK;
    return fm_fail(FM_E_ARG, "request: suffix: this model has no form for filling in the middle");
}

/* <begin>prompt<hole>suffix<end> */
static fm_status encode_middle(fm__prompt *p, const fm__reader *r, const json_t *v,
                               const json_t *suffix)
{
    static const char begin[] = "<｜fim▁begin｜>", hole[] = "<｜fim▁hole｜>",
                      end[] = "<｜fim▁end｜>";
    fm_str text             = {0};
    FM_TRY(need_token(r->facts, begin));
    FM_TRY(need_token(r->facts, hole));
    FM_TRY(need_token(r->facts, end));
    fm_str_puts(&text, begin);
    fm_str_add(&text, json_string_value(v), json_string_length(v));
    fm_str_puts(&text, hole);
    fm_str_add(&text, json_string_value(suffix), json_string_length(suffix));
    fm_str_puts(&text, end);
    const fm_status rc = fm__encode_text(p, r, text.text, text.len, FM_ENCODE_BOS);
    fm_str_clear(&p->text);
    fm_str_add(&p->text, json_string_value(v), json_string_length(v));
    fm_str_fini(&text);
    return rc;
}

static fm_status read_one(fm__prompt *p, const json_t *v, const json_t *suffix, const fm__reader *r)
{
    if (json_is_array(v)) return fm__read_ids(p, v, "prompt");
    if (!json_is_string(v))
        return fm_fail(FM_E_FORMAT,
                       "request: prompt: expected a string or a list of token ids, found %s",
                       fm_json_kind(v));
    if (json_is_string(suffix) && json_string_length(suffix)) return encode_middle(p, r, v, suffix);
    return fm__encode_text(p, r, json_string_value(v), json_string_length(v), FM_ENCODE_BOS);
}

/* What echo repeats of a prompt of ids. */
static void decode_prompt(fm__prompt *p, const fm__reader *r, int keep_special)
{
    for (size_t i = 0; r->facts->tokenizer && i < p->token.n; i++) {
        size_t      n     = 0;
        const char *bytes = fm_token_bytes(r->facts->tokenizer, p->token.id[i], &n);
        if (keep_special || !fm_token_is_special(r->facts->tokenizer, p->token.id[i]))
            fm_str_add(&p->text, bytes, n);
    }
}

static fm_status read_prompts(fm__ask *a, const json_t *body, const fm__reader *r)
{
    const json_t *v = json_object_get(body, "prompt"), *suffix = json_object_get(body, "suffix");
    if (!v || json_is_null(v)) return fm_fail(FM_E_FORMAT, "request: prompt is missing");
    const int many =
        json_is_array(v) && json_array_size(v) && !json_is_integer(json_array_get(v, 0));
    const int n = many ? (int)json_array_size(v) : 1;
    FM_TRY(fm__add_prompts(a, n));
    for (int i = 0; i < n; i++)
        FM_TRY(read_one(&a->prompt[i], many ? json_array_get(v, (size_t)i) : v, suffix, r));
    for (int i = 0; a->echo && i < n; i++) {
        if (!a->prompt[i].text.len) decode_prompt(&a->prompt[i], r, a->params->keep_special);
        if (a->params->sampling.logprobs) a->prompt[i].logprob_from = 0;
    }
    return FM_OK;
}

fm_status fm__read_completion(fm__ask *a, const json_t *body, const fm__reader *r)
{
    a->params = calloc(1, sizeof *a->params);
    if (!a->params) return fm_fail(FM_E_OOM, "request");
    a->n_params     = 1;
    int64_t best_of = 0;
    FM_TRY(fm__read_shared(a, body, r->facts));
    FM_TRY(fm__read_n(a, body));
    FM_TRY(fm_json_opt_int(&best_of, body, "best_of", 1, 128, fm__at));
    if (best_of > a->n) return fm_fail(FM_E_NOSUP, "request: best_of above n is not supported");
    FM_TRY(fm_json_opt_bool(&a->echo, body, "echo", fm__at));
    FM_TRY(fm__read_params(a->params, body, &fm__openai_names, r->facts, DEFAULT_TOKENS));
    FM_TRY(fm__read_format(a->params, body, a->format_field));
    FM_TRY(read_logprobs(&a->params->sampling, body));
    FM_TRY(read_prompts(a, body, r));
    return fm__check_lengths(a, r->facts);
}
