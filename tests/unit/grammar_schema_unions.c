/* SPDX-License-Identifier: Apache-2.0 */
/* Unions told apart by tags, schemas that hold at once, maps, and arrays without
 * equal items. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "base/str.h"
#include "grammar_support.h"
#include "json/read.h"

#define TAGGED                                                                                     \
    "\"$defs\":{\"Cat\":{\"type\":\"object\",\"properties\":{\"kind\":{\"const\":\"cat\","         \
    "\"default\":\"cat\",\"type\":\"string\"},\"lives\":{\"type\":\"integer\"}},\"required\":["    \
    "\"lives\"]},\"Dog\":{\"type\":\"object\",\"properties\":{\"kind\":{\"const\":\"dog\"},"       \
    "\"toy\":{\"type\":\"string\"}},\"required\":[\"kind\"]}}"

/* Recursive, through members whose tag is not required. */
#define SUM                                                                                        \
    "{\"$ref\":\"#/$defs/sum\",\"$defs\":{\"num\":{\"type\":\"object\",\"properties\":{\"op\":{"   \
    "\"const\":\"num\"},\"x\":{\"type\":\"integer\"}},\"required\":[\"x\"]},\"sum\":{\"type\":"    \
    "\"object\",\"properties\":{\"op\":{\"const\":\"sum\"},\"l\":{\"oneOf\":[{\"$ref\":\"#/$defs/" \
    "sum\"},{\"$ref\":\"#/$defs/num\"}]}},\"required\":[\"l\"]}}}"

static void unions(void **state)
{
    (void)state;
    static const example all[] = {
        {"{\"discriminator\":{\"propertyName\":\"kind\",\"mapping\":{\"cat\":\"#/$defs/Cat\"}},"
         "\"oneOf\":[{\"$ref\":\"#/$defs/Cat\"},{\"$ref\":\"#/$defs/Dog\"}]," TAGGED "}",
         {"{\"kind\":\"cat\",\"lives\":9}", "{\"kind\":\"dog\"}",
          "{\"kind\":\"dog\",\"toy\":\"x\"}"},
         {"{\"lives\":9}", "{\"kind\":\"cat\"}", "{\"kind\":\"cow\"}", "{}",
          "{\"kind\":\"dog\",\"lives\":9}"}},
        {"{\"type\":\"array\",\"items\":{\"oneOf\":[{\"oneOf\":[{\"$ref\":\"#/$defs/Cat\"},"
         "{\"$ref\":\"#/$defs/Dog\"}]},{\"type\":\"object\",\"properties\":{\"kind\":{\"const\":"
         "\"cow\"}}}]}," TAGGED "}",
         {"[{\"kind\":\"cow\"},{\"kind\":\"cat\",\"lives\":1}]", "[]", "[{\"kind\":\"dog\"}]"},
         {"[{}]", "[{\"lives\":1}]"}},
        {SUM,
         {"{\"l\":{\"op\":\"num\",\"x\":1}}",
          "{\"op\":\"sum\",\"l\":{\"op\":\"sum\",\"l\":{\"op\":\"sum\",\"l\":{\"op\":\"num\",\"x\":"
          "2}}}}"},
         {"{\"l\":{\"x\":1}}", "{\"op\":\"num\",\"x\":1}", "{\"l\":{\"op\":\"sum\"}}"}},
    };
    check_examples(FM_GRAMMAR_JSON_SCHEMA, all, sizeof all / sizeof *all);
}

