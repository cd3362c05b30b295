/* SPDX-License-Identifier: Apache-2.0 */
/* The store of responses: found by id, the oldest make way, all is given back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "llm/serve/loop/responses_store.h"

static fm__responses *store;

static int open_store(void **state)
{
    (void)state;
    return fm__responses_create(&store);
}

static int close_store(void **state)
{
    (void)state;
    fm__responses_destroy(store);
    return 0;
}

static void put(const char *id, const char *object, const char *turns)
{
    fm_str a = {0}, b = {0};
    fm_str_puts(&a, object);
    fm_str_puts(&b, turns);
    fm__responses_put(store, id, &a, &b);
    fm_str_fini(&a);
    fm_str_fini(&b);
}

static void holds(const char *id, const char *object, const char *turns)
{
    fm_str a = {0}, b = {0};
    assert_true(fm__responses_get(store, id, &a, &b));
    assert_string_equal(a.text, object);
    assert_string_equal(b.text, turns);
    fm_str_fini(&a);
    fm_str_fini(&b);
}

static void by_id(void **state)
{
    (void)state;
    put("a", "{1}", "[1]");
    put("b", "{2}", "[2]");
    holds("a", "{1}", "[1]");
    put("a", "{3}", "[3]"); /* takes the place of the other */
    holds("a", "{3}", "[3]");
    holds("b", "{2}", "[2]");
    assert_true(fm__responses_drop(store, "b"));
    assert_false(fm__responses_drop(store, "b"));
    assert_false(fm__responses_get(store, "b", NULL, NULL));
    assert_true(fm__responses_get(store, "a", NULL, NULL));
}

static void the_oldest_make_way_for_many(void **state)
{
    char id[16];
    (void)state;
    for (int i = 0; i < FM__MAX_RESPONSES + 10; i++) {
        snprintf(id, sizeof id, "r%d", i);
        put(id, "{}", "[]");
    }
    assert_false(fm__responses_get(store, "r9", NULL, NULL));
    assert_true(fm__responses_get(store, "r10", NULL, NULL));
    assert_true(fm__responses_get(store, id, NULL, NULL));
}

static void and_for_large_ones(void **state)
{
    const size_t most = FM__MAX_RESPONSE_BYTES;
    char        *half = malloc(most + 2);
    (void)state;
    memset(half, 'x', most + 1);
    half[most + 1] = 0;
    put("huge", half, "");
    assert_false(fm__responses_get(store, "huge", NULL, NULL));
    half[most / 2] = 0;
    put("a", half, "");
    put("b", half, "");
    assert_true(fm__responses_get(store, "a", NULL, NULL));
    put("c", "{}", "[]");
    assert_false(fm__responses_get(store, "a", NULL, NULL));
    assert_true(fm__responses_get(store, "b", NULL, NULL));
    assert_true(fm__responses_get(store, "c", NULL, NULL));
    free(half);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(by_id, open_store, close_store),
        cmocka_unit_test_setup_teardown(the_oldest_make_way_for_many, open_store, close_store),
        cmocka_unit_test_setup_teardown(and_for_large_ones, open_store, close_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
