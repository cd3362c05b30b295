/* SPDX-License-Identifier: Apache-2.0 */
/* The first of the largest, by vectors and one after the other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>

#include <cmocka.h>

#include "base/argmax.h"
#include "base/rng.h"

enum { MOST = 9000 }; /* more than two of the blocks it is looked for in */

static float x[MOST];

static int first_largest(int n)
{
    int best = 0;
    for (int i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    return best;
}

static float number(int n, int i) /* [-3, 3) */
{
    return ((float)fm_rng_u32((uint64_t)n, (uint64_t)i) * 0x1p-31f - 1.0f) * 3;
}

static void is_the_first_of_the_largest(void **state)
{
    (void)state;
    for (int n = 1; n <= MOST; n += n < 300 ? 1 : 291) {
        for (int i = 0; i < n; i++) /* ties, or all below 0 */
            x[i] = n % 3 ? rintf(number(n, i)) : -expf(number(n, i));
        assert_int_equal(fm_argmax(x, n), first_largest(n));
    }
}

static void odd_numbers(void **state)
{
    (void)state;
    for (int i = 0; i < MOST; i++) x[i] = i % 2 ? NAN : -INFINITY;
    assert_int_equal(fm_argmax(x, MOST), 0);
    x[MOST - 1] = -1e30f;
    assert_int_equal(fm_argmax(x, MOST), MOST - 1);
    x[17] = INFINITY;
    assert_int_equal(fm_argmax(x, MOST), 17);
    x[0] = NAN;
    assert_int_equal(fm_argmax(x, MOST), 17);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_the_first_of_the_largest),
        cmocka_unit_test(odd_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