static void all_of(void **state)
{
    (void)state;
    static const example all[] = {
        {"{\"allOf\":[{\"$ref\":\"#/$defs/"
         "named\"},{\"properties\":{\"age\":{\"type\":\"integer\"}},"
         "\"required\":[\"age\"]}],\"$defs\":{\"named\":{\"type\":\"object\",\"properties\":{"
         "\"name\":{\"type\":\"string\"}},\"required\":[\"name\"]}}}",
         {"{\"name\":\"x\",\"age\":3}"},
         {"{\"name\":\"x\"}", "{\"age\":3}", "{\"name\":\"x\",\"age\":\"3\"}", "{}"}},
        {"{\"allOf\":[{\"type\":\"number\",\"minimum\":0},{\"type\":\"integer\",\"maximum\":9.5}]}",
         {"0", "9"},
         {"-1", "10", "1.5"}},
        {"{\"allOf\":[{\"minimum\":3,\"type\":\"number\"},{\"minimum\":2,\"exclusiveMinimum\":3}]}",
         {"3.1"},
         {"3", "2.5"}},
        {"{\"allOf\":[{\"type\":\"string\",\"pattern\":\"a\"},{\"pattern\":\"b\"},{\"pattern\":"
         "\"c\",\"maxLength\":4}]}",
         {"\"abc\"", "\"cxba\""},
         {"\"ab\"", "\"ac\"", "\"abxyc\"", "\"\""}},
        {"{\"allOf\":[{\"type\":\"integer\",\"multipleOf\":4},{\"multipleOf\":6}]}",
         {"0", "12", "-24"},
         {"4", "6", "8"}},
        {"{\"allOf\":[{\"enum\":[\"a\",\"b\",1]},{\"enum\":[\"b\",1.0,\"c\"]}]}",
         {"\"b\"", "1"},
         {"\"a\"", "\"c\""}},
        {"{\"allOf\":[{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"integer\"}]},{\"anyOf\":[{"
         "\"type\":\"integer\"},{\"type\":\"null\"}]}]}",
         {"5"},
         {"\"x\"", "null"}},
        {"{\"$ref\":\"#/$defs/n\",\"maximum\":5,\"$defs\":{\"n\":{\"type\":\"integer\",\"minimum\":"
         "1}}}",
         {"1", "5"},
         {"0", "6"}},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"}},\"required\":[\"a\"],"
         "\"anyOf\":[{\"properties\":{\"b\":{\"const\":1}},\"required\":[\"b\"]},{\"properties\":{"
         "\"a\":{\"const\":7}}}]}",
         {"{\"a\":3,\"b\":1}", "{\"a\":7}"},
         {"{\"a\":3}", "{\"b\":1}", "{\"a\":3,\"b\":2}"}},
        {"{\"allOf\":[{\"type\":\"array\",\"items\":{\"type\":\"number\"}},{\"items\":{\"minimum\":"
         "2},\"maxItems\":2},{\"prefixItems\":[{\"maximum\":5}]}]}",
         {"[5,9]", "[]", "[2]"},
         {"[6]", "[5,1]", "[5,2,2]", "[1]"}},
        {"{\"allOf\":[{\"type\":\"object\",\"properties\":{\"a\":{}},\"additionalProperties\":"
         "false},"
         "{\"properties\":{\"a\":{\"type\":\"null\"},\"b\":{}}}]}",
         {"{}", "{\"a\":null}"},
         {"{\"b\":1}", "{\"a\":1}"}},
        {"{\"allOf\":[{\"type\":[\"string\",\"null\"]},{\"type\":[\"null\",\"integer\"]}]}",
         {"null"},
         {"5", "\"x\""}},
        {"{\"allOf\":[{},{\"type\":\"null\"},true]}", {"null"}, {"1"}},
        /* both refer to themselves */
        {"{\"allOf\":[{\"$ref\":\"#/$defs/a\"},{\"$ref\":\"#/$defs/"
         "b\"}],\"$defs\":{\"a\":{\"type\":"
         "\"object\",\"properties\":{\"x\":{\"type\":\"integer\"},\"next\":{\"$ref\":\"#/$defs/"
         "a\"}}},"
         "\"b\":{\"required\":[\"x\"],\"properties\":{\"x\":{\"minimum\":3},\"next\":{\"$ref\":\"#/"
         "$defs/b\"}}}}}",
         {"{\"x\":3}", "{\"x\":3,\"next\":{\"x\":4,\"next\":{\"x\":5}}}"},
         {"{\"x\":2}", "{\"x\":3,\"next\":{}}", "{\"x\":3,\"next\":{\"x\":4,\"next\":{\"x\":1}}}"}},
        {"{\"allOf\":[{\"type\":\"string\",\"format\":\"date\"},{\"format\":\"x\",\"pattern\":"
         "\"^2024-01\"}]}",
         {"\"2024-01-31\""},
         {"\"2024-02-01\"", "\"2024-01\""}},
    };
    check_examples(FM_GRAMMAR_JSON_SCHEMA, all, sizeof all / sizeof *all);
}

