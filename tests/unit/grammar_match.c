/* SPDX-License-Identifier: Apache-2.0 */
/* Which texts a grammar accepts, and that the tokens it allows are exactly
 * those that may come. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "base/str.h"
#include "json/read.h"
#include "grammar_support.h"
#include "text_tiny.h"

#define LIST                                                                                       \
    "{\"$ref\":\"#/$defs/"                                                                         \
    "node\",\"$defs\":{\"node\":{\"type\":\"object\",\"properties\":{\"v\":{\"type\":\"integer\"}" \
    ","                                                                                            \
    "\"next\":{\"anyOf\":[{\"$ref\":\"#/$defs/"                                                    \
    "node\"},{\"type\":\"null\"}]}},\"required\":[\"v\",\"next\"]}}}"

static void schemas(void **state)
{
    (void)state;
    static const example all[] = {
        {"{}",
         {"1", "-0.5e-3", "\"a\\n\\u00e9\"", "[]", "[1, {\"a\": null}]", "true", "{\"\": {}}",
          "\"Gr\xc3\xbc\xc3\x9f\""},
         {"", "01", "[1,]", "{a:1}", "'a'", "nul", "\"\\ud800\"", "\"a\nb\"", "1 "}},
        {"{\"type\":\"object\"}",
         {"{}", "{\"a\": [1, 2]}", "{\n  \"a\": 1,\n  \"b\": {}\n}"},
         {"[]", "1", "{\"a\"}", "{} "}},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{\"type\":"
         "\"boolean\"}},\"required\":[\"b\"]}",
         {"{\"b\":true}", "{\"a\":1,\"b\":false}", "{\"a\": 1, \"b\": true}"},
         {"{}", "{\"a\":1}", "{\"b\":true,\"a\":1}", "{\"a\":1.5,\"b\":true}",
          "{\"b\":true,\"c\":1}", "{,\"b\":true}"}},
        {"{\"type\":\"object\",\"properties\":{\"a\":{},\"b\":{},\"c\":{}}}",
         {"{}", "{\"a\":1}", "{\"b\":1}", "{\"a\":1,\"c\":2}", "{\"a\":1,\"b\":1,\"c\":2}"},
         {"{\"c\":1,\"a\":1}", "{\"a\":1,}"}},
        {"{\"type\":\"object\",\"additionalProperties\":{\"type\":\"integer\"}}",
         {"{}", "{\"x\":1,\"y\":2}"},
         {"{\"x\":\"y\"}"}},
        {"{\"type\":\"object\",\"additionalProperties\":false}", {"{}"}, {"{\"x\":1}"}},
        {"{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"minItems\":1,\"maxItems\":3}",
         {"[1]", "[1,2]", "[1, 2, 3]"},
         {"[]", "[1,2,3,4]", "[1,]", "[\"a\"]"}},
        {"{\"type\":\"array\",\"prefixItems\":[{\"type\":\"integer\"},{\"type\":\"string\"}],"
         "\"items\":false}",
         {"[]", "[1]", "[1,\"a\"]"},
         {"[\"a\"]", "[1,\"a\",2]"}},
        {"{\"type\":\"array\",\"minItems\":2}", {"[1,[]]", "[1,2,3,4,5]"}, {"[]", "[1]"}},
        {"{\"enum\":[\"red\",\"green\",5,null,[1,2]]}",
         {"\"red\"", "5", "null", "[1,2]"},
         {"\"blue\"", "\"re\"", "6", "55"}},
        {"{\"type\":\"integer\",\"enum\":[\"a\",1,2.5,3.0,null]}",
         {"1", "3.0"},
         {"\"a\"", "2.5", "null"}},
        {"{\"type\":[\"number\",\"null\"],\"enum\":[1,2.5,null,true,[],{}]}",
         {"1", "2.5", "null"},
         {"true", "[]", "{}"}},
        {"{\"properties\":{\"a\":{\"type\":\"string\",\"const\":5},\"b\":{\"type\":\"boolean\","
         "\"const\":true}}}",
         {"{}", "{\"b\":true}"},
         {"{\"a\":5}"}},
        {"{\"const\":\"a\\\"b\\u00e9\"}", {"\"a\\\"b\xc3\xa9\""}, {"\"a\""}},
        {"{\"type\":\"string\",\"minLength\":2,\"maxLength\":3}",
         {"\"ab\"", "\"a\\nb\"", "\"\xe4\xb8\x96\xe7\x95\x8c\"", "\"\\u00e9a\""},
         {"\"a\"", "\"abcd\"", "\"\""}},
        {"{\"type\":\"string\",\"pattern\":\"^[a-c]+-\\\\d{2}$\"}",
         {"\"abc-12\"", "\"a-00\""},
         {"\"-12\"", "\"a-1\"", "\"xa-12\"", "\"a-123\""}},
        {"{\"type\":\"string\",\"pattern\":\"b\"}",
         {"\"b\"", "\"abc\"", "\"b\\\\\""},
         {"\"a\"", "\"\""}},
        {"{\"type\":\"string\",\"pattern\":\"^[\\\"\\\\n\\\\\\\\]$\"}",
         {"\"\\\"\"", "\"\\n\"", "\"\\\\\""},
         {"\"\"\"", "\"n\""}},
        {"{\"type\":[\"integer\",\"null\"]}", {"7", "null", "-12"}, {"\"7\"", "1.5"}},
        {"{\"type\":\"integer\",\"minimum\":-3,\"maximum\":112}",
         {"-3", "-1", "0", "9", "10", "99", "100", "112"},
         {"-4", "113", "120", "200", "1000", "-", "007", "-10"}},
        {"{\"type\":\"integer\",\"minimum\":38,\"exclusiveMaximum\":1205}",
         {"38", "99", "100", "999", "1000", "1199", "1204"},
         {"37", "1205", "1300", "9999", "8", "-40"}},
        {"{\"type\":\"integer\",\"maximum\":-5}", {"-5", "-6", "-10", "-999"}, {"-4", "0", "5"}},
        {"{\"type\":\"integer\",\"exclusiveMinimum\":0}", {"1", "10", "123456789"}, {"0", "-1"}},
        {"{\"type\":\"integer\",\"minimum\":9007199254740993}",
         {"9007199254740993", "999999999999999999", "9223372036854775807"},
         {"9007199254740992", "9223372036854775808", "0"}},
        {"{\"type\":\"integer\",\"exclusiveMinimum\":-9007199254740993,"
         "\"maximum\":-9007199254740992}",
         {"-9007199254740992"},
         {"-9007199254740993", "-9007199254740991", "9007199254740992"}},
        {"{\"type\":\"integer\",\"minimum\":-9223372036854775808,\"maximum\":-9223372036854775807}",
         {"-9223372036854775808", "-9223372036854775807"},
         {"-9223372036854775809", "-9223372036854775806", "-1"}},
        {"{\"type\":\"integer\",\"minimum\":-1e30,\"maximum\":1e19}",
         {"-9223372036854775808", "0", "9223372036854775807"},
         {"10000000000000000000"}},
        {"{\"type\":\"integer\",\"exclusiveMinimum\":1.5,\"exclusiveMaximum\":4,\"maximum\":7}",
         {"2", "3"},
         {"1", "4"}},
        {"{\"type\":\"number\",\"maximum\":1e19}",
         {"9223372036854775807", "-9223372036854775807.5", "0.5"},
         {"1e20", "10000000000000000000"}},
        {"{\"type\":\"number\",\"minimum\":9007199254740993,"
         "\"exclusiveMinimum\":9007199254740992.0}",
         {"9007199254740993", "9007199254740993.25"},
         {"9007199254740992", "9007199254740992.5"}},
        {"{\"type\":\"number\",\"maximum\":0}", {"0", "-0.5", "-12"}, {"0.5", "1", "0.1"}},
        {"{\"type\":\"number\",\"minimum\":0,\"maximum\":1}",
         {"0", "0.25", "1", "1.0"},
         {"1.1", "-1", "2", "-0.5", "1.01"}},
        {"{\"type\":\"number\",\"minimum\":-2,\"maximum\":3}",
         {"-2", "-1.75", "0", "-0.1", "2.99", "3"},
         {"-2.1", "3.1", "4", "-3"}},
        {"{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"string\",\"enum\":[\"x\"]}],\"title\":"
         "\"t\"}",
         {"1", "\"x\""},
         {"\"y\"", "true"}},
        {"{\"oneOf\":[{\"type\":\"integer\"},{\"type\":\"string\"}]}", {"1", "\"x\""}, {"null"}},
        {"{\"allOf\":[{\"type\":\"integer\"}],\"description\":\"d\"}", {"1"}, {"\"x\""}},
        {LIST,
         {"{\"v\":1,\"next\":null}",
          "{\"v\":1,\"next\":{\"v\":2,\"next\":{\"v\":3,\"next\":null}}}"},
         {"{\"v\":1}", "{\"v\":1,\"next\":{\"v\":2}}", "{\"v\":1,\"next\":1}"}},
        {"{\"required\":[\"z\"],\"additionalProperties\":{\"type\":\"null\"}}",
         {"{\"z\":null}"},
         {"{}", "{\"z\":1}"}},
        {"{\"properties\":{\"a\":true,\"b\":false}}", {"{\"a\":1}", "{}"}, {"{\"b\":1}"}},
        {"{\"required\":[\"a\",\"b\",\"a\"]}",
         {"{\"a\":1,\"b\":2}"},
         {"{\"a\":1}", "{\"a\":1,\"b\":2,\"a\":3}"}},
        {"{\"pattern\":\"^a.c$\"}",
         {"\"abc\"", "\"a\\tc\"", "\"a\\\"c\"", "\"a\\u000bc\"", "\"a\xc3\xa9\x63\""},
         {"\"ac\"", "\"a\\nc\"", "\"a\\rc\"", "\"a\\u000ac\"", "\"a\\u000Dc\"", "\"a\\u2028c\"",
          "\"a\xe2\x80\xa8\x63\"", "\"a\xe2\x80\xa9\x63\""}},
        {"{\"pattern\":\"b\"}", {"\"a\\nb\\u2028c\""}, {"\"a\\nc\""}}, /* found, not dots */
    };
    check_examples(FM_GRAMMAR_JSON_SCHEMA, all, sizeof all / sizeof *all);
}

