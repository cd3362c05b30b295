/* SPDX-License-Identifier: Apache-2.0 */
/* Grammars in EBNF: which texts they have, what is refused and where. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/str.h"
#include "grammar_support.h"

/* llama.cpp's way: one rule per line, comments, white space as a rule. */
#define ARITHMETIC                                                                                 \
    "root  ::= (expr \"=\" ws term \"\\n\")+  # lines\n"                                           \
    "expr  ::= term ([-+*/] ws term)*\n"                                                           \
    "term  ::= ident | num | \"(\" ws expr \")\" ws\n"                                             \
    "ident ::= [a-z] [a-z0-9_]* ws\n"                                                              \
    "num   ::= [0-9]+ ws\n"                                                                        \
    "ws    ::= [ \\t\\n]*\n"

#define JSON                                                                                       \
    "root ::= value\nvalue ::= object | array | string | number | \"true\" | \"null\"\n"           \
    "object ::= \"{\" (pair (\",\" pair)*)? \"}\"\npair ::= string \":\" value\n"                  \
    "array ::= \"[\" (value (\",\" value)*)? \"]\"\n"                                              \
    "string ::= \"\\\"\" ([^\"\\\\\\x00-\\x1F] | \"\\\\\" [\"\\\\/bfnrt])* \"\\\"\"\n"             \
    "number ::= \"-\"? (\"0\" | [1-9] [0-9]{0,15})\n"

static void texts(void **state)
{
    (void)state;
    static const example all[] = {
        {"root ::= \"a\"", {"a"}, {"", "b", "aa"}},
        {"root ::= \"yes\" | \"no\" | x\nx ::= \"may\" \"be\"?",
         {"yes", "no", "may", "maybe"},
         {"yesno", "mayb", ""}},
        {ARITHMETIC,
         {"a=1\n", "x1 + (2*y) = 5\n", "a=b\nc=d\n"},
         {"a=1", "=1\n", "1a=1\n", "(a=1\n", "a=1+2\n"}},
        {JSON,
         {"{\"a\":[1,{\"b\":null}],\"c\":\"x\\n\"}", "[]", "-12", "[[[[[]]]]]", "\"\xc3\xa9\""},
         {"{a:1}", "01", "[1,]", "[[]", "\"\n\"", "{\"a\":}"}},
        {"root ::= [a-c]{2} \"-\" [^a-c]{1,2} \".\" .{2,}",
         {"ab-x.12", "cc-zz.\n\xf0\x9f\x98\x80"
                     "3"},
         {"a-x.12", "ab-a.12", "ab-xyz.12", "ab-x.1"}},
        {"root ::= (\"a\" \"b\"){2,3} \"c\"{,2}",
         {"abab", "abababc", "ababcc"},
         {"ab", "abababab", "ababccc"}},
        {"root ::= \"\\x41\\u00e9\\U0001F600\\t\\\\\\\"\"",
         {"A\xc3\xa9\xf0\x9f\x98\x80\t\\\""},
         {"A"}},
        {"root ::= [\\]\\-\\\\^]+ | [^\\n]", {"]-\\^", "x"}, {"\n", "]x"}},
        /* rules that begin with themselves */
        {"root ::= expr\nexpr ::= expr \"+\" term | term\nterm ::= term \"*\" num | num\nnum ::= "
         "[0-9]+",
         {"1", "1+2", "1*2+3*4*5"},
         {"+1", "1+", "1*+2", ""}},
        {"root ::= \"x\" | root \"y\" | root \"z\"", {"x", "xyzzy"}, {"y", "xx", ""}},
        {"root ::= \"(\" root \")\" | \"\"", {"", "()", "((()))"}, {"(", "(()", ")("}},
        {"root ::= a b a ::= \"1\" b ::= \"2\" # all on one line", {"12"}, {"1", "2"}},
        {"root ::=\n  \"a\"\n  | \"b\"\n\n# end\nunused ::= \"c\"", {"a", "b"}, {"c"}},
        {"root ::= x{3} x ::= \"a\" | \"b\"", {"aba", "bbb"}, {"ab", "abab"}},
        {"root ::= (\"a\" | (\"b\" | \"c\"){2})*",
         {"", "abc", "bca",
          "cba"
          "bb"},
         {"b", "ab"}},
    };
    check_examples(FM_GRAMMAR_EBNF, all, sizeof all / sizeof *all);
}

