/* SPDX-License-Identifier: Apache-2.0 */
/* Marks of fathom eval: what counts as formed, what as right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "app/eval.h"

#define CALL(name, args)                                                                           \
    "<｜tool▁call▁begin｜>function<｜tool▁sep｜>" name "\n```json\n" args "\n```<｜tool▁call▁end｜>"
#define CALLS(inside) "<｜tool▁calls▁begin｜>" inside "<｜tool▁calls▁end｜>"

enum { NOTHING, FORMED, RIGHT };

static int marked(const char *check, const char *tools, const char *answer)
{
    fm_eval_item it = {.finish = FM_FINISH_STOP};
    it.check        = json_loads(check, 0, NULL);
    it.tools        = tools ? json_loads(tools, 0, NULL) : NULL;
    assert_non_null(it.check);
    fm_str_puts(&it.answer, answer);
    fm_eval_mark(&it);
    json_decref(it.check);
    json_decref(it.tools);
    fm_str_fini(&it.answer);
    if (it.is_right) assert_true(it.is_formed);
    return it.is_right ? RIGHT : it.is_formed ? FORMED : NOTHING;
}

static void numbers(void **state)
{
    (void)state;
    const char *want = "{\"kind\": \"number\", \"value\": -12}";
    assert_int_equal(marked(want, NULL, "3 - 15\n</think>\n\n3 - 15 = -12"), RIGHT);
    assert_int_equal(marked(want, NULL, "-12"), RIGHT);
    assert_int_equal(marked(want, NULL, "= 12"), FORMED);
    assert_int_equal(marked(want, NULL, "20-12"), FORMED);
    assert_int_equal(marked(want, NULL, "-12 or 13"), FORMED);
    assert_int_equal(marked(want, NULL, "-12\n</think>\n\nI do not know"), NOTHING);
    assert_int_equal(marked(want, NULL, "99999999999999999999999999999"), NOTHING);
    assert_int_equal(marked(want, NULL, ""), NOTHING);
}

static void texts(void **state)
{
    (void)state;
    assert_int_equal(marked("{\"kind\": \"text\", \"value\": \"olleh\"}", NULL, "x</think>\n olleh\n"),
                     RIGHT);
    assert_int_equal(marked("{\"kind\": \"text\", \"value\": \"olleh\"}", NULL, "olleh."), FORMED);
    assert_int_equal(marked("{\"kind\": \"contains\", \"value\": \"Oslo\"}", NULL, "It is Oslo."),
                     RIGHT);
    assert_int_equal(marked("{\"kind\": \"contains\", \"value\": \"Oslo\"}", NULL, "It is Rome."),
                     FORMED);
    assert_int_equal(marked("{\"kind\": \"prose\"}", NULL, "The end."), RIGHT);
    assert_int_equal(marked("{\"kind\": \"prose\"}", NULL, "The"), FORMED);
}

static void objects(void **state)
{
    (void)state;
    const char *want = "{\"kind\": \"json\", \"value\": {\"name\": \"Ida\", \"age\": 7, \"in\": true}}";
    assert_int_equal(marked(want, NULL, "{\"age\": 7, \"name\": \"Ida\", \"in\": true}"), RIGHT);
    assert_int_equal(marked(want, NULL, "{\"age\": 8, \"name\": \"Ida\", \"in\": false}"), FORMED);
    assert_int_equal(marked(want, NULL, "{\"age\": \"7\", \"name\": \"Ida\", \"in\": true}"), NOTHING);
    assert_int_equal(marked(want, NULL, "{\"age\": 7, \"name\": \"Ida\"}"), NOTHING);
    assert_int_equal(marked(want, NULL, "{\"age\": 7, \"age\": 7, \"name\": \"Ida\", \"in\": true}"),
                     NOTHING);
    assert_int_equal(marked(want, NULL, "{\"age\": 7, \"name\": \"Ida\", \"in\": true} ok"), NOTHING);
    assert_int_equal(marked(want, NULL, "[1, 2"), NOTHING);
}

static void calls(void **state)
{
    (void)state;
    const char *tools = "[{\"function\": {\"name\": \"calc\"}}, {\"function\": {\"name\": \"rain\"}}]";
    const char *one   = "{\"kind\": \"call\", \"value\": [[\"calc\", {\"e\": \"1\"}]]}";
    const char *two =
        "{\"kind\": \"call\", \"value\": [[\"calc\", {\"e\": \"1\"}], [\"rain\", {}]]}";
    assert_int_equal(marked(one, tools, "yes</think>\n\n" CALLS(CALL("calc", "{\"e\": \"1\"}"))), RIGHT);
    assert_int_equal(marked(one, tools, CALLS(CALL("calc", "{\"e\": \"2\"}"))), FORMED);
    assert_int_equal(marked(one, tools, CALLS(CALL("other", "{\"e\": \"1\"}"))), NOTHING);
    assert_int_equal(marked(one, tools, CALLS(CALL("calc", "{\"e\": ")) ), NOTHING);
    assert_int_equal(marked(one, tools, CALLS(CALL("calc", "7"))), NOTHING);
    assert_int_equal(marked(one, tools, CALLS("")), NOTHING);
    assert_int_equal(marked(one, tools, CALLS(CALL("calc", "{\"e\": \"1\"}")) " more"), NOTHING);
    assert_int_equal(marked(one, tools, CALLS(CALL("calc", "{\"e\": \"1\"}") "\n")), NOTHING);
    assert_int_equal(
        marked(two, tools, CALLS(CALL("calc", "{\"e\": \"1\"}") "\n" CALL("rain", "{}"))), RIGHT);
    assert_int_equal(marked(one, tools, "1"), NOTHING);
}

static void an_answer_cut_short_is_nothing(void **state)
{
    (void)state;
    fm_eval_item it = {.finish = FM_FINISH_LENGTH,
                       .check  = json_loads("{\"kind\": \"prose\"}", 0, NULL)};
    fm_str_puts(&it.answer, "The end.");
    fm_eval_mark(&it);
    assert_false(it.is_formed || it.is_right);
    json_decref(it.check);
    fm_str_fini(&it.answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers), cmocka_unit_test(texts), cmocka_unit_test(objects),
        cmocka_unit_test(calls),   cmocka_unit_test(an_answer_cut_short_is_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