static void expressions(void **state)
{
    (void)state;
    static const example all[] = {
        {"a+|b{2,3}c?", {"a", "aaaa", "bb", "bbbc"}, {"", "b", "bbbb", "ab", "ac"}},
        {"^(?:yes|no)$", {"yes", "no"}, {"y", "yesno", "maybe"}},
        {"[^0-9]{3}", {"abc", "\xe4\xb8\x96\xe7\x95\x8c!", "   "}, {"ab1", "abcd", "ab"}},
        {"\\d{4}-\\d\\d-\\d\\d(T\\w+)?",
         {"2024-01-31", "2024-01-31Tnoon"},
         {"2024-1-31", "2024-01-31T"}},
        {"(a|b)*c", {"c", "abbac"}, {"ab", "cc"}},
        {"(?P<x>a)(?<y>b)", {"ab"}, {"a"}},
        {"[\\]\\-a\\u00e9]+", {"]-a\xc3\xa9"}, {"b", "["}},
        {"a{0}b", {"b"}, {"ab"}},
        {"x*?y+?", {"y", "xxyy"}, {"x"}},
        {".",
         {"a", "\xf0\x9f\x98\x80", "\t", "\xe2\x80\xa7"},
         {"\n", "ab", "\r", "\xe2\x80\xa8", "\xe2\x80\xa9"}},
        {"\\S",
         {"a", "\xc3\xa9", "\xe2\x80\x8b"},
         {" ", "\n", "\xc2\xa0", "\xe1\x9a\x80", "\xe2\x80\x8a", "\xe2\x80\xaf", "\xe3\x80\x80",
          "\xef\xbb\xbf"}},
        {"\\s",
         {" ", "\v", "\xc2\xa0", "\xe2\x80\x80", "\xe2\x80\xa9", "\xe2\x81\x9f", "\xe3\x80\x80",
          "\xef\xbb\xbf"},
         {"a", "\xc2\x85", "\xe2\x80\x8b"}},
        {"(\\S{0,2000},[^\\s,]{1,2000};){2}",
         {",a;x,\xc3\xa9;", "a,b,c;d,e;"},
         {",a;", ",\xc2\xa0;,a;", ",,;,a;"}},
        {"", {""}, {"a"}},
    };
    check_examples(FM_GRAMMAR_REGEX, all, sizeof all / sizeof *all);
}

