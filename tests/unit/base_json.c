/* SPDX-License-Identifier: Apache-2.0 */
/* Reading strangers' JSON: each complaint names the file and the field. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "json/read.h"

static const fm_json_at at = {"config.json", "rope."};

static json_t *parse(const char *text)
{
    json_t *v = NULL;
    if (fm_json_parse(&v, text, strlen(text), "x.json") != FM_OK) fail_msg("%s", fm_why());
    return v;
}

static void says(fm_status rc, const char *what)
{
    assert_int_equal(rc, FM_E_FORMAT);
    if (!strstr(fm_why(), what)) fail_msg("\"%s\" does not say \"%s\"", fm_why(), what);
}

static void broken_text(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",    " ",     "{",                  "[1,]",       "{\"a\":1,}",    "{\"a\":1}x",
        "nul", "\"s\"", "{\"a\":1,\"a\":2}", "[\"\xff\"]", "[\"\\ud800\"]", "[1e999]",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        json_t *v = NULL;
        says(fm_json_parse(&v, bad[i], strlen(bad[i]), "x.json"), "x.json");
        assert_null(v);
    }
    json_t *v = NULL;
    says(fm_json_parse(&v, "[1,\n2,\nx]", 9, "x.json"), "line 3");
    says(fm_json_parse(&v, NULL, 0, "x.json"), "x.json");
}

static void nesting_is_bounded(void **state)
{
    (void)state;
    const size_t n    = 1000000;
    char        *deep = malloc(n);
    json_t      *v    = NULL;
    memset(deep, '[', n);
    says(fm_json_parse(&v, deep, n, "x.json"), "nested deeper");
    for (int i = 0; i < FM_JSON_MAX_DEPTH; i++) deep[FM_JSON_MAX_DEPTH + i] = ']';
    assert_int_equal(fm_json_parse(&v, deep, 2 * FM_JSON_MAX_DEPTH, "x.json"), FM_OK);
    json_decref(v);
    free(deep);

    v = parse("[\"[[[[\\\"[[[[\"]"); /* brackets in strings do not count */
    json_decref(v);
}

static void files(void **state)
{
    (void)state;
    json_t *v = NULL;
    assert_int_equal(fm_json_load(&v, "/nonexistent/x.json"), FM_E_IO);
    assert_non_null(strstr(fm_why(), "/nonexistent/x.json"));
    assert_int_equal(fm_json_load(&v, "/tmp"), FM_E_IO);
    assert_null(v);
}

static void integers(void **state)
{
    (void)state;
    json_t *o = parse("{\"n\":5, \"w\":40.0, \"r\":1.5, \"s\":\"5\", \"z\":null, \"b\":true}");
    int64_t i = -1;
    assert_int_equal(fm_json_int(&i, o, "n", 5, 5, at), FM_OK);
    assert_int_equal(i, 5);
    assert_int_equal(fm_json_int(&i, o, "w", 0, 99, at), FM_OK);
    assert_int_equal(i, 40);
    says(fm_json_int(&i, o, "n", 6, 9, at), "config.json: rope.n is 5, must be between 6 and 9");
    says(fm_json_int(&i, o, "n", 0, 4, at), "rope.n");
    says(fm_json_int(&i, o, "r", 0, 9, at), "rope.r: expected an integer, found a number");
    says(fm_json_int(&i, o, "s", 0, 9, at), "rope.s: expected an integer, found a string");
    says(fm_json_int(&i, o, "b", 0, 9, at), "found a boolean");
    says(fm_json_int(&i, o, "z", 0, 9, at), "found null");
    says(fm_json_int(&i, o, "q", 0, 9, at), "rope.q is missing");
    assert_int_equal(i, 40); /* failures write nothing */

    assert_int_equal(fm_json_opt_int(&i, o, "q", 0, 9, at), FM_OK);
    assert_int_equal(fm_json_opt_int(&i, o, "z", 0, 9, at), FM_OK);
    assert_int_equal(i, 40);
    says(fm_json_opt_int(&i, o, "s", 0, 9, at), "rope.s");
    json_decref(o);
}

