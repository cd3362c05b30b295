/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked and what is understood, in each wire format. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../app/bench_online.h"

static json_t *body_of(const char *backend, fm_wire_options o)
{
    int32_t           token[] = {5, 6, 7};
    const fm_data_row row     = {.token = token, .n_prompt = 3};
    fm_str            text    = {0};
    assert_int_equal(fm_wire_body(&text, fm_wire_find(backend), &o, &row, 9), FM_OK);
    json_t *v = json_loads(text.text, 0, NULL);
    assert_non_null(v);
    fm_str_fini(&text);
    return v;
}

static void equal(json_t *got, const char *want)
{
    json_t *w = json_loads(want, 0, NULL);
    if (!json_equal(got, w)) fail_msg("%s\nwant %s", json_dumps(got, 0), want);
    json_decref(w);
    json_decref(got);
}

static void requests(void **state)
{
    (void)state;
    const fm_wire_options o = {.model = "m", .top_p = 1, .ignore_eos = 1, .stream = 1};
    equal(
        body_of("sglang", o),
        "{\"input_ids\": [5, 6, 7], \"stream\": true, \"sampling_params\": {\"temperature\": 0.0, "
        "\"top_p\": 1.0, \"max_new_tokens\": 9, \"ignore_eos\": true}}");
    equal(body_of("sglang-oai", o),
          "{\"model\": \"m\", \"prompt\": [5, 6, 7], \"max_tokens\": 9, \"temperature\": 0.0, "
          "\"top_p\": 1.0, \"ignore_eos\": true, \"stream\": true, "
          "\"stream_options\": {\"include_usage\": true}}");
    fm_wire_options whole = {
        .model = "m", .top_p = 1, .extra = "{\"top_p\": 0.5, \"user\": \"u\"}"};
    equal(body_of("vllm", whole),
          "{\"model\": \"m\", \"prompt\": [5, 6, 7], \"max_tokens\": 9, \"temperature\": 0.0, "
          "\"top_p\": 0.5, \"ignore_eos\": false, \"stream\": false, \"user\": \"u\"}");
    assert_null(fm_wire_find("trt"));
    assert_string_equal(fm_wire_path(fm_wire_find("vllm-chat")), "/v1/chat/completions");
}

static void a_bad_extra_body_is_named(void **state)
{
    (void)state;
    const fm_data_row row = {0};
    for (int i = 0; i < 2; i++) {
        const fm_wire_options o    = {.model = "m", .extra = i ? "[1]" : "{"};
        fm_str                text = {0};
        assert_int_not_equal(fm_wire_body(&text, fm_wire_find("sglang"), &o, &row, 1), FM_OK);
        assert_non_null(strstr(fm_why(), "--extra-request-body"));
        assert_null(text.text);
    }
}

/* Feeds events 10 ms apart, the first at 0.1 s. */
static fm_online_answer read_all(const char *backend, const char *const *event)
{
    fm_online_answer a = {.sent = 1};
    for (int i = 0; event[i]; i++)
        fm_wire_read(fm_wire_find(backend), &a, event[i], strlen(event[i]), 1.1 + 0.01 * i);
    fm_wire_end(fm_wire_find(backend), &a);
    return a;
}

static void check(fm_online_answer a, const char *text, int n_output, int n_itl, const char *finish)
{
    if (a.error) fail_msg("%s", a.error);
    assert_string_equal(a.text.text, text);
    assert_int_equal(a.n_output, n_output);
    assert_int_equal(a.n_itl, n_itl);
    assert_string_equal(a.finish, finish);
    assert_true(fabs(a.ttft - 0.1) < 1e-9);
    fm_online_answer_fini(&a);
}

static void native_cumulative(void **state)
{
    (void)state;
    static const char *const e[] = {
        "{\"text\": \"a\", \"output_ids\": [1], \"meta_info\": {\"completion_tokens\": 1, "
        "\"finish_reason\": null}}",
        "{\"text\": \"abc\", \"output_ids\": [1,2,3], \"meta_info\": {\"completion_tokens\": 3, "
        "\"finish_reason\": null}}",
        "{\"text\": \"abc\", \"output_ids\": [1,2,3], \"meta_info\": {\"completion_tokens\": 3, "
        "\"finish_reason\": {\"type\": \"length\"}}}",
        "[DONE]", NULL};
    fm_online_answer a = read_all("sglang", e);
    assert_int_equal(a.n_id, 3);
    assert_int_equal(a.id[2], 3);
    check(a, "abc", 3, 2, "length");
}