static void says_what_it_cannot_follow(void **state)
{
    (void)state;
    static const refusal all[] = {
        {FM_GRAMMAR_JSON_SCHEMA, "{\"not\":{}}", "not"},
        {FM_GRAMMAR_JSON_SCHEMA, "{\"properties\":{\"a\":{\"patternProperties\":{}}}}",
         "patternProperties"},
        {FM_GRAMMAR_JSON_SCHEMA, "{\"oneOf\":[{},{}]}", "oneOf"},
        {FM_GRAMMAR_JSON_SCHEMA, "{\"oneOf\":[{\"const\":1},{\"enum\":[2,1.0]}]}", "oneOf"},
        {FM_GRAMMAR_JSON_SCHEMA, "{\"$ref\":\"#/nowhere\"}", "nowhere"},
        {FM_GRAMMAR_JSON_SCHEMA, "{\"$ref\":\"#\"}", "no text"},
        {FM_GRAMMAR_JSON_SCHEMA, "{\"anyOf\":[{\"$ref\":\"#\"},{\"type\":\"null\"}]}",
         "refers to itself"},
        {FM_GRAMMAR_JSON_SCHEMA,
         "{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#\"}},\"required\":[\"a\"]}",
         "no text"},
        {FM_GRAMMAR_JSON_SCHEMA, "{\"anyOf\":[false]}", "no text"},
        {FM_GRAMMAR_JSON_SCHEMA, "{\"type\":\"thing\"}", "thing"},
        {FM_GRAMMAR_JSON_SCHEMA, "{\"type\":\"thing\",\"enum\":[1]}", "thing"},
        {FM_GRAMMAR_JSON_SCHEMA, "{\"type\":[\"null\",5]}", "type: expected strings"},
        {FM_GRAMMAR_JSON_SCHEMA, "{\"type\":5,\"const\":5}", "type: expected a string or a list"},
        {FM_GRAMMAR_JSON_SCHEMA, "{\"type\":\"string\",\"const\":5}", "no text"},
        {FM_GRAMMAR_JSON_SCHEMA, "{\"enum\":[]}", "no text"},
        {FM_GRAMMAR_JSON_SCHEMA, "{\"type\":\"string\",\"maxLength\":100000000}", "too large"},
        {FM_GRAMMAR_JSON_SCHEMA, "{\"type\":\"number\",\"minimum\":1e19}", "minimum: 1e+19"},
        {FM_GRAMMAR_JSON_SCHEMA, "{\"type\":\"integer\",\"minimum\":1e19}", "minimum: 1e+19"},
        {FM_GRAMMAR_JSON_SCHEMA, "{\"type\":\"integer\",\"maximum\":-1e19}", "maximum: -1e+19"},
        {FM_GRAMMAR_JSON_SCHEMA, "{\"type\":\"integer\",\"exclusiveMinimum\":9223372036854775807}",
         "exclusiveMinimum"},
        {FM_GRAMMAR_JSON_SCHEMA, "{\"type\":\"integer\",\"exclusiveMaximum\":-9223372036854775808}",
         "exclusiveMaximum"},
        {FM_GRAMMAR_JSON_SCHEMA, "{\"type\":\"integer\",\"minimum\":3,\"maximum\":2.5}",
         "between minimum and maximum"},
        {FM_GRAMMAR_JSON_SCHEMA, "{\"type\":\"number\",\"minimum\":3,\"maximum\":2}",
         "maximum is below minimum"},
        {FM_GRAMMAR_JSON_SCHEMA, "{\"type\":\"string\",\"pattern\":\"(?=a)\"}", "groups"},
        {FM_GRAMMAR_JSON_SCHEMA, "{", "schema"},
        {FM_GRAMMAR_JSON_SCHEMA, "[3]", "expected an object"},
        {FM_GRAMMAR_REGEX, "(a", "closed"},
        {FM_GRAMMAR_REGEX, "a)", ")"},
        {FM_GRAMMAR_REGEX, "*a", "repeat"},
        {FM_GRAMMAR_REGEX, "a{3,1}", "repetition"},
        {FM_GRAMMAR_REGEX, "[a", "closed"},
        {FM_GRAMMAR_REGEX, "(a)\\1", "escape"},
        {FM_GRAMMAR_REGEX, "b(?!a)", "groups"},
        {FM_GRAMMAR_REGEX, "(((((a{1000}){1000}){1000}){1000}){1000})", "too large"},
        {FM_GRAMMAR_REGEX, "a^b", "ends"},
        {FM_GRAMMAR_REGEX, "\xff", "UTF-8"},
        {FM_GRAMMAR_REGEX, "[]", "closed"},
    };
    check_refusals(all, sizeof all / sizeof *all);
}

