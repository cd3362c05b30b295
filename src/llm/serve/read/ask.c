/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "llm/serve/read/ask.h"

#include <stdlib.h>
#include <string.h>

#include "llm/sample/sample.h"
#include "llm/serve/read/context_error.h"

const fm_json_at fm__at = {"request", ""};

fm__ask *fm__ask_create(void)
{
    fm__ask *a = calloc(1, sizeof *a);
    FM_BUG_UNLESS(a != NULL);
    a->n = 1;
    atomic_init(&a->n_holder, 1);
    return a;
}

void fm__ask_retain(fm__ask *a)
{
    atomic_fetch_add(&a->n_holder, 1);
}

static void free_params(fm__params *p)
{
    for (int i = 0; i < p->n_stop; i++) free(p->stop[i]);
    free(p->stop);
    free(p->bias);
    fm_str_fini(&p->format.text);
    fm_str_fini(&p->format.space);
    fm_grammar_release(p->grammar);
}

void fm__ask_release(fm__ask *a)
{
    if (!a || atomic_fetch_sub(&a->n_holder, 1) > 1) return;
    for (int i = 0; i < a->n_prompt; i++) {
        fm_ids_fini(&a->prompt[i].token);
        fm_str_fini(&a->prompt[i].text);
        free(a->prompt[i].rid);
    }
    for (int i = 0; i < a->n_params; i++) free_params(&a->params[i]);
    for (int i = 0; i < a->n_tool; i++) free(a->tool_name[i]);
    free(a->prompt);
    free(a->params);
    free(a->tool_name);
    free(a->rid);
    fm_str_fini(&a->forced);
    fm_str_fini(&a->repeated);
    fm_str_fini(&a->turns);
    fm_relay_tokens_fini(&a->begun);
    free(a);
}

fm_status fm__add_prompts(fm__ask *a, int n)
{
    if (n < 1) return fm_fail(FM_E_ARG, "request: there is no prompt");
    if ((int64_t)n * a->n > FM__MAX_ANSWERS)
        return fm_fail(FM_E_ARG, "request: %d prompts with n = %d are more than %d answers", n,
                       a->n, FM__MAX_ANSWERS);
    a->prompt = calloc((size_t)n, sizeof *a->prompt);
    if (!a->prompt) return fm_fail(FM_E_OOM, "request");
    a->n_prompt = n;
    for (int i = 0; i < n; i++) a->prompt[i].logprob_from = -1;
    return FM_OK;
}

fm_status fm__encode_text(fm__prompt *p, const fm__reader *r, const char *text, size_t len,
                          int flags)
{
    if (!r->facts->tokenizer)
        return fm_fail(FM_E_ARG,
                       "request: this model has no tokenizer: give token ids to /generate "
                       "or /v1/completions");
    fm_str_add(&p->text, text, len);
    return fm_encode(r->facts->tokenizer, r->scratch, text, len, flags, &p->token);
}

fm_status fm__read_ids(fm__prompt *p, const json_t *list, const char *field)
{
    size_t        i;
    const json_t *v;
    if (!json_is_array(list))
        return fm_fail(FM_E_FORMAT, "request: %s: expected a list of token ids, found %s", field,
                       fm_json_kind(list));
    json_array_foreach (list, i, v) {
        const json_int_t id = json_integer_value(v);
        if (!json_is_integer(v) || id < 0 || id > INT32_MAX)
            return fm_fail(FM_E_FORMAT, "request: %s[%zu] is no token id", field, i);
        fm_ids_add(&p->token, (int32_t)id);
    }
    return FM_OK;
}

static fm_status check_prompt(const fm__prompt *p, fm__params *q, const fm__facts *facts)
{
    const int64_t n = (int64_t)p->token.n;
    if (n < 1) return fm_fail(FM_E_ARG, "request: the prompt is empty");
    for (size_t i = 0; i < p->token.n; i++)
        if (p->token.id[i] >= facts->vocab)
            return fm_fail(FM_E_ARG,
                           "request: prompt token %zu is %d, outside the vocabulary of %d", i,
                           (int)p->token.id[i], facts->vocab);
    if (p->logprob_from > n)
        return fm_fail(FM_E_ARG, "request: logprob_start_len is %d, and the prompt has %lld tokens",
                       (int)p->logprob_from, (long long)n);
    const int64_t n_new = q->max_given ? q->sampling.max_new_tokens : -1;
    if (n >= facts->context || n + n_new > facts->context)
        return fm__fail_context(n, n_new, facts->context);
    return FM_OK;
}

fm_status fm__check_lengths(fm__ask *a, const fm__facts *facts)
{
    for (int i = 0; i < a->n_params; i++) {
        const fm_status rc = fm_sampling_check(&a->params[i].sampling, facts->vocab);
        if (rc != FM_OK) {
            char why[256];
            strncpy(why, fm_why(), sizeof why - 1);
            why[sizeof why - 1] = 0;
            return fm_fail(rc, "request: %s", why);
        }
    }
    for (int i = 0; i < a->n_prompt; i++)
        FM_TRY(check_prompt(&a->prompt[i], &a->params[a->n_params == 1 ? 0 : i], facts));
    return fm__make_grammars(a, facts);
}
