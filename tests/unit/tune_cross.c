/* SPDX-License-Identifier: Apache-2.0 */
/* The cells of an ablation: each once, fewest off first, as many as there should be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tune/cross.h"

static int n_bits(uint32_t x)
{
    int n = 0;
    for (; x; x >>= 1) n += (int)(x & 1);
    return n;
}

static void cells_are_complete(void **state)
{
    (void)state;
    static uint32_t  off[1 << 10];
    static const int want[][3] = {{0, 5, 1},  {3, 1, 4},      {3, 2, 7}, {3, 3, 8},
                                  {6, 2, 22}, {10, 10, 1024}, {4, 9, 16}};
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        const int n = fm_cross(off, want[i][0], want[i][1]);
        assert_int_equal(n, want[i][2]);
        assert_int_equal(off[0], 0);
        for (int k = 1; k < n; k++) {
            const int more = n_bits(off[k]) - n_bits(off[k - 1]);
            assert_true(more == 1 ||
                        (more == 0 && off[k] > off[k - 1])); /* so no cell comes twice */
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(cells_are_complete)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