static void too_many_ways_at_once_are_refused(void **state)
{
    (void)state;
    fm_str      empty = {0};
    fm_grammar *g     = NULL;
    for (int i = 0; i < 20000; i++) fm_str_puts(&empty, "()");
    fm_str_puts(&empty, "x"); /* so far away that no set of places holds it */
    const char *const all[] = {"(.?){9000}b", "(a?){9000}b", "a{60}(.?){3000}b", empty.text};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_int_equal(fm_grammars_get(&g, grammars, FM_GRAMMAR_REGEX, all[i], strlen(all[i]), 0),
                         FM_E_NOSUP);
        assert_non_null(strstr(fm_why(), "too many ways"));
    }
    fm_str_fini(&empty);
}

/* Every token, tried on its own after the same beginning. */
static void allows_exactly_what_may_come(void **state)
{
    (void)state;
    static const char *const schema =
        "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"maxLength\":4},"
        "\"n\":{\"type\":\"integer\"},\"of\":{\"type\":\"array\",\"items\":{\"enum\":[\"on\","
        "\"off\"]}}}}";
    static const char *const begin[] = {
        "", "{", "{\"", "{\"name\": \"a", "{\"name\":\"abc\", \"n\": 1", "{\"of\":[\"o"};
    fm_grammar *g = get(FM_GRAMMAR_JSON_SCHEMA, schema);
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

static int32_t draw_allowed(const fm_matcher *m, uint64_t key, uint64_t *n_draw)
{
    int32_t start = (int32_t)(fm_rng_u32(key, (*n_draw)++) % VOCAB);
    for (int32_t i = 0; i < VOCAB; i++)
        if (is_allowed(m, (start + i) % VOCAB)) return (start + i) % VOCAB;
    fail_msg("nothing is allowed");
    return -1;
}

/* Deep texts outgrow the books of states, which are then begun anew under way. */
static void random_walks_end_in_valid_json(void **state)
{
    (void)state;
    fm_grammar *g       = get(FM_GRAMMAR_JSON_SCHEMA, "{\"type\":\"object\"}");
    int         n_valid = 0;
    for (uint64_t walk = 0; walk < 60; walk++) {
        fm_matcher *m      = NULL;
        fm_str      text   = {0};
        uint64_t    n_draw = 0;
        assert_int_equal(fm_matcher_create(&m, g, NULL), FM_OK);
        for (int i = 0; i < 400 && !fm_matcher_is_over(m); i++) {
            size_t        n  = 0;
            const int32_t id = draw_allowed(m, walk, &n_draw);
            assert_int_equal(fm_matcher_take(m, id), FM_OK);
            const char *bytes = fm_token_bytes(tokenizer, id, &n);
            if (!fm_token_is_special(tokenizer, id)) fm_str_add(&text, bytes, n);
        }
        if (fm_matcher_is_over(m)) {
            json_t *v = json_loadb(text.text, text.len, JSON_ALLOW_NUL, NULL);
            if (!v) fail_msg("no JSON: %s", text.text);
            n_valid++;
            json_decref(v);
        }
        fm_str_fini(&text);
        fm_matcher_destroy(m);
    }
    assert_true(n_valid > 5);
    fm_grammar_release(g);
}

/* One step of a walk: of four tokens drawn from what may come, or from all, as many are allowed as a
 * matcher takes that goes on from here, and what may come behind each is what it says. */
static void compare_with_taking(fm_grammar *g, const int32_t *way, int n_way, const int32_t *ahead)
{
    fm_matcher     *m = NULL, *other = NULL;
    assert_int_equal(fm_matcher_create(&m, g, NULL), FM_OK);
    assert_int_equal(fm_matcher_create(&other, g, NULL), FM_OK);
    const size_t words = fm_matcher_mask_words(m);
    for (int i = 0; i < n_way; i++) {
        assert_int_equal(fm_matcher_take(m, way[i]), FM_OK);
        assert_int_equal(fm_matcher_take(other, way[i]), FM_OK);
    }
    uint32_t  tight[4 * (VOCAB / 32 + 1)];
    const int n = fm_matcher_peek(m, ahead, 4, tight);
    for (int i = 0; i < n; i++) {
        assert_true(is_allowed(other, ahead[i]));
        assert_int_equal(fm_matcher_take(other, ahead[i]), FM_OK);
        assert_false(fm_matcher_is_over(other));
        assert_memory_equal(tight + (size_t)i * words, fm_matcher_allowed(other), words * 4);
    }
    if (n < 4 && is_allowed(other, ahead[n]) && ahead[n] != EOS) { /* only the end is left out */
        assert_int_equal(fm_matcher_take(other, ahead[n]), FM_OK);
        assert_true(fm_matcher_is_over(other));
    }
    for (int i = 0; i < n && i < 1; i++) assert_true(is_allowed(m, ahead[0])); /* it did not move */
    fm_matcher_destroy(m);
    fm_matcher_destroy(other);
}

static void looking_ahead_is_what_taking_finds(void **state)
{
    (void)state;
    fm_grammar *g = get(FM_GRAMMAR_JSON_SCHEMA, "{\"type\":\"array\",\"items\":{\"enum\":[1,22,\"ab\"]},"
                                                "\"maxItems\":4}");
    for (uint64_t walk = 0; walk < 30; walk++) {
        int32_t     way[40], n = 0;
        uint64_t    n_draw = 0;
        fm_matcher *m      = NULL;
        assert_int_equal(fm_matcher_create(&m, g, NULL), FM_OK);
        while (n < 40 && !fm_matcher_is_over(m)) {
            way[n] = draw_allowed(m, walk, &n_draw);
            assert_int_equal(fm_matcher_take(m, way[n++]), FM_OK);
        }
        fm_matcher_destroy(m);
        for (int at = 0; at + 4 <= n; at++) {
            int32_t ahead[4];
            memcpy(ahead, way + at, sizeof ahead);
            compare_with_taking(g, way, at, ahead);
            ahead[at % 4] = (int32_t)(walk * 131 % VOCAB); /* one that may not come, most likely */
            compare_with_taking(g, way, at, ahead);
        }
    }
    fm_grammar_release(g);
}

/* A hash of all that may come on a random way through the grammar. */
static uint64_t hash_walk(fm_grammar *g, uint64_t key, int *n_stuck)
{
    fm_matcher *m    = NULL;
    uint64_t    hash = 0, n_draw = 0;
    assert_int_equal(fm_matcher_create(&m, g, NULL), FM_OK);
    for (int i = 0; i < 70 && !fm_matcher_is_over(m); i++) {
        for (int k = 0; k < VOCAB / 32; k++)
            hash = (hash ^ fm_matcher_allowed(m)[k]) * 0x100000001b3;
        const fm_status rc = fm_matcher_take(m, draw_allowed(m, key, &n_draw));
        if (rc == FM_E_NOSUP) {
            *n_stuck += 1;
            break;
        }
        assert_int_equal(rc, FM_OK);
    }
    fm_matcher_destroy(m);
    return hash;
}

/* The same for a number of keys, one after the other in a grammar that has no cached states. */
static void hash_walks(const char *text, int n, const uint64_t *key, uint64_t *hash, int *n_stuck)
{
    static const int32_t eos = EOS;
    fm_grammars         *gs  = NULL;
    fm_grammar          *g   = NULL;
    assert_int_equal(fm_grammars_create(&gs, tokenizer, VOCAB, &eos, 1), FM_OK);
    assert_int_equal(fm_grammars_get(&g, gs, FM_GRAMMAR_REGEX, text, strlen(text), 0), FM_OK);
    for (int i = 0; i < n; i++) hash[i] = hash_walk(g, key[i], n_stuck);
    fm_grammar_release(g);
    fm_grammars_destroy(gs);
}

/* Of the second there are soon more ways than we follow. */
static void what_may_come_does_not_depend_on_company(void **state)
{
    (void)state;
    static const char *const text[]     = {"(.?){20}b", "a{40}((.?){30}[a-z]){60}"};
    static const uint64_t    key[]      = {7, 8, 9};
    int                      n_stuck[2] = {0, 0};
    for (int t = 0; t < 2; t++) {
        uint64_t alone[3], together[3];
        for (int i = 0; i < 3; i++) hash_walks(text[t], 1, key + i, alone + i, n_stuck + t);
        hash_walks(text[t], 3, key, together, n_stuck + t);
        assert_memory_equal(alone, together, sizeof alone);
    }
    assert_int_equal(n_stuck[0], 0);
    assert_int_equal(n_stuck[1], 6);
}

static void nesting_has_no_end(void **state)
{
    (void)state;
    fm_grammar *g   = get(FM_GRAMMAR_JSON_SCHEMA, "{}");
    fm_matcher *m   = NULL;
    fm_ids      ids = {0};
    enum { DEPTH = 5000 };
    assert_int_equal(fm_encode(tokenizer, scratch, "[]", 2, FM_ENCODE_PLAIN, &ids), FM_OK);
    assert_int_equal(fm_matcher_create(&m, g, NULL), FM_OK);
    int32_t open = -1, shut = -1;
    for (int32_t id = 0; id < VOCAB; id++) {
        size_t      n = 0;
        const char *b = fm_token_bytes(tokenizer, id, &n);
        if (n == 1 && *b == '[') open = id;
        if (n == 1 && *b == ']') shut = id;
    }
    for (int i = 0; i < DEPTH; i++) assert_int_equal(fm_matcher_take(m, open), FM_OK);
    for (int i = 0; i < DEPTH; i++) {
        assert_false(fm_matcher_is_over(m));
        assert_int_equal(fm_matcher_take(m, shut), FM_OK);
    }
    assert_true(fm_matcher_is_over(m));
    fm_matcher_destroy(m);
    fm_grammar_release(g);
    fm_ids_fini(&ids);
}

static void waits_for_the_end_of_thinking(void **state)
{
    (void)state;
    fm_grammar       *g      = get(FM_GRAMMAR_JSON_SCHEMA, "{\"type\":\"null\"}");
    fm_matcher       *m      = NULL;
    fm_ids            ids    = {0};
    static const char text[] = "hm </thin </think>";
    assert_int_equal(fm_matcher_create(&m, g, "</think>"), FM_OK);
    assert_int_equal(fm_encode(tokenizer, scratch, text, strlen(text), 0, &ids), FM_OK);
    for (size_t i = 0; i < ids.n; i++) {
        assert_null(fm_matcher_allowed(m));
        assert_int_equal(fm_matcher_take(m, ids.id[i]), FM_OK);
    }
    assert_non_null(fm_matcher_allowed(m));
    assert_int_equal(fm_matcher_take(m, ids.id[0]), FM_E_ARG);
    fm_matcher_destroy(m);
    fm_grammar_release(g);
    fm_ids_fini(&ids);
}

static void equal_grammars_are_made_once(void **state)
{
    (void)state;
    fm_grammar *a = get(FM_GRAMMAR_REGEX, "once"), *b = get(FM_GRAMMAR_REGEX, "once");
    fm_grammar *c = get(FM_GRAMMAR_JSON_SCHEMA, "{\"const\":1}");
    assert_ptr_equal(a, b);
    assert_ptr_not_equal(a, c);
    for (int i = 0; i < 100; i++) { /* more than are kept; `a` lives on in our hands */
        char text[16] = "x000";
        text[1] = (char)('0' + i / 10), text[2] = (char)('0' + i % 10);
        fm_grammar_release(get(FM_GRAMMAR_REGEX, text));
    }
    assert_int_equal(reads(a, "once"), 2);
    fm_grammar_release(a), fm_grammar_release(b), fm_grammar_release(c);
}

static void calls_follow_the_model_s_syntax(void **state)
{
    (void)state;
    static const fm_grammar_tool tool[] = {
        {"weather",
         "{\"type\":\"object\",\"properties\":{\"city\":{\"type\":\"string\"}},\"required\":["
         "\"city\"]}",
         0},
        {"time", "{\"type\":\"object\",\"patternProperties\":{}}", 0}};
    fm_grammar_calls c       = {.style = FM_TOOLS_V3, .tool = tool, .n_tool = 2};
    static const char call[] = "weather\n```json\n{\"city\": \"Rome\"}\n```<｜tool▁call▁end｜>";
    static const char end[] = "<｜tool▁calls▁end｜>";
    fm_grammar       *g     = NULL;
    fm_matcher       *m     = NULL;
    fm_ids            ids   = {0};
    assert_int_equal(fm_grammars_get_calls(&g, grammars, &c), FM_OK);
    assert_int_equal(fm_matcher_create(&m, g, NULL), FM_OK);
    assert_int_equal(fm_encode(tokenizer, scratch, call, strlen(call), 0, &ids), FM_OK);
    assert_int_equal(fm_encode(tokenizer, scratch, end, strlen(end), 0, &ids), FM_OK);
    for (size_t i = 0; i < ids.n; i++) {
        assert_false(fm_matcher_is_over(m));
        if (!is_allowed(m, ids.id[i])) fail_msg("token %zu of %zu", i, ids.n);
        assert_int_equal(fm_matcher_take(m, ids.id[i]), FM_OK);
    }
    assert_true(fm_matcher_is_over(m));
    fm_matcher_destroy(m);
    fm_grammar_release(g);
    assert_int_equal(reads(g = (c.chosen = "weather", fm_grammars_get_calls(&g, grammars, &c), g),
                           "{\"city\": \"x\"}\n```"),
                     1);
    assert_int_equal(reads(g, "weather"), 0);
    fm_grammar_release(g);
    fm_grammar_tool strict = tool[1];
    strict.strict          = 1;
    c = (fm_grammar_calls){.style = FM_TOOLS_V31, .tool = &strict, .n_tool = 1};
    assert_int_equal(fm_grammars_get_calls(&g, grammars, &c), FM_E_NOSUP);
    assert_non_null(strstr(fm_why(), "patternProperties"));
    fm_ids_fini(&ids);
}

enum { TINY_EOS = 256, TINY_MARK = 257, TINY_VOCAB = TINY_MARK + 5 };

/* Bytes, an end of text, and a model's marks around calls, none of them special. */
static fm_tokenizer *open_with_plain_marks(fm_tool_style style)
{
    fm_tokenizer *t     = NULL;
    fm_str        added = {0}, text = {0};
    fm_str_printf(&added, "[{\"id\":%d,\"content\":\"<end>\",\"special\":false}", TINY_EOS);
    for (int i = 0; i < 5; i++)
        fm_str_printf(&added, ",{\"id\":%d,\"content\":\"%s\",\"special\":false}", TINY_MARK + i,
                      fm_tool_calls_marks(style)[i]);
    fm_str_puts(&added, "]");
    tiny_write(&text, (tiny){.added = added.text});
    assert_int_equal(fm_tokenizer_parse(&t, text.text, text.len, "tiny"), FM_OK);
    fm_str_fini(&text);
    fm_str_fini(&added);
    return t;
}

static void write_call(fm_str *out, fm_tool_style style)
{
    static const char *const before[] = {"f\n```json\n", "f", "f:0"};
    static const char *const after[]  = {"\n```", "", ""};
    const char *const       *mark     = fm_tool_calls_marks(style);
    fm_str_printf(out, "%s%s{\"x\": \"ab\"}%s%s%s", before[style],
                  style == FM_TOOLS_V3 ? "" : mark[FM_MARK_SEPARATOR], after[style],
                  mark[FM_MARK_CALL_END], mark[FM_MARK_CALLS_END]);
}

static void follow_call(fm_tokenizer *t, fm_matcher *m, const char *call)
{
    fm_tokenizer_scratch *own = NULL;
    fm_ids                ids = {0};
    assert_int_equal(fm_tokenizer_scratch_create(&own, t), FM_OK);
    assert_int_equal(fm_encode(t, own, call, strlen(call), 0, &ids), FM_OK);
    for (size_t i = 0; i < ids.n; i++) {
        assert_false(fm_matcher_is_over(m));
        if (!is_allowed(m, ids.id[i])) fail_msg("token %zu of %zu of %s", i, ids.n, call);
        if (i && ids.id[i - 1] == 'a') { /* inside a string, where any text may come */
            assert_false(is_allowed(m, TINY_EOS));
            assert_false(is_allowed(m, TINY_MARK + FM_MARK_CALL_END));
        }
        assert_int_equal(fm_matcher_take(m, ids.id[i]), FM_OK);
    }
    assert_true(fm_matcher_is_over(m));
    fm_ids_fini(&ids);
    fm_tokenizer_scratch_destroy(own);
}

static void marks_that_are_not_special_are_marks(void **state)
{
    (void)state;
    static const int32_t         eos  = TINY_EOS;
    static const fm_grammar_tool tool = {
        "f", "{\"properties\":{\"x\":{\"type\":\"string\"}},\"required\":[\"x\"]}", 1};
    for (fm_tool_style style = FM_TOOLS_V3; style <= FM_TOOLS_KIMI; style++) {
        const fm_grammar_calls c    = {.style = style, .tool = &tool, .n_tool = 1};
        fm_tokenizer          *t    = open_with_plain_marks(style);
        fm_grammars           *gs   = NULL;
        fm_grammar            *g    = NULL;
        fm_matcher            *m    = NULL;
        fm_str                 call = {0};
        assert_int_equal(fm_grammars_create(&gs, t, TINY_VOCAB, &eos, 1), FM_OK);
        assert_int_equal(fm_grammars_get_calls(&g, gs, &c), FM_OK);
        assert_int_equal(fm_matcher_create(&m, g, NULL), FM_OK);
        write_call(&call, style);
        follow_call(t, m, call.text);
        fm_str_fini(&call);
        fm_matcher_destroy(m);
        fm_grammar_release(g);
        fm_grammars_destroy(gs);
        fm_tokenizer_close(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schemas),
        cmocka_unit_test(expressions),
        cmocka_unit_test(says_what_it_cannot_follow),
        cmocka_unit_test(too_many_ways_at_once_are_refused),
        cmocka_unit_test(allows_exactly_what_may_come),
        cmocka_unit_test(looking_ahead_is_what_taking_finds),
        cmocka_unit_test(random_walks_end_in_valid_json),
        cmocka_unit_test(what_may_come_does_not_depend_on_company),
        cmocka_unit_test(nesting_has_no_end),
        cmocka_unit_test(waits_for_the_end_of_thinking),
        cmocka_unit_test(equal_grammars_are_made_once),
        cmocka_unit_test(calls_follow_the_model_s_syntax),
        cmocka_unit_test(marks_that_are_not_special_are_marks),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
