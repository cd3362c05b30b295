/* SPDX-License-Identifier: Apache-2.0 */
/* How fast the engine says it is, from steps with known costs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "llm/serve/loop/rates.h"

static void nothing_is_known_at_first(void **state)
{
    (void)state;
    fm__rates r = {0};
    assert_true(fm__rates_prefill(&r) == 0 && fm__rates_row(&r) == 0);
    fm__rates_add(&r, 1000, 0, 0); /* no time */
    fm__rates_add(&r, 20, 0, 1);   /* few rows say little of a row */
    assert_true(fm__rates_prefill(&r) == 0);
}

/* A step costs 2 ms and 0.1 ms per row; prompts run at 5,000 tokens per second. */
static void costs_are_found_again(void **state)
{
    (void)state;
    fm__rates r = {0};
    for (uint64_t i = 0; i < 500; i++) {
        const int rows = 1 + (int)(fm_rng_u32(1, i) % 32);
        fm__rates_add(&r, 0, rows, 2e-3 + 1e-4 * rows);
        if (i % 5 == 0) fm__rates_add(&r, 500, rows, 0.1);
        fm__rates_add(&r, 20, rows, 5e-3); /* mixed steps count for neither */
    }
    assert_true(fabs(fm__rates_row(&r) - 1e-4) < 1e-6);
    assert_true(fabs(fm__rates_prefill(&r) - 5000) < 1);
}

/* Always the same number of rows: the share of one is not known, but bounded. */
static void one_size_alone(void **state)
{
    (void)state;
    fm__rates r = {0};
    for (int i = 0; i < 100; i++) fm__rates_add(&r, 0, 8, 4e-3);
    assert_true(fm__rates_row(&r) > 0 && fm__rates_row(&r) <= 4e-3 / 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_known_at_first),
        cmocka_unit_test(costs_are_found_again),
        cmocka_unit_test(one_size_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