static void maps(void **state)
{
    (void)state;
    static const example all[] = {
        {"{\"type\":\"object\",\"additionalProperties\":{\"type\":\"integer\"},\"propertyNames\":{"
         "\"enum\":[\"a\",\"b\",5]}}",
         {"{}", "{\"a\":1}", "{\"b\": 2, \"a\": 3}"},
         {"{\"c\":1}", "{5:1}", "{\"a\":\"x\"}"}},
        {"{\"type\":\"object\",\"propertyNames\":{\"format\":\"date\"},\"minProperties\":1,"
         "\"maxProperties\":2}",
         {"{\"2024-01-01\":null}", "{\"2024-01-01\":1,\"2024-01-02\":{}}"},
         {"{}", "{\"x\":1}", "{\"2024-01-01\":1,\"2024-01-02\":2,\"2024-01-03\":3}"}},
        {"{\"type\":\"object\",\"patternProperties\":{\"^[a-z]+$\":{\"type\":\"boolean\"}},"
         "\"additionalProperties\":false}",
         {"{}", "{\"ab\":true}"},
         {"{\"A\":true}", "{\"ab\":1}"}},
        {"{\"type\":\"object\",\"maxProperties\":0}", {"{}"}, {"{\"a\":1}"}},
        {"{\"properties\":{\"a\":{}},\"required\":[\"a\"],\"minProperties\":1,\"maxProperties\":3}",
         {"{\"a\":1}"},
         {"{}"}},
        {"{\"allOf\":[{\"type\":\"object\",\"maxProperties\":3},{\"maxProperties\":1,"
         "\"propertyNames\":{\"minLength\":2}}]}",
         {"{}", "{\"ab\":1}"},
         {"{\"a\":1}", "{\"ab\":1,\"cd\":2}"}},
    };
    check_examples(FM_GRAMMAR_JSON_SCHEMA, all, sizeof all / sizeof *all);
}

