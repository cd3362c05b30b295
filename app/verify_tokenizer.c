/* SPDX-License-Identifier: Apache-2.0 */
#include "verify.h"

#include <stdio.h>
#include <string.h>

#include "json/read.h"
#include "llm/text/detokenize.h"

enum { SHOW_AT_MOST = 10 };

typedef struct {
    const fm_tokenizer   *tokenizer;
    fm_tokenizer_scratch *scratch;
    fm_ids                want, got;
    fm_str                text;
    int                   quiet;
    int                   n_wrong_ids, n_wrong_text, n_wrong;
} check;

static fm_status read_ids(fm_ids *out, const json_t *list, fm_json_at at)
{
    out->n = 0;
    if (!json_is_array(list))
        return fm_fail(FM_E_FORMAT, "%s: %sids: expected an array, found %s", at.file, at.scope,
                       fm_json_kind(list));
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *v = json_array_get(list, i);
        if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) > INT32_MAX)
            return fm_fail(FM_E_FORMAT, "%s: %sids[%zu] is no token id", at.file, at.scope, i);
        fm_ids_add(out, (int32_t)json_integer_value(v));
    }
    return FM_OK;
}

static void complain(check *k, const char *scope, const char *what)
{
    if (!k->quiet && k->n_wrong < SHOW_AT_MOST) printf("%s %s differs\n", scope, what);
}

/* The goldens keep special tokens in the decoded text. */
static void decode(check *k)
{
    fm_detokenizer d = fm_detokenizer_begin(k->tokenizer, 1);
    fm_str_clear(&k->text);
    for (size_t i = 0; i < k->want.n; i++) fm_detokenizer_push(&d, k->want.id[i], &k->text);
    fm_detokenizer_end(&d, &k->text);
}

static fm_status check_item(check *k, const json_t *item, fm_json_at at)
{
    const json_t *text = json_object_get(item, "text"), *decoded = json_object_get(item, "decoded");
    if (!json_is_string(text))
        return fm_fail(FM_E_FORMAT, "%s: %stext: expected a string, found %s", at.file, at.scope,
                       fm_json_kind(text));
    FM_TRY(read_ids(&k->want, json_object_get(item, "ids"), at));

    k->got.n = 0;
    FM_TRY(fm_encode(k->tokenizer, k->scratch, json_string_value(text), json_string_length(text), 0,
                     &k->got));
    const int ids_ok = k->got.n == k->want.n &&
                       (!k->got.n || !memcmp(k->got.id, k->want.id, k->got.n * sizeof *k->got.id));
    decode(k);
    const int text_ok =
        !json_is_string(decoded) ||
        (k->text.len == json_string_length(decoded) &&
         (!k->text.len || !memcmp(k->text.text, json_string_value(decoded), k->text.len)));
    if (!ids_ok) complain(k, at.scope, "encoding");
    if (!text_ok) complain(k, at.scope, "decoding");
    k->n_wrong_ids += !ids_ok;
    k->n_wrong_text += !text_ok;
    k->n_wrong += !ids_ok || !text_ok;
    return FM_OK;
}

static fm_status check_all(check *k, const json_t *list, const char *path)
{
    if (!json_is_array(list) || json_array_size(list) == 0)
        return fm_fail(FM_E_FORMAT, "%s: expected a list of texts, found %s", path,
                       fm_json_kind(list));
    for (size_t i = 0; i < json_array_size(list); i++) {
        char scope[32];
        snprintf(scope, sizeof scope, "[%zu].", i);
        FM_TRY(check_item(k, json_array_get(list, i), (fm_json_at){path, scope}));
    }
    return FM_OK;
}

static void print_verdict(const check *k, size_t n, const char *dir, int as_json)
{
    const char *verdict = k->n_wrong ? "fail" : "pass";
    if (!as_json) {
        printf("%zu texts: %d encoded differently, %d decoded differently\nverdict: %s\n", n,
               k->n_wrong_ids, k->n_wrong_text, verdict);
        return;
    }
    json_t *o = json_pack("{s:s, s:I, s:i, s:i, s:s}", "tokenizer", dir, "texts", (json_int_t)n,
                          "wrong_encodings", k->n_wrong_ids, "wrong_decodings", k->n_wrong_text,
                          "verdict", verdict);
    json_dumpf(o, stdout, 0);
    putchar('\n');
    json_decref(o);
}

fm_status fm_verify_tokenizer(const char *dir, const char *golden, int as_json, int *n_wrong)
{
    fm_status     rc        = FM_OK;
    fm_tokenizer *tokenizer = NULL;
    json_t       *list      = NULL;
    check         k         = {.quiet = as_json};

    FM_GO(fm_json_load(&list, golden));
    FM_GO(fm_tokenizer_open(&tokenizer, dir));
    k.tokenizer = tokenizer;
    FM_GO(fm_tokenizer_scratch_create(&k.scratch, tokenizer));
    FM_GO(check_all(&k, list, golden));
    print_verdict(&k, json_array_size(list), dir, as_json);
    *n_wrong = k.n_wrong;
out:
    fm_ids_fini(&k.want);
    fm_ids_fini(&k.got);
    fm_str_fini(&k.text);
    fm_tokenizer_scratch_destroy(k.scratch);
    fm_tokenizer_close(tokenizer);
    json_decref(list);
    return rc;
}
