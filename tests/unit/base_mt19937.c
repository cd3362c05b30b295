/* SPDX-License-Identifier: Apache-2.0 */
/* The generators against CPython 3.11 and NumPy 2.4:
 *
 *     random.seed(s); [random.getrandbits(32) for _ in range(4)]
 *     l = list(range(1000)); random.seed(s); random.shuffle(l)
 *     np.random.seed(s); np.random.randint(0, 100, 8) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mt19937.h"

static const struct {
    uint64_t seed;
    uint32_t bits[4];
    int      first[5], last[3]; /* of the shuffled list */
    uint32_t next;              /* 32 bits drawn after the shuffle */
} python_cases[] = {
    {0, {3626764237, 1654615998, 3255389356, 3823568514},
     {439, 621, 160, 549, 237}, {776, 394, 864}, 1835197452},
    {42, {2746317213, 478163327, 107420369, 3184935163},
     {776, 507, 895, 922, 33}, {25, 114, 654}, 1754569613},
    {2025, {2395527356, 355203201, 2773882754, 3597174691},
     {251, 538, 308, 555, 383}, {661, 84, 571}, 2209263414},
    {4294967301, {675479763, 2085189291, 1213270837, 3822202474},
     {388, 325, 405, 583, 213}, {289, 497, 161}, 136277846},
    {UINT64_MAX, {93740670, 1068495656, 1452108352, 2657516307},
     {172, 647, 434, 134, 67}, {346, 254, 22}, 912949345},
};

static void python_bits(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof python_cases / sizeof *python_cases; c++) {
        fm_mt g;
        fm_mt_seed_python(&g, python_cases[c].seed);
        for (int i = 0; i < 4; i++) assert_int_equal(fm_mt_u32(&g), python_cases[c].bits[i]);
    }
}

static void python_shuffle(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof python_cases / sizeof *python_cases; c++) {
        fm_mt g;
        int   list[1000];
        for (int i = 0; i < 1000; i++) list[i] = i;
        fm_mt_seed_python(&g, python_cases[c].seed);
        fm_mt_python_shuffle(&g, list, 1000, sizeof *list);
        for (int i = 0; i < 5; i++) assert_int_equal(list[i], python_cases[c].first[i]);
        for (int i = 0; i < 3; i++) assert_int_equal(list[997 + i], python_cases[c].last[i]);
        assert_int_equal(fm_mt_u32(&g), python_cases[c].next);
    }
}

static void shuffles_of_nothing_draw_nothing(void **state)
{
    (void)state;
    fm_mt g;
    char  one = 1;
    fm_mt_seed_python(&g, 42);
    fm_mt_python_shuffle(&g, NULL, 0, 8);
    fm_mt_python_shuffle(&g, &one, 1, 1);
    assert_int_equal(fm_mt_u32(&g), 2746317213);
}

/* random.seed(7); [random.randrange(m) for m in …]: 1 draws, too */
static void python_randrange(void **state)
{
    (void)state;
    static const uint32_t m[] = {1, 2, 3, 1, 10, 1000, 65536, 65537, 1u << 31, UINT32_MAX};
    static const uint32_t want[] = {0, 0, 1, 0, 1, 840, 12337, 47931, 249103477, 3907149204};
    fm_mt g;
    fm_mt_seed_python(&g, 7);
    for (int i = 0; i < 10; i++) assert_int_equal(fm_mt_python_below(&g, m[i]), want[i]);
    assert_int_equal(fm_mt_u32(&g), 2179419893);
}

static void numpy_randint(void **state)
{
    (void)state;
    static const struct {
        uint32_t seed;
        int      want[8];
    } cases[] = {
        {0, {44, 47, 64, 67, 67, 9, 83, 21}},
        {42, {51, 92, 14, 71, 60, 20, 82, 86}},
        {2025, {62, 94, 82, 94, 76, 67, 83, 12}},
        {UINT32_MAX, {35, 34, 12, 71, 52, 64, 86, 89}},
    };
    for (int c = 0; c < 4; c++) {
        fm_mt g;
        fm_mt_seed_numpy(&g, cases[c].seed);
        for (int i = 0; i < 8; i++)
            assert_int_equal(fm_mt_numpy_randint(&g, 0, 100), cases[c].want[i]);
    }
}

/* np.random.seed(1); a range of one value draws nothing */
static void numpy_randint_ranges(void **state)
{
    (void)state;
    static const int64_t range[][2] = {{0, 2}, {-5, 5}, {256, 257}, {1, 1025}, {0, 129280},
                                       {0, 1ll << 31}, {1000000000000, 1000000000003},
                                       {0, UINT32_MAX}};
    static const int64_t want[] = {1, 3, 256, 768, 50057, 1298508491, 1000000000001, 630311759};
    fm_mt g;
    fm_mt_seed_numpy(&g, 1);
    for (int i = 0; i < 8; i++)
        assert_int_equal(fm_mt_numpy_randint(&g, range[i][0], range[i][1]), want[i]);
    assert_int_equal(fm_mt_numpy_randint(&g, 0, 1 << 16), 21440);
}

static void doubles(void **state)
{
    (void)state;
    fm_mt g;
    fm_mt_seed_python(&g, 42);
    assert_true(fm_mt_double(&g) == 0x1.4762f307200c5p-1);
    assert_true(fm_mt_double(&g) == 0x1.99c6b5eeb2060p-6);
    assert_true(fm_mt_double(&g) == 0x1.19a1491f589dcp-2);
    fm_mt_seed_numpy(&g, 42);
    assert_true(fm_mt_double(&g) == 0x1.7f8771e5f51ecp-2);
    assert_true(fm_mt_double(&g) == 0x1.e6c4068bbd654p-1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(python_bits),
        cmocka_unit_test(python_shuffle),
        cmocka_unit_test(shuffles_of_nothing_draw_nothing),
        cmocka_unit_test(python_randrange),
        cmocka_unit_test(numpy_randint),
        cmocka_unit_test(numpy_randint_ranges),
        cmocka_unit_test(doubles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