static void native_incremental(void **state)
{
    (void)state;
    static const char *const e[] = {
        "{\"text\": \"a\", \"output_ids\": [1], \"meta_info\": {\"completion_tokens\": 1}}",
        "{\"text\": \"bc\", \"output_ids\": [2,3], \"meta_info\": {\"completion_tokens\": 3}}",
        "{\"text\": \"d\", \"output_ids\": [4], \"meta_info\": {\"completion_tokens\": 4, "
        "\"finish_reason\": {\"type\": \"stop\"}}}",
        NULL};
    fm_online_answer a = read_all("sglang", e);
    assert_int_equal(a.n_id, 4);
    assert_int_equal(a.id[3], 4);
    check(a, "abcd", 4, 3, "stop");
}

/* A stream that breaks off leaves what its last event said. */
static void native_cut_short(void **state)
{
    (void)state;
    static const char *const e[] = {
        "{\"text\":\"a\",\"output_ids\":[1],\"meta_info\":{\"finish_reason\":null,"
        "\"completion_tokens\":1}}",
        "{\"text\":\"ab\",\"output_ids\":[1,2],\"meta_info\":{\"finish_reason\":null,"
        "\"completion_tokens\":2}}",
        NULL};
    fm_online_answer a = read_all("sglang", e);
    assert_int_equal(a.n_id, 2);
    check(a, "ab", 2, 1, "");
}

/* Events in which only the token count is needed, and events that have to be parsed. */
static void skimmed_events(void **state)
{
    (void)state;
    static const struct {
        const char *event;
        int         n, has_text;
    } all[] = {
        {"{\"text\": \"a\", \"output_ids\": [1, 2], \"meta_info\": {\"finish_reason\": null, "
         "\"completion_tokens\": 2}}", 2, 1},
        {"{\"meta_info\":{\"completion_tokens\":12,\"finish_reason\":null},\"text\":\"\"}", 12, 0},
        {"{\"text\":\"say \\\"completion_tokens\\\": 9, \\\"finish_reason\\\": {\",\"output_ids\":"
         "[4],\"meta_info\":{\"finish_reason\":null,\"completion_tokens\":1}}", 1, 1},
        {"{\"text\":\"completion_tokens\",\"completion_tokens\":3,\"finish_reason\":null}", 3, 1},
        {"{\"text\":\"b\",\"output_ids\":[2],\"meta_info\":{\"finish_reason\":null,"
         "\"completion_tokens\":2}}", -1, 0},
        {"{\"text\":\"b\",\"output_ids\":[ ],\"meta_info\":{\"finish_reason\":null,"
         "\"completion_tokens\":1}}", -1, 0},
        {"{\"text\":\"b\",\"output_ids\":7,\"finish_reason\":null,\"completion_tokens\":1}", -1, 0},
        {"{\"text\":\"b\",\"output_ids\":[7,\"finish_reason\":null,\"completion_tokens\":1}", -1, 0},
        {"{\"text\":\"a\",\"finish_reason\":{\"type\":\"stop\"},\"completion_tokens\":1}", -1, 0},
        {"{\"text\":\"a\",\"finish_reason\":null,\"completion_tokens\":-1}", -1, 0},
        {"{\"text\":\"a\",\"finish_reason\":null,\"completion_tokens\":12345678901}", -1, 0},
        {"{\"text\":null,\"finish_reason\":null,\"completion_tokens\":1}", -1, 0},
        {"{\"text\":\"a\",\"completion_tokens\":1}", -1, 0},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        int has_text = 0;
        assert_int_equal(fm_skim_native(all[i].event, strlen(all[i].event), &has_text), all[i].n);
        if (all[i].n >= 0) assert_int_equal(has_text, all[i].has_text);
    }
}