static void unique_items(void **state)
{
    (void)state;
    static const example all[] = {
        {"{\"type\":\"array\",\"items\":{\"enum\":[\"a\",\"b\",\"c\"]},\"uniqueItems\":true}",
         {"[]", "[\"c\",\"a\"]", "[\"b\",\"a\",\"c\"]"},
         {"[\"a\",\"a\"]", "[\"a\",\"b\",\"a\"]", "[\"a\",\"b\",\"c\",\"a\"]", "[\"d\"]"}},
        {"{\"type\":\"array\",\"items\":{\"type\":\"boolean\"},\"uniqueItems\":true,\"minItems\":"
         "1}",
         {"[true]", "[false,true]"},
         {"[]", "[true,true]", "[true,false,true]"}},
        {"{\"type\":\"array\",\"items\":{\"anyOf\":[{\"$ref\":\"#/$defs/e\"},{\"type\":\"null\"}]},"
         "\"uniqueItems\":true,\"maxItems\":2,\"$defs\":{\"e\":{\"enum\":[1,1.0,2]}}}",
         {"[1,null]", "[2,1]"},
         {"[1,1.0]", "[null,null]", "[1,2,null]"}},
        {"{\"type\":\"array\",\"items\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":4},"
         "\"uniqueItems\":true}",
         {"[4,0,2]", "[0,1,2,3,4]"},
         {"[1,1]", "[5]"}},
        {"{\"type\":\"array\",\"items\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":31},"
         "\"uniqueItems\":true,\"minItems\":2}",
         {"[1,31]", "[3,7,20]"},
         {"[1,1]", "[4]", "[7,3,7]"}},
        /* beyond eight values, in any order */
        {"{\"type\":\"array\",\"items\":{\"enum\":[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\","
         "\"h\",1,1.0]},\"uniqueItems\":true,\"minItems\":2}",
         {"[\"h\", \"a\", 1]", "[1, \"g\"]", "[\n  \"b\",\n  \"a\"\n]"},
         {"[\"a\"]", "[\"h\", \"a\", \"h\"]", "[1, 1]", "[1, 1.0]", "[\"i\"]"}},
        {"{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"uniqueItems\":true}",
         {"[]", "[\"a\",\"b\"]", "[\"a\",\"ab\",\"b\"]", "[\n  \"a\",\n  \"b\"\n]",
          "[\"ab\", \"a\", \"abc\"]", "[\"x\\n\",\"x\\t\"]"},
         {"[\"a\",\"a\"]", "[\"a\", \"b\", \"a\"]", "[\"\",\"\"]",
          "[\"hello world\",\"hello world\"]", "[\n  \"a\",\n  \"a\"\n]", "[\"a\",\"\\u0061\"]",
          "[\"\xc3\xa9\",\"\xc3\xa9\"]"}},
        {"{\"type\":\"object\",\"properties\":{\"p\":{\"$ref\":\"#/$defs/s\"},\"q\":{\"$ref\":\"#/"
         "$defs/s\"}},\"$defs\":{\"s\":{\"type\":\"array\",\"items\":{\"type\":\"string\","
         "\"minLength\":1},\"uniqueItems\":true,\"maxItems\":3}}}",
         {"{\"p\":[\"a\"],\"q\":[\"a\"]}", "{\"p\": [\"a\", \"b\", \"c\"], \"q\": []}"},
         {"{\"p\":[\"a\",\"a\"],\"q\":[]}", "{\"p\":[\"\"]}", "{\"q\":[\"a\",\"b\",\"b\"]}"}},
        {"{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"uniqueItems\":true}",
         {"[]", "[0]", "[1,2,12,1200]", "[0, -1, 1]", "[-5,5,-55]", "[\n  10,\n  1,\n  0\n]"},
         {"[1,1]", "[0,0]", "[0, 5, 0]", "[12,3,12]", "[-1,-1]", "[-0]", "[\n  7,\n  7\n]",
          "[100, 200, 100]"}},
        {"{\"type\":\"array\",\"items\":{\"type\":\"array\",\"items\":{\"type\":\"integer\","
         "\"exclusiveMinimum\":0},\"uniqueItems\":true}}",
         {"[[1],[1,2]]", "[[],[30, 3]]"},
         {"[[0]]", "[[-1]]", "[[1],[2,2]]"}},
        {"{\"type\":\"array\",\"items\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":100},"
         "\"uniqueItems\":true}",
         {"[100,1,10]", "[7, 3]", "[1,10,100]"},
         {"[1,1]", "[10,1,10]", "[0]", "[101]"}},
        {"{\"type\":\"array\",\"items\":{\"type\":\"number\"},\"uniqueItems\":true}",
         {"[1,1.5,-1.5,0]", "[0.25, 2]", "[]"},
         {"[1,1]", "[1,1.0]", "[1.5,1.50]", "[0,-0]", "[0.5, 1, 0.5]", "[1e3"}},
        {"{\"type\":\"array\",\"items\":{\"type\":\"number\",\"minimum\":0,\"maximum\":1},"
         "\"uniqueItems\":true}",
         {"[0,1,0.5]", "[0.1,0.01]"},
         {"[0.5,0.5]", "[1,1.0]", "[1.1]", "[0,0]"}},
        {"{\"type\":\"array\",\"items\":{\"type\":\"string\",\"format\":\"date\"},\"uniqueItems\":"
         "true}",
         {"[\"2024-01-30\",\"2024-01-31\"]", "[\"2024-01-30\"]"},
         {"[\"2024-01-30\",\"2024-01-30\"]", "[\"2024-01-30\",\"2024-01-31\",\"2024-01-3"}},
        {"{\"type\":\"array\",\"items\":{\"type\":\"string\",\"format\":\"uuid\"},\"uniqueItems\":"
         "true}",
         {"[\"123e4567-e89b-12d3-a456-426614174000\",\"123e4567-e89b-12d3-a456-426614174001\"]"},
         {"[\"123e4567-e89b-12d3-a456-426614174000\",\"123e4567-e89b-12d3-a456-426614174000\"]"}},
        {"{\"type\":\"array\",\"items\":{\"type\":\"string\",\"maxLength\":3},\"uniqueItems\":"
         "true}",
         {"[\"abc\",\"ab\",\"a\"]"},
         {"[\"abc\",\"abc\"]", "[\"abcd\"]", "[\"\",\"\"]"}},
        {"{\"type\":\"array\",\"items\":{\"type\":\"string\",\"pattern\":\"^[ab]{1,2}$\"},"
         "\"uniqueItems\":true}",
         {"[\"a\",\"b\",\"aa\",\"ab\",\"ba\",\"bb\"]", "[\"aa\",\"ab\",\"a\"]"},
         {"[\"a\",\"a\"]", "[\"aa\",\"ab\",\"a\",\"a",
          "[\"aa\",\"ab\",\"a\",\"b\",\"ba\",\"bb\",\""}},
        {"{\"type\":\"array\",\"uniqueItems\":false}", {"[1,1]"}, {"1"}},
        {"{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"uniqueItems\":true,\"maxItems\":1}",
         {"[]", "[\"x\"]"},
         {"[\"x\",\"y\"]"}},
    };
    check_examples(FM_GRAMMAR_JSON_SCHEMA, all, sizeof all / sizeof *all);
}

