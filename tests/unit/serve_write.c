/* SPDX-License-Identifier: Apache-2.0 */
/* JSON on its way out: whatever goes in, what comes out parses and says the same. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "json/read.h"
#include "llm/serve/reply/metrics.h"
#include "llm/serve/reply/write.h"

static json_t *parse(const fm_str *s)
{
    json_t *v = json_loadb(s->text, s->len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    if (!v) fail_msg("not JSON: %s", s->text);
    return v;
}

static void test_text_comes_back(void **state)
{
    (void)state;
    static const char *const part[] = {"a", "\"", "\\", "\n", "\t",       "\x01", "\x7f",
                                       "é", "世", "😀",  "/",  "</think>", "\x1f"};
    for (uint64_t seed = 0; seed < 2000; seed++) {
        fm_str in = {0}, out = {0};
        for (uint64_t i = 0, n = fm_rng_u32(seed, 0) % 20; i < n; i++)
            fm_str_puts(&in, part[fm_rng_u32(seed, i + 1) % (sizeof part / sizeof part[0])]);
        if (seed % 7 == 0) fm_str_add(&in, "\0x", 2);
        fm__put_text(&out, in.text ? in.text : "", in.len);
        json_t *v = parse(&out);
        assert_int_equal(json_string_length(v), in.len);
        if (in.len) assert_memory_equal(json_string_value(v), in.text, in.len);
        json_decref(v);
        fm_str_fini(&in);
        fm_str_fini(&out);
    }
}

static void test_bad_bytes_are_replaced(void **state)
{
    (void)state;
    static const struct {
        const char *in, *out;
    } pair[] = {{"a\xff", "a\xef\xbf\xbd"},
                {"\xe4\xb8", "\xef\xbf\xbd\xef\xbf\xbd"},
                {"\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd"},
                {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
                {"\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}};
    for (size_t i = 0; i < sizeof pair / sizeof pair[0]; i++) {
        fm_str out = {0};
        assert_false(fm__is_utf8(pair[i].in, strlen(pair[i].in)));
        fm__put_text(&out, pair[i].in, strlen(pair[i].in));
        json_t *v = parse(&out);
        assert_string_equal(json_string_value(v), pair[i].out);
        json_decref(v);
        fm_str_fini(&out);
    }
    for (uint64_t seed = 0; seed < 5000; seed++) { /* any bytes */
        char   in[16];
        fm_str out = {0};
        for (uint64_t i = 0; i < sizeof in; i++) in[i] = (char)fm_rng_u32(seed, i);
        fm__put_text(&out, in, sizeof in);
        json_decref(parse(&out));
        fm_str_fini(&out);
    }
}

static void test_numbers(void **state)
{
    (void)state;
    static const double in[] = {0, -1.5, 1e-9, INFINITY, -INFINITY, NAN, 1e308};
    for (size_t i = 0; i < sizeof in / sizeof in[0]; i++) {
        fm_str out = {0};
        fm__put_number(&out, in[i]);
        json_t *v = parse(&out);
        if (isfinite(in[i]) && fabs(in[i]) < 1e300) assert_true(json_number_value(v) == in[i]);
        json_decref(v);
        fm_str_fini(&out);
    }
}

static void test_error_names_the_field(void **state)
{
    (void)state;
    static const struct {
        const char *why, *param;
    } pair[] = {{"request: top_p is 2, must be below", "top_p"},
                {"request: messages[3].role: expected", "messages[3].role"},
                {"request: the prompt is empty", NULL},
                {"request: expected a JSON object", NULL},
                {"the queue is full", NULL}};
    for (size_t i = 0; i < sizeof pair / sizeof pair[0]; i++) {
        fm_str out = {0};
        fm__put_error(&out, 400, pair[i].why);
        json_t     *v = parse(&out), *e = json_object_get(v, "error");
        const char *param = json_string_value(json_object_get(e, "param"));
        if (pair[i].param) assert_string_equal(param, pair[i].param);
        else assert_null(param);
        assert_string_equal(json_string_value(json_object_get(e, "message")), pair[i].why);
        assert_int_equal(json_integer_value(json_object_get(v, "code")), 400);
        json_decref(v);
        fm_str_fini(&out);
    }
}

static void test_histogram(void **state)
{
    (void)state;
    fm__metrics      m;
    fm__engine_state s   = {0};
    fm_str           out = {0};
    fm__metrics_init(&m);
    fm__histogram_add(&m.ttft, 0.1, 1); /* on the bound: inside */
    fm__histogram_add(&m.ttft, 0.15, 2);
    fm__histogram_add(&m.ttft, 1e9, 1);
    fm__put_metrics(&out, &m, &s, "fathom", "a\"b\\c", 10);
    assert_non_null(strstr(
        out.text,
        "time_to_first_token_seconds_bucket{model_name=\"a\\\"b\\\\c\",engine_type=\"unified\","
        "tp_rank=\"0\",pp_rank=\"0\",le=\"0.1\"} 1\n"));
    assert_non_null(strstr(out.text, "le=\"0.2\"} 3\n"));
    assert_non_null(strstr(out.text, "le=\"+Inf\"} 4\n"));
    fm_str_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_comes_back), cmocka_unit_test(test_bad_bytes_are_replaced),
        cmocka_unit_test(test_numbers),         cmocka_unit_test(test_error_names_the_field),
        cmocka_unit_test(test_histogram),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