static void other_kinds(void **state)
{
    (void)state;
    json_t     *o = parse("{\"n\":5, \"r\":1.5, \"s\":\"five\", \"b\":true, \"a\":[], \"o\":{}}");
    double      x = -1;
    int         b = -1;
    const char *s = NULL;
    assert_int_equal(fm_json_real(&x, o, "r", 0, 2, at), FM_OK);
    assert_true(x == 1.5);
    assert_int_equal(fm_json_real(&x, o, "n", 0, 5, at), FM_OK);
    assert_true(x == 5);
    says(fm_json_real(&x, o, "r", 0, 1, at), "rope.r is 1.5, must be between 0 and 1");
    says(fm_json_real(&x, o, "s", 0, 1, at), "expected a number, found a string");
    assert_int_equal(fm_json_bool(&b, o, "b", at), FM_OK);
    assert_int_equal(b, 1);
    says(fm_json_bool(&b, o, "n", at), "expected true or false, found an integer");
    assert_int_equal(fm_json_string(&s, o, "s", at), FM_OK);
    assert_string_equal(s, "five");
    says(fm_json_string(&s, o, "a", at), "expected a string, found an array");
    says(fm_json_string(&s, o, "o", at), "found an object");
    assert_int_equal(fm_json_opt_real(&x, o, "q", 0, 1, at), FM_OK);
    assert_int_equal(fm_json_opt_bool(&b, o, "q", at), FM_OK);
    assert_int_equal(fm_json_opt_string(&s, o, "q", at), FM_OK);
    assert_true(x == 5 && b == 1 && strcmp(s, "five") == 0);
    json_decref(o);
}

/* A value that is no object has no members. */
static void members_of_something_else(void **state)
{
    (void)state;
    json_t *v = parse("[1, 2]");
    int64_t i = 0;
    says(fm_json_int(&i, v, "n", 0, 9, at), "rope.n is missing");
    says(fm_json_int(&i, NULL, "n", 0, 9, at), "rope.n is missing");
    json_decref(v);
}

static void integers_that_64_bits_do_not_hold(void **state)
{
    (void)state;
    static const char text[] =
        "{\"a\": 18446744073709551615, \"b\": -99999999999999999999, \"c\": 7,"
        " \"d\": \"99999999999999999999 \\\" 99999999999999999999\","
        " \"e\": [9223372036854775807, 9223372036854775808, 1.5e3]}";
    json_t *v = NULL;
    int64_t i = 0;
    assert_int_equal(fm_json_parse(&v, text, strlen(text), "t"), FM_OK);
    assert_true(json_number_value(json_object_get(v, "a")) == 0x1p64);
    assert_string_equal(json_string_value(json_object_get(v, "d")),
                        "99999999999999999999 \" 99999999999999999999");
    assert_true(json_number_value(json_array_get(json_object_get(v, "e"), 1)) == 0x1p63);
    assert_int_equal(fm_json_int(&i, v, "c", 0, 9, (fm_json_at){"t", ""}), FM_OK);
    assert_int_equal(i, 7); /* those beside them stay integers */
    assert_int_equal(fm_json_int(&i, v, "b", 0, 9, (fm_json_at){"t", ""}), FM_E_FORMAT);
    assert_non_null(strstr(fm_why(), "t: b is -100000000000000000000, must be between 0 and 9"));
    json_decref(v);
    assert_int_equal(fm_json_parse(&v, "[99999999999999999999", 21, "t"), FM_E_FORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broken_text),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(files),
        cmocka_unit_test(integers),
        cmocka_unit_test(other_kinds),
        cmocka_unit_test(members_of_something_else),
        cmocka_unit_test(integers_that_64_bits_do_not_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