#define POINT                                                                                      \
    "{\"type\":\"object\",\"properties\":{\"x\":{\"type\":\"number\"},\"tag\":{\"type\":"          \
    "\"string\"}},\"required\":[\"x\"],\"additionalProperties\":false}"

/* As Pydantic writes set[Model], set[tuple[int, str]] and set[int | str]. */
static void unique_values(void **state)
{
    (void)state;
    static const example all[] = {
        {"{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/P\"},\"uniqueItems\":true,\"$defs\":{"
         "\"P\":" POINT "}}",
         {"[]", "[{\"x\": 1}]", "[{\"x\": 1}, {\"x\": 2}, {\"x\": 12}]",
          "[{\"x\": 1, \"tag\": \"a\"}, {\"x\": 1, \"tag\": \"b\"}, {\"x\": 1}]",
          "[{\"x\": 1, \"tag\": \"a, b\"}, {\"x\": 1, \"tag\": \"a,b\"}]",
          "[\n  {\n    \"x\": 1\n  },\n  {\n    \"x\": 1.5\n  }\n]"},
         {"[{\"x\": 1}, {\"x\": 1}]", "[{\"x\": 1}, {\"x\":1}]", "[{\"x\": 1}, {\"x\": 1.0}]",
          "[{\"x\": 1}, {\"x\": 1e0}]", "[{\"x\": 1}, {\"x\": 2}, {\"x\": 1}]",
          "[{\"x\": 1, \"tag\": \"\\\"],[\"}, {\"x\": 1, \"tag\": \"\\\"],[\"}]",
          "[{\"x\": 1, \"tag\": \"a\"}, {\"x\": 1, \"tag\": \"\\u0061\"}]",
          "[\n  {\n    \"x\": 1\n  },\n  {\n    \"x\": 1\n  }\n]"}},
        /* the same model, with and without other spellings; the sets of two properties are two */
        {"{\"type\":\"object\",\"properties\":{\"one\":{\"$ref\":\"#/$defs/P\"},\"a\":{\"items\":{"
         "\"$ref\":\"#/$defs/P\"},\"uniqueItems\":true,\"type\":\"array\"},\"b\":{\"items\":{"
         "\"$ref\":\"#/$defs/P\"},\"uniqueItems\":true,\"type\":\"array\"}},\"$defs\":{\"P\":" POINT
         "}}",
         {"{\"one\": {\"x\": 1e3}, \"a\": [{\"x\": 1}], \"b\": [{\"x\": 1}]}"},
         {"{\"a\": [{\"x\": 1e3}]}", "{\"a\": [{\"x\": 1}, {\"x\": 1}]}",
          "{\"a\": [{\"x\": 1}], \"b\": [{\"x\": 1}, {\"x\": 1}]}"}},
        /* few values: an item that could only repeat one is not begun */
        {"{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"p\":{\"type\":"
         "\"boolean\"},\"q\":{\"const\":1}},\"required\":[\"p\"]},\"uniqueItems\":true,"
         "\"minItems\":2}",
         {"[{\"p\": true}, {\"p\": false}]", "[{\"p\": true, \"q\": 1}, {\"p\": true}]"},
         {"[{\"p\": true}]", "[{\"p\": true}, {\"p\": true}]",
          "[{\"p\": true, \"q\": 1}, {\"p\": true, \"q\": 1}]"}},
        {"{\"type\":\"array\",\"items\":{\"type\":\"array\",\"prefixItems\":[{\"type\":\"integer\"},"
         "{\"type\":\"string\"}],\"minItems\":2,\"maxItems\":2},\"uniqueItems\":true}",
         {"[[1, \"a\"], [1, \"b\"], [2, \"a\"]]", "[]"},
         {"[[1, \"a\"], [1, \"a\"]]", "[[1, \"a\"], [2, \"a\"], [1,\"a\"]]", "[[1]]"}},
        {"{\"type\":\"array\",\"items\":{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"string\"},{"
         "\"type\":\"null\"}]},\"uniqueItems\":true}",
         {"[1, \"1\", null, 12]", "[null]", "[\"a\", \"ab\"]"},
         {"[1, 1]", "[null, null]", "[\"a\", 1, \"a\"]", "[12, 1, 12]"}},
        /* a tree in a set: nested objects, arrays inside items */
        {"{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/T\"},\"uniqueItems\":true,\"$defs\":{"
         "\"T\":{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"},\"kids\":{"
         "\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/T\"}}},\"required\":[\"n\"]}}}",
         {"[{\"n\": 1}, {\"n\": 1, \"kids\": [{\"n\": 1}, {\"n\": 1}]}]"},
         {"[{\"n\": 1, \"kids\": [{\"n\": 1}]}, {\"n\": 1, \"kids\": [{\"n\": 1}]}]"}},
    };
    check_examples(FM_GRAMMAR_JSON_SCHEMA, all, sizeof all / sizeof *all);
}

