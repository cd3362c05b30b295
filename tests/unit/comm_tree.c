/* SPDX-License-Identifier: Apache-2.0 */
/* The order of sums: the same bits however the parts are spread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "comm/tree.h"

enum { PARTS = 33, LENGTH = 5000 };

static float leaf[PARTS][LENGTH], work[PARTS][LENGTH], sum[LENGTH], other[LENGTH];

static float number(uint64_t key, uint64_t i)
{
    return ((float)(fm_rng_u32(key, i) >> 8) - 0x1p23f) *
           (float)(1 << fm_rng_u32(77, i + key) % 20);
}

static void fresh(void)
{
    for (int p = 0; p < PARTS; p++)
        for (int i = 0; i < LENGTH; i++) leaf[p][i] = work[p][i] = number((uint64_t)p, (uint64_t)i);
}

static void sum_of(float *out, int first, int n, size_t len)
{
    float *part[PARTS];
    for (int i = 0; i < n; i++) part[i] = work[first + i];
    fm_tree_sum_f32(out, part, n, len);
}

static float definition(int first, int n, int i)
{
    if (n == 1) return leaf[first][i];
    int half = 1;
    while (2 * half < n) half *= 2;
    return definition(first, half, i) + definition(first + half, n - half, i);
}

static void any_number_of_parts(void **state)
{
    (void)state;
    static const size_t lengths[] = {0, 1, 7, 2047, 2048, 2049, LENGTH};
    for (int n = 1; n <= PARTS; n++)
        for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
            fresh();
            memset(sum, 0xa5, sizeof sum);
            sum_of(sum, 0, n, lengths[k]);
            for (size_t i = 0; i < lengths[k]; i++) assert_true(sum[i] == definition(0, n, (int)i));
            for (size_t i = lengths[k] * sizeof *sum; i < sizeof sum; i++)
                assert_int_equal(((unsigned char *)sum)[i], 0xa5);
        }
}

/* Eight leaves on one rank, or 2 x 4, 4 x 2, 8 x 1. */
static void spreading_keeps_the_bits(void **state)
{
    (void)state;
    fresh();
    sum_of(sum, 0, 8, LENGTH);
    for (int ranks = 2; ranks <= 8; ranks *= 2) {
        const int each = 8 / ranks;
        fresh();
        for (int r = 0; r < ranks; r++) sum_of(work[r * each], r * each, each, LENGTH);
        float *part[8];
        for (int r = 0; r < ranks; r++) part[r] = work[r * each];
        fm_tree_sum_f32(other, part, ranks, LENGTH);
        assert_memory_equal(sum, other, sizeof sum);
    }
}

static void the_result_may_replace_a_part(void **state)
{
    (void)state;
    fresh();
    sum_of(sum, 0, 6, LENGTH);
    fresh();
    sum_of(work[0], 0, 6, LENGTH);
    assert_memory_equal(work[0], sum, sizeof sum);
    fresh();
    fm_tree_add_f32(work[1], work[0], work[1], LENGTH);
    for (int i = 0; i < LENGTH; i++) assert_true(work[1][i] == leaf[0][i] + leaf[1][i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_parts),
        cmocka_unit_test(spreading_keeps_the_bits),
        cmocka_unit_test(the_result_may_replace_a_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
