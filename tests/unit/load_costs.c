/* SPDX-License-Identifier: Apache-2.0 */
/* When a prefix is loaded from a lower tier instead of being computed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "llm/tier_policy/costs.h"

enum { HOST, FILES };
enum { PAGE = 64 }; /* tokens */

/* Computing: 1 ms a token.  Loading: as given, per page. */
static fm_load_costs measured(double host, double files)
{
    fm_load_costs c = {0};
    fm_load_costs_computed(&c, 1000, 1.0);
    fm_load_costs_loaded(&c, HOST, 10, 10 * host);
    fm_load_costs_loaded(&c, FILES, 10, 10 * files);
    return c;
}

static void the_cheaper_way_is_taken(void **state)
{
    (void)state;
    fm_load_costs c = measured(0.001, 0.5); /* a page is computed in 64 ms */
    assert_true(fm_load_pays(&c, HOST, 4, 4 * PAGE));
    assert_false(fm_load_pays(&c, FILES, 4, 4 * PAGE));
}

/* Pages that hold few tokens are as dear to load as full ones. */
static void tokens_are_compared_with_pages(void **state)
{
    (void)state;
    fm_load_costs c = measured(0.060, 0.060);
    assert_true(fm_load_pays(&c, HOST, 8, 8 * PAGE));
    assert_false(fm_load_pays(&c, HOST, 8, 7 * PAGE));
}

static void short_prefixes_are_computed(void **state)
{
    (void)state;
    fm_load_costs c = measured(1e-6, 1e-6);
    assert_false(fm_load_pays(&c, HOST, 1, 16));
    assert_true(fm_load_pays(&c, HOST, 1, 32));
}

static void what_is_unknown_is_tried(void **state)
{
    (void)state;
    fm_load_costs c = {0};
    assert_true(fm_load_pays(&c, FILES, 1, PAGE));
    fm_load_costs_computed(&c, 1000, 1e-3); /* loading is unknown still */
    assert_true(fm_load_pays(&c, FILES, 1, PAGE));
    assert_true(fm_load_pays(&c, HOST, 1, PAGE));
}

/* A disk that was busy once is not given up for ever. */
static void a_slow_tier_is_tried_again(void **state)
{
    (void)state;
    fm_load_costs c          = measured(1, 1);
    int           n_declined = 0;
    while (n_declined < 1000 && !fm_load_pays(&c, FILES, 1, PAGE)) n_declined++;
    assert_in_range(n_declined, 8, 256);
    for (int i = 0; i < 40; i++) fm_load_costs_loaded(&c, FILES, 1, 0.001); /* it has recovered */
    assert_true(fm_load_pays(&c, FILES, 1, PAGE));
    assert_true(fm_load_pays(&c, FILES, 1, PAGE));
}

static void one_slow_load_does_not_decide(void **state)
{
    (void)state;
    fm_load_costs c = measured(0.001, 0.001);
    fm_load_costs_loaded(&c, HOST, 1, 0.1);
    assert_true(fm_load_pays(&c, HOST, 4, 4 * PAGE));
}

/* Copies beside a step are as many as it hides. */
static void few_pages_come_in_beside_a_short_step(void **state)
{
    (void)state;
    fm_load_costs c = {0};
    assert_int_equal(fm_load_fits_step(&c, 500), 500); /* nothing is known */
    fm_load_costs_loaded(&c, HOST, 100, 100 * 10e-6);
    fm_load_costs_step(&c, 0.1);
    assert_int_equal(fm_load_fits_step(&c, 500), 500);
    for (int i = 0; i < 100; i++) fm_load_costs_step(&c, 0.002);
    assert_in_range(fm_load_fits_step(&c, 500), 140, 160);
    for (int i = 0; i < 100; i++) fm_load_costs_step(&c, 1e-6);
    assert_int_equal(fm_load_fits_step(&c, 500), 16);
    assert_int_equal(fm_load_fits_step(&c, 7), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cheaper_way_is_taken),
        cmocka_unit_test(tokens_are_compared_with_pages),
        cmocka_unit_test(short_prefixes_are_computed),
        cmocka_unit_test(what_is_unknown_is_tried),
        cmocka_unit_test(a_slow_tier_is_tried_again),
        cmocka_unit_test(one_slow_load_does_not_decide),
        cmocka_unit_test(few_pages_come_in_beside_a_short_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