static void check_distinct(const char *text)
{
    json_t *all = json_loads(text, 0, NULL), *sets = json_object();
    size_t  i, k;
    json_t *list, *one;
    if (!all) fail_msg("no JSON: %s", text);
    json_array_foreach(all, i, list)
    {
        json_object_clear(sets);
        json_array_foreach(list, k, one)
        {
            char *key = json_dumps(one, JSON_ENCODE_ANY);
            json_object_set(sets, key, one);
            free(key);
        }
        if (json_object_size(sets) != json_array_size(list)) fail_msg("alike: %s", text);
    }
    json_decref(all);
    json_decref(sets);
}

/* Any token that may come, and short ones above all, so that items would often be alike. */
static int draw_arrays(const char *items, uint64_t walk)
{
    fm_str      schema = {0}, text = {0};
    uint64_t    n_draw = 0;
    int         n_item = 0;
    fm_matcher *m      = NULL;
    fm_str_printf(&schema,
                  "{\"type\":\"array\",\"items\":{\"type\":\"array\",\"items\":%s,"
                  "\"uniqueItems\":true,\"maxItems\":12},\"maxItems\":4}",
                  items);
    fm_grammar *g = get(FM_GRAMMAR_JSON_SCHEMA, schema.text);
    assert_int_equal(fm_matcher_create(&m, g, NULL), FM_OK);
    for (int i = 0; i < 400 && !fm_matcher_is_over(m); i++) {
        size_t  n     = 0;
        int32_t id    = (int32_t)(fm_rng_u32(walk, n_draw++) % 128);
        int     moves = 0;
        while (!is_allowed(m, id) && moves++ < VOCAB) id = (id + 1) % VOCAB;
        assert_true(moves < VOCAB);
        assert_int_equal(fm_matcher_take(m, id), FM_OK);
        const char *bytes = fm_token_bytes(tokenizer, id, &n);
        if (!fm_token_is_special(tokenizer, id)) fm_str_add(&text, bytes, n);
        n_item += n == 1 && *bytes == ',';
    }
    if (fm_matcher_is_over(m)) check_distinct(text.text);
    fm_str_fini(&text);
    fm_str_fini(&schema);
    fm_matcher_destroy(m);
    fm_grammar_release(g);
    return n_item;
}

