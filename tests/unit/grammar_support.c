/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar_support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

fm_tokenizer         *tokenizer;
fm_tokenizer_scratch *scratch;
fm_grammars          *grammars;

int open_all(void **state)
{
    (void)state;
    const int32_t eos[] = {EOS};
    assert_int_equal(fm_tokenizer_open(&tokenizer, FM_TEST_DATA "/tokenizer"), FM_OK);
    assert_int_equal(fm_tokenizer_scratch_create(&scratch, tokenizer), FM_OK);
    assert_int_equal(fm_grammars_create(&grammars, tokenizer, VOCAB, eos, 1), FM_OK);
    return 0;
}

int close_all(void **state)
{
    (void)state;
    fm_grammars_destroy(grammars);
    fm_tokenizer_scratch_destroy(scratch);
    fm_tokenizer_close(tokenizer);
    return 0;
}

fm_grammar *get(fm_grammar_kind kind, const char *text)
{
    fm_grammar *g = NULL;
    if (fm_grammars_get(&g, grammars, kind, text, strlen(text), 0) != FM_OK)
        fail_msg("%s: %s", text, fm_why());
    return g;
}

int is_allowed(const fm_matcher *m, int32_t id)
{
    return fm_matcher_allowed(m)[id / 32] >> id % 32 & 1;
}

int reads(fm_grammar *g, const char *text)
{
    fm_matcher *m   = NULL;
    fm_ids      ids = {0};
    int         ok  = 1;
    assert_int_equal(fm_matcher_create(&m, g, NULL), FM_OK);
    assert_int_equal(fm_encode(tokenizer, scratch, text, strlen(text), FM_ENCODE_PLAIN, &ids),
                     FM_OK);
    for (size_t i = 0; ok && i < ids.n; i++) {
        ok = is_allowed(m, ids.id[i]);
        assert_int_equal(fm_matcher_take(m, ids.id[i]) == FM_OK, ok);
    }
    const int complete = ok && is_allowed(m, EOS);
    fm_ids_fini(&ids);
    fm_matcher_destroy(m);
    return complete ? 2 : ok;
}

void check_examples(fm_grammar_kind kind, const example *e, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        fm_grammar *g = get(kind, e[i].grammar);
        for (size_t k = 0; k < sizeof e->good / sizeof *e->good && e[i].good[k]; k++)
            if (reads(g, e[i].good[k]) != 2) fail_msg("%s refuses %s", e[i].grammar, e[i].good[k]);
        for (size_t k = 0; k < sizeof e->bad / sizeof *e->bad && e[i].bad[k]; k++)
            if (reads(g, e[i].bad[k]) == 2) fail_msg("%s takes %s", e[i].grammar, e[i].bad[k]);
        fm_grammar_release(g);
    }
}

void check_refusals(const refusal *all, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        fm_grammar *g = NULL;
        if (fm_grammars_get(&g, grammars, all[i].kind, all[i].text, strlen(all[i].text), 0) ==
            FM_OK)
            fail_msg("%s was understood", all[i].text);
        if (!strstr(fm_why(), all[i].word)) fail_msg("%s: %s", all[i].text, fm_why());
    }
}