/* Nothing beyond the event's last byte is looked at, wherever it is cut. */
static void skimming_stays_inside(void **state)
{
    (void)state;
    static const char whole[] =
        "{\"text\": \"a\", \"output_ids\": [1, 2], \"meta_info\": {\"finish_reason\": null, "
        "\"completion_tokens\": 2}}";
    for (size_t n = 0; n < sizeof whole - 1; n++) {
        char *cut      = malloc(n + 1);
        int   has_text = 0;
        assert_non_null(cut);
        memcpy(cut, whole, n);
        if (n) cut[n - 1] = '}';
        char *exact = realloc(cut, n ? n : 1);
        assert_non_null(exact);
        if (n + 1 < sizeof whole - 1) assert_int_equal(fm_skim_native(exact, n, &has_text), -1);
        free(exact);
    }
}

static void completions(void **state)
{
    (void)state;
    static const char *const e[] = {
        "{\"choices\": [{\"text\": \"x\", \"finish_reason\": null}]}",
        "{\"choices\": [{\"text\": \"y\", \"finish_reason\": \"stop\"}]}",
        "{\"choices\": [], \"usage\": {\"completion_tokens\": 5}}", "[DONE]", NULL};
    check(read_all("sglang-oai", e), "xy", 5, 1, "stop");
    static const char *const uncounted[] = {
        "{\"choices\": [{\"text\": \"x\"}]}",
        "{\"choices\": [{\"text\": \"y\", \"finish_reason\": \"length\"}], \"usage\": null}",
        "[DONE]", NULL};
    check(read_all("sglang-oai", uncounted), "xy", 2, 1, "length");
}

static void chats(void **state)
{
    (void)state;
    static const char *const e[] = {"{\"choices\": [{\"delta\": {\"reasoning_content\": \"hm\"}}], "
                                    "\"usage\": {\"completion_tokens\": 2}}",
                                    "{\"choices\": [{\"delta\": {\"content\": \"yes\"}}], "
                                    "\"usage\": {\"completion_tokens\": 5}}",
                                    "{\"choices\": [{\"delta\": {}, \"finish_reason\": \"stop\"}]}",
                                    "[DONE]", NULL};
    check(read_all("sglang-oai-chat", e), "hmyes", 5, 3, "stop");
    static const char *const whole[] = {
        "{\"choices\": [{\"message\": {\"content\": \"yes\"}, \"finish_reason\": \"stop\"}], "
        "\"usage\": {\"completion_tokens\": 4}}",
        NULL};
    check(read_all("vllm-chat", whole), "yes", 4, 0, "stop");
}

static void errors_and_garbage(void **state)
{
    (void)state;
    static const char *const bad[] = {"{\"error\": {\"message\": \"out of patience\"}}",
                                      "{\"error\": \"out of patience\"}",
                                      "{\"text\": 5",
                                      "",
                                      "\xff\xfe",
                                      NULL};
    for (int i = 0; bad[i]; i++) {
        const char *const one[] = {bad[i], NULL};
        fm_online_answer  a     = read_all("sglang", one);
        assert_non_null(a.error);
        if (i < 2) assert_string_equal(a.error, "out of patience");
        fm_online_answer_fini(&a);
    }
    static const char *const odd[] = {
        "[]",
        "7",
        "{}",
        "{\"text\": 5, \"output_ids\": {}, \"meta_info\": []}",
        "{\"choices\": 3}",
        "{\"choices\": [[]]}",
        "{\"choices\": [{\"delta\": 1, \"text\": null}], \"usage\": {\"completion_tokens\": -4}}",
        NULL};
    static const char *const wires[] = {"sglang", "sglang-oai", "sglang-oai-chat"};
    for (int w = 0; w < 3; w++) {
        fm_online_answer a = read_all(wires[w], odd);
        assert_int_equal(a.n_output, 0);
        assert_int_equal(a.n_itl, 0);
        fm_online_answer_fini(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests),           cmocka_unit_test(a_bad_extra_body_is_named),
        cmocka_unit_test(native_cumulative),  cmocka_unit_test(native_incremental),
        cmocka_unit_test(native_cut_short),   cmocka_unit_test(skimmed_events),
        cmocka_unit_test(skimming_stays_inside),
        cmocka_unit_test(completions),        cmocka_unit_test(chats),
        cmocka_unit_test(errors_and_garbage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