static void drawn_items_are_distinct(void **state)
{
    (void)state;
    static const char *const scarce[] = {
        "{\"type\":\"integer\",\"minimum\":-3,\"maximum\":12}",
        "{\"type\":\"number\"}",
        "{\"type\":\"number\",\"multipleOf\":0.5,\"minimum\":0,\"maximum\":5}",
        "{\"type\":\"string\",\"pattern\":\"^[ab]{1,3}$\"}",
        "{\"type\":\"string\",\"maxLength\":1}",
        "{\"type\":\"string\",\"pattern\":\"^2024-02-(0[1-9]|1[0-2])$\"}"};
    static const char *const values[] = {
        POINT,
        "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"boolean\"},\"b\":{\"enum\":[1,2,"
        "1.0]}}}",
        "{\"type\":\"array\",\"prefixItems\":[{\"type\":\"integer\",\"minimum\":0,\"maximum\":3},{"
        "\"type\":\"boolean\"}],\"minItems\":2,\"maxItems\":2}",
        "{\"type\":[\"integer\",\"string\",\"null\"],\"maxLength\":1}",
        "{\"oneOf\":[{\"type\":\"object\",\"properties\":{\"k\":{\"const\":\"x\"},\"v\":{\"type\":"
        "\"string\",\"pattern\":\"^[ab]{0,2}$\"}}},{\"type\":\"object\",\"properties\":{\"k\":{"
        "\"const\":\"y\"}}}]}"};
    int n_string = 0, n_integer = 0, n_scarce = 0, n_value = 0;
    for (uint64_t walk = 0; walk < 300; walk++) {
        n_string += draw_arrays("{\"type\":\"string\"}", walk);
        n_integer += draw_arrays("{\"type\":\"integer\"}", walk);
        n_scarce += draw_arrays(scarce[walk % 6], walk);
        n_value += draw_arrays(values[walk % 5], walk);
    }
    assert_true(n_string > 100 && n_integer > 100 && n_scarce > 100 && n_value > 100);
}

static void counts_properties_with_names(void **state)
{
    (void)state;
    static const example all[] = {
        {"{\"properties\":{\"a\":{\"const\":1},\"b\":{\"const\":2},\"c\":{\"const\":3}},"
         "\"minProperties\":2,\"type\":\"object\"}",
         {"{\"a\":1,\"b\":2}", "{\"b\":2, \"c\":3}", "{\"a\":1,\"c\":3}",
          "{\"a\":1,\"b\":2,\"c\":3}"},
         {"{}", "{\"a\":1}", "{\"b\":2}", "{\"c\"", "{\"a\":1,\"a\":1}"}},
        {"{\"properties\":{\"a\":{\"const\":1}},\"minProperties\":1,\"type\":\"object\"}",
         {"{\"a\":1}"},
         {"{}"}},
        {"{\"properties\":{\"a\":{\"const\":1},\"b\":{\"const\":2},\"c\":{\"const\":3}},"
         "\"maxProperties\":2,\"required\":[\"c\"],\"type\":\"object\"}",
         {"{\"c\":3}", "{\"a\":1,\"c\":3}", "{\"b\":2,\"c\":3}"},
         {"{}", "{\"a\":1,\"b\"", "{\"a\":1}"}},
        {"{\"properties\":{\"a\":{\"const\":1},\"b\":{\"const\":2}},\"maxProperties\":1,"
         "\"minProperties\":1,\"type\":\"object\"}",
         {"{\"a\":1}", "{\"b\":2}"},
         {"{}", "{\"a\":1,"}},
        {"{\"properties\":{\"a\":{\"const\":1}},\"maxProperties\":0,\"type\":\"object\"}",
         {"{}"},
         {"{\"a\""}},
    };
    check_examples(FM_GRAMMAR_JSON_SCHEMA, all, sizeof all / sizeof *all);
}

