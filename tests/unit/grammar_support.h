/* SPDX-License-Identifier: Apache-2.0 */
/* Which texts a grammar accepts, over the tokenizer in tests/data. */
#ifndef FM_TESTS_UNIT_GRAMMAR_SUPPORT_H
#define FM_TESTS_UNIT_GRAMMAR_SUPPORT_H

#include "llm/grammar/grammar.h"

enum { VOCAB = 4128, EOS = 1 };

extern fm_tokenizer         *tokenizer;
extern fm_tokenizer_scratch *scratch;
extern fm_grammars          *grammars;

/* Set-up and tear-down of a cmocka group. */
int open_all(void **state);
int close_all(void **state);

fm_grammar *get(fm_grammar_kind kind, const char *text); /* fails the test with fm_why() */
int         is_allowed(const fm_matcher *m, int32_t id);

/* 2: complete, 1: the beginning of something, 0: neither. */
int reads(fm_grammar *g, const char *text);

typedef struct {
    const char *grammar;
    const char *good[12], *bad[14];
} example;
void check_examples(fm_grammar_kind kind, const example *e, size_t n);

/* Grammars that must be refused with a sentence that contains a word. */
typedef struct {
    fm_grammar_kind kind;
    const char     *text, *word;
} refusal;
void check_refusals(const refusal *all, size_t n);

#endif
