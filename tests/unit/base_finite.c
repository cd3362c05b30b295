/* SPDX-License-Identifier: Apache-2.0 */
/* One NaN or infinity among finite numbers is found wherever it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <float.h>
#include <math.h>

#include <cmocka.h>

#include "base/finite.h"
#include "base/number.h"

enum { MOST = 9000 }; /* more than two of the blocks it is looked for in */

static float x[MOST];

static void fill(void)
{
    const float every[] = {0, -0.0f, 1, -1, FLT_MAX, -FLT_MAX, FLT_MIN, 0x1p-149f, -0x1p-149f};
    for (int i = 0; i < MOST; i++) x[i] = every[i % 9];
}

static void finite_numbers_are(void **state)
{
    (void)state;
    fill();
    for (int n = 0; n <= MOST; n += n < 100 ? 1 : 291) assert_true(fm_all_finite(x, n));
}

static void one_that_is_not_is_found(void **state)
{
    const uint32_t odd[] = {0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7f800001, 0xffffffff};
    (void)state;
    fill();
    for (int i = 0; i < MOST; i += i < 100 || i > MOST - 100 ? 1 : 37) {
        const float was = x[i];
        x[i]            = fm_f32_from_bits(odd[i % 6]);
        assert_false(fm_all_finite(x, MOST));
        assert_false(fm_all_finite(x, i + 1));
        assert_true(fm_all_finite(x, i));
        assert_true(fm_all_finite(x + i + 1, MOST - i - 1));
        x[i] = was;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finite_numbers_are),
        cmocka_unit_test(one_that_is_not_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