static void says_what_it_cannot_follow(void **state)
{
    (void)state;
    static const refusal all[] = {
        {FM_GRAMMAR_JSON_SCHEMA, "{\"allOf\":[]}", "allOf"},
        {FM_GRAMMAR_JSON_SCHEMA, "{\"allOf\":[{\"not\":{}},{\"type\":\"null\"}]}", "not"},
        {FM_GRAMMAR_JSON_SCHEMA, "{\"allOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}",
         "no text"},
        {FM_GRAMMAR_JSON_SCHEMA,
         "{\"allOf\":[{\"multipleOf\":0.3,\"type\":\"number\"},{\"multipleOf\":0.7}]}",
         "multipleOf"},
        {FM_GRAMMAR_JSON_SCHEMA,
         "{\"allOf\":[{\"type\":\"string\",\"format\":\"date\"},{\"format\":\"uuid\"}]}", "format"},
        {FM_GRAMMAR_JSON_SCHEMA, "{\"allOf\":[{\"$ref\":\"#\"},{\"type\":\"null\"}]}", "deep"},
        {FM_GRAMMAR_JSON_SCHEMA, "{\"enum\":[\"a\"],\"pattern\":\"a\"}", "enum together"},
        {FM_GRAMMAR_JSON_SCHEMA,
         "{\"oneOf\":[{\"properties\":{\"a\":{\"const\":1}}},{\"properties\":{\"a\":{\"type\":"
         "\"integer\"}}}]}",
         "oneOf"},
        {FM_GRAMMAR_JSON_SCHEMA, "{\"items\":{\"type\":\"object\"},\"uniqueItems\":true}",
         "uniqueItems"},
        {FM_GRAMMAR_JSON_SCHEMA,
         "{\"items\":{\"type\":\"array\",\"items\":{}},\"uniqueItems\":true}", "any type"},
        {FM_GRAMMAR_JSON_SCHEMA,
         "{\"properties\":{\"pets\":{\"items\":{\"properties\":{\"age\":{},\"n\":{\"type\":"
         "\"null\"}}},\"uniqueItems\":true}}}",
         "(property \"pets\")"},
        {FM_GRAMMAR_JSON_SCHEMA,
         "{\"items\":{\"type\":\"object\",\"properties\":{\"tags\":{\"items\":{\"type\":\"string\"}"
         ",\"uniqueItems\":true}}},\"uniqueItems\":true}",
         "(property \"tags\")"},
        {FM_GRAMMAR_JSON_SCHEMA,
         "{\"items\":{\"type\":\"object\",\"properties\":{\"p\":{\"type\":\"boolean\"}},"
         "\"required\":[\"p\"]},\"uniqueItems\":true,\"minItems\":3}",
         "minItems"},
        {FM_GRAMMAR_JSON_SCHEMA,
         "{\"items\":{\"type\":\"string\",\"pattern\":\"^[ab]$\"},\"uniqueItems\":true,"
         "\"minItems\":3}",
         "uniqueItems"},
        {FM_GRAMMAR_JSON_SCHEMA, "{\"type\":\"array\",\"uniqueItems\":true}", "uniqueItems"},
        {FM_GRAMMAR_JSON_SCHEMA, "{\"items\":{\"enum\":[1,2]},\"uniqueItems\":true,\"minItems\":3}",
         "no text"},
        {FM_GRAMMAR_JSON_SCHEMA, "{\"uniqueItems\":5}", "uniqueItems"},
        {FM_GRAMMAR_JSON_SCHEMA, "{\"minProperties\":2}", "minProperties"},
        {FM_GRAMMAR_JSON_SCHEMA, "{\"properties\":{\"a\":{}},\"minProperties\":2}",
         "minProperties"},
        {FM_GRAMMAR_JSON_SCHEMA, "{\"properties\":{\"a\":{}},\"propertyNames\":{}}",
         "propertyNames"},
        {FM_GRAMMAR_JSON_SCHEMA, "{\"patternProperties\":{\"a\":{},\"b\":{}}}",
         "patternProperties"},
    };
    check_refusals(all, sizeof all / sizeof *all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unions),
        cmocka_unit_test(all_of),
        cmocka_unit_test(maps),
        cmocka_unit_test(unique_items),
        cmocka_unit_test(unique_values),
        cmocka_unit_test(counts_properties_with_names),
        cmocka_unit_test(drawn_items_are_distinct),
        cmocka_unit_test(says_what_it_cannot_follow),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