static void faults_are_told_by_line(void **state)
{
    (void)state;
    static const refusal all[] = {
        {FM_GRAMMAR_EBNF, "", "root"},
        {FM_GRAMMAR_EBNF, "main ::= \"a\"", "\"root\""},
        {FM_GRAMMAR_EBNF, "root ::= a\na ::= b \"x\"\n", "line 2: there is no rule \"b\""},
        {FM_GRAMMAR_EBNF, "root ::= \"a\n\"", "line 1: a text is not closed"},
        {FM_GRAMMAR_EBNF, "root ::= \"a\"\nx ::= (\"b\"\n", "line 3: a group is not closed"},
        {FM_GRAMMAR_EBNF, "root ::= \"a\")\n", "line 1: a ) without"},
        {FM_GRAMMAR_EBNF, "root ::= \"a\"\nroot ::= \"b\"", "line 2: a rule is defined a second"},
        {FM_GRAMMAR_EBNF, "root ::= [a", "line 1: a set is not closed"},
        {FM_GRAMMAR_EBNF, "root ::= [z-a]", "wrong order"},
        {FM_GRAMMAR_EBNF, "root ::= \"a\"{3,1}", "repetition"},
        {FM_GRAMMAR_EBNF, "root ::= \"a\"{}", "repetition"},
        {FM_GRAMMAR_EBNF, "root ::= \"a\"{99999}", "too long"},
        {FM_GRAMMAR_EBNF, "root ::= \"\\q\"", "escape"},
        {FM_GRAMMAR_EBNF, "start: \"a\"", "line 1: expected a rule"},
        {FM_GRAMMAR_EBNF, "root ::= 'a'", "line 1: expected a text"},
        {FM_GRAMMAR_EBNF, "root ::= \"a\" (= \"b\")", "look-ahead"},
        {FM_GRAMMAR_EBNF, "root ::= * \"a\"", "line 1: expected a text"},
        {FM_GRAMMAR_EBNF, "root ::= \"x\"\n | a\na ::= b \"1\"\nb ::= a \"2\" | \"3\"",
         "refers to itself"},
        {FM_GRAMMAR_EBNF, "root ::= (root)? \"x\"", "line 1: a rule refers to itself"},
        {FM_GRAMMAR_EBNF, "root ::= \"a\" root", "no text"},
        {FM_GRAMMAR_EBNF, "root ::= \"\xff\"", "UTF-8"},
        {FM_GRAMMAR_EBNF, "root ::= ((((\"a\"?){9999}){9999}){9999})", "too many ways"},
    };
    check_refusals(all, sizeof all / sizeof *all);
}

/* Texts of a megabyte and grammars made to explode: refused or compiled, and soon. */
static void hostile_grammars_end_soon(void **state)
{
    (void)state;
    fm_str all[6] = {{0}};
    for (int i = 0; i < 40000; i++) fm_str_printf(&all[0], "r%d ::= r%d \"x\"\n", i, i + 1);
    for (int i = 0; i < 60000; i++) fm_str_puts(&all[1], i ? " | \"ab\"" : "root ::= \"ab\"");
    for (int i = 0; i < 100000; i++) fm_str_puts(&all[2], i ? "(" : "root ::= ");
    fm_str_puts(&all[3], "root ::= (\"a\" root \"b\" root | \"a\" root \"c\" root | \"a\")");
    for (int i = 0; i < 20000; i++) fm_str_puts(&all[4], i ? "\"a\"{9999} " : "root ::= ");
    for (int i = 0; i < 3000; i++) fm_str_printf(&all[5], "x%d ::= (x%d | \"a\")\n", i, i + 1);
    fm_str_puts(&all[5], "x3000 ::= \"b\"\nroot ::= x0");
    const clock_t began = clock();
    for (int i = 0; i < 6; i++) {
        fm_grammar *g = NULL;
        if (fm_grammars_get(&g, grammars, FM_GRAMMAR_EBNF, all[i].text, all[i].len, 0) == FM_OK)
            fm_grammar_release(g);
        fm_str_fini(&all[i]);
    }
    assert_true(clock() - began < 3 * CLOCKS_PER_SEC);
}

/* Every token, tried on its own after the same beginning. */
static void allows_exactly_what_may_come(void **state)
{
    (void)state;
    static const char *const begin[] = {"", "x1 + (", "x1 + (2*y) =", "a=1\n"};
    fm_grammar              *g       = get(FM_GRAMMAR_EBNF, ARITHMETIC);
    for (size_t b = 0; b < sizeof begin / sizeof *begin; b++) {
        fm_ids ids = {0};
        int    n   = 0;
        assert_int_equal(
            fm_encode(tokenizer, scratch, begin[b], strlen(begin[b]), FM_ENCODE_PLAIN, &ids),
            FM_OK);
        for (int32_t id = 0; id < VOCAB; id++) {
            fm_matcher *m = NULL;
            assert_int_equal(fm_matcher_create(&m, g, NULL), FM_OK);
            for (size_t i = 0; i < ids.n; i++)
                assert_int_equal(fm_matcher_take(m, ids.id[i]), FM_OK);
            const int may = is_allowed(m, id);
            assert_int_equal(fm_matcher_take(m, id) == FM_OK, may);
            n += may;
            fm_matcher_destroy(m);
        }
        assert_true(n > 0);
        fm_ids_fini(&ids);
    }
    fm_grammar_release(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts),
        cmocka_unit_test(faults_are_told_by_line),
        cmocka_unit_test(hostile_grammars_end_soon),
        cmocka_unit_test(allows_exactly_what_may_come),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
