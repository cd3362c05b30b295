/* SPDX-License-Identifier: Apache-2.0 */
/* White space in JSON: one separator or consistent indentation, none, or the caller's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "base/str.h"
#include "grammar_support.h"

#define PERSON                                                                                     \
    "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},\"at\":{\"type\":"        \
    "\"array\",\"items\":{\"type\":\"integer\"}},\"in\":{\"type\":\"object\",\"properties\":{"     \
    "\"a\":{\"type\":\"null\"},\"b\":{\"type\":\"null\"}}}}}"

static void one_separator_or_indentation(void **state)
{
    (void)state;
    static const example all[] = {
        {PERSON,
         {"{\"name\":\"x\",\"at\":[1,2]}", "{\"name\": \"x\", \"at\": [1, 2]}",
          "{\n  \"name\": \"x\",\n  \"at\": [1, 2]\n}",
          "{\n    \"name\": \"x\",\n    \"at\": [\n        1,\n        2\n    ]\n}",
          "{\n\t\"at\": [],\n\t\"in\": {\n\t\t\"a\": null\n\t}\n}",
          "{\n  \"at\":[],\n  \"in\":{\"a\":null,\"b\":null}\n}", "{}"},
         {"{ \"name\":\"x\"}", "{\"name\" :\"x\"}", "{\"name\":  \"x\"}", "{\"name\":\"x\" }",
          "{\n \"name\":\"x\"\n}", "{\n  \"name\": \"x\"}", "{\n  \"name\": \"x\", \"at\": []\n}",
          "{\n  \"at\": [\n      1\n  ]\n}", "{\n  \"at\": [\n    1\n    ]\n}", "{\n}",
          "{\"in\": {\n  \"a\": null\n}}", "{\n   \"name\": \"x\"\n}",
          "{\r\n  \"name\": \"x\"\n}"}},
        {"{}",
         {"[\n  {\n    \"a\": [1, {\"b\": 2}]\n  },\n  3\n]", "[[], {}]", "[1,2, 3]"},
         {"[\n\n  1\n]", "[1\n]", "[ ]", "[1 ,2]", "\n1", " 1", "1\n"}},
    };
    check_examples(FM_GRAMMAR_JSON_SCHEMA, all, sizeof all / sizeof *all);
}

static void compact_has_none(void **state)
{
    (void)state;
    fm_grammar *g = NULL;
    assert_int_equal(fm_grammars_get(&g, grammars, FM_GRAMMAR_JSON_SCHEMA, PERSON, strlen(PERSON),
                                     FM_GRAMMAR_COMPACT),
                     FM_OK);
    assert_int_equal(reads(g, "{\"name\":\"a b\",\"at\":[1,2],\"in\":{}}"), 2);
    assert_int_equal(reads(g, "{\"name\": \"x\"}"), 0);
    assert_int_equal(reads(g, "{\"at\":[1, 2]}"), 0);
    assert_int_equal(reads(g, "{\n"), 0);
    fm_grammar_release(g);
}

static void a_pattern_of_the_caller_s(void **state)
{
    (void)state;
    fm_grammar *g = NULL, *same = NULL;
    assert_int_equal(fm_grammars_get_spaced(&g, grammars, PERSON, strlen(PERSON), "[ \\t]{0,2}", 0),
                     FM_OK);
    assert_int_equal(reads(g, "{  \"name\" : \t\"x\" ,\"at\":[ 1 ,  2 ]\t}"), 2);
    assert_int_equal(reads(g, "{ }"), 2);
    assert_int_equal(reads(g, "{   \"name\""), 0);
    assert_int_equal(reads(g, "{\n\"name\""), 0);
    assert_int_equal(
        fm_grammars_get_spaced(&same, grammars, PERSON, strlen(PERSON), "[ \\t]{0,2}", 0), FM_OK);
    assert_ptr_equal(g, same);
    assert_int_equal(fm_grammars_get_spaced(&same, grammars, PERSON, strlen(PERSON), "[", 0),
                     FM_E_FORMAT);
    fm_grammar_release(g);
    fm_grammar_release(g);
}

static void a_line_end_may_come_first(void **state)
{
    (void)state;
    fm_grammar *g = NULL;
    assert_int_equal(fm_grammars_get(&g, grammars, FM_GRAMMAR_JSON_SCHEMA, "{\"type\":\"null\"}",
                                     15, FM_GRAMMAR_SPACE_FIRST),
                     FM_OK);
    assert_int_equal(reads(g, "null"), 2);
    assert_int_equal(reads(g, "\n\nnull"), 2);
    assert_int_equal(reads(g, "\n\n\nnull"), 0);
    fm_grammar_release(g);
}

/* Deeper than sixteen containers everything is on one line. */
static void indentation_ends_somewhere(void **state)
{
    (void)state;
    fm_grammar *g = get(FM_GRAMMAR_JSON_SCHEMA, "{}");
    for (int depth = 15; depth <= 18; depth++) {
        fm_str text = {0};
        for (int i = 1; i <= depth; i++) fm_str_printf(&text, "[\n%*s", 2 * i, "");
        fm_str_puts(&text, "1");
        for (int i = depth - 1; i >= 0; i--) fm_str_printf(&text, "\n%*s]", 2 * i, "");
        assert_int_equal(reads(g, text.text) == 2, depth <= 16);
        fm_str_fini(&text);
    }
    fm_grammar_release(g);
}

static int is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t';
}

/* Where any token that may come is as likely as another, hardly any white space is written. */
static void drawn_texts_are_mostly_values(void **state)
{
    (void)state;
    size_t      n_space = 0, n_all = 0;
    fm_grammar *g = get(FM_GRAMMAR_JSON_SCHEMA,
                        "{\"type\":\"array\",\"items\":{\"type\":\"array\",\"items\":{\"enum\":[1,"
                        "22,true]},\"minItems\":2,\"maxItems\":5},\"minItems\":30}");
    for (uint64_t walk = 0; walk < 40; walk++) {
        fm_matcher *m  = NULL;
        uint64_t    at = 0;
        assert_int_equal(fm_matcher_create(&m, g, NULL), FM_OK);
        for (int i = 0; i < 80; i++) {
            int32_t id = (int32_t)(fm_rng_u32(walk, at++) % VOCAB);
            size_t  n  = 0;
            while (!is_allowed(m, id)) id = (id + 1) % VOCAB;
            const char *bytes = fm_token_bytes(tokenizer, id, &n);
            for (size_t k = 0; k < n; k++) n_space += (size_t)is_space(bytes[k]);
            n_all += n;
            assert_int_equal(fm_matcher_take(m, id), FM_OK);
        }
        fm_matcher_destroy(m);
    }
    if (3 * n_space > n_all) fail_msg("%zu of %zu bytes are white space", n_space, n_all);
    fm_grammar_release(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_separator_or_indentation),
        cmocka_unit_test(compact_has_none),
        cmocka_unit_test(a_pattern_of_the_caller_s),
        cmocka_unit_test(a_line_end_may_come_first),
        cmocka_unit_test(indentation_ends_somewhere),
        cmocka_unit_test(drawn_texts_are_mostly_values),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
