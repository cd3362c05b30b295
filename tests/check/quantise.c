/* SPDX-License-Identifier: Apache-2.0 */
/* Quantised activations against the nearest of all E4M3 numbers. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "llm/kernel/rows/rows.h"

enum { MOST = 640, BLOCK = 128 };

/* The nearest E4M3 number; of two, the one whose last bit is 0. */
static float nearest(float x)
{
    fm_fp8 best = 0;
    for (int b = 0; b < 256; b++) {
        if ((b & 0x7f) == 0x7f) continue;
        const double d    = fabs((double)fm_f32_of_fp8((fm_fp8)b) - x);
        const double than = fabs((double)fm_f32_of_fp8(best) - x);
        if (d < than || (d == than && !(b & 1))) best = (fm_fp8)b;
    }
    return fm_f32_of_fp8(best);
}

static void check_row(const fm_bf16 *x, int n)
{
    fm_bf16 q[MOST + 1], again[MOST];
    float   scale[MOST / BLOCK + 2];
    q[n]                           = 0xa5a5;
    scale[(n + BLOCK - 1) / BLOCK] = -7;
    fm_row_quantise(q, scale, x, n);
    for (int from = 0; from < n; from += BLOCK) {
        const int end  = from + BLOCK < n ? from + BLOCK : n;
        float     most = 0x1p-100f;
        for (int i = from; i < end; i++) most = fmaxf(most, fabsf(fm_f32_of_bf16(x[i])));
        assert_true(scale[from / BLOCK] == most / 448);
        for (int i = from; i < end; i++)
            assert_true(fm_f32_of_bf16(q[i]) == nearest(fm_f32_of_bf16(x[i]) * (448 / most)));
    }
    assert_int_equal(q[n], 0xa5a5);
    assert_true(scale[(n + BLOCK - 1) / BLOCK] == -7);
    memcpy(again, x, (size_t)n * sizeof *again);
    fm_row_quantise(again, scale, again, n);
    assert_memory_equal(again, q, (size_t)n * sizeof *q);
}

static void rounds_to_the_nearest(void **state)
{
    (void)state;
    fm_bf16 x[MOST];
    for (uint64_t key = 1; key < 12; key++) {
        for (int i = 0; i < MOST;
             i++) { /* up to 24 binades: also what becomes subnormal, or zero */
            const uint32_t u = fm_rng_u32(key, (uint64_t)i);
            x[i] = fm_bf16_of_f32(ldexpf((float)(int32_t)u, -31 - (int)(fm_mix32(u) % (2 * key))));
        }
        for (int n = 32; n <= MOST; n += 96) check_row(x, n);
    }
}

/* Halfway cases: multiples of half a step below the largest magnitude. */
static void ties_go_to_even(void **state)
{
    (void)state;
    fm_bf16 x[BLOCK];
    for (int i = 0; i < BLOCK; i++) x[i] = fm_bf16_of_f32((float)(448 - 3 * i));
    check_row(x, BLOCK);
    for (int i = 0; i < BLOCK - 1; i++) x[i] = fm_bf16_of_f32((float)i * 0x1p-10f);
    x[BLOCK - 1] = fm_bf16_of_f32(448);
    check_row(x, BLOCK);
}

static void zeros_and_tiny_rows_stay_finite(void **state)
{
    (void)state;
    fm_bf16 x[256] = {0};
    check_row(x, 256);
    for (int i = 0; i < 256; i++) x[i] = (fm_bf16)(i % 4); /* below 2^-126 */
    check_row(x, 256);
}

/* A row that is not finite must not look finite when it was multiplied. */
static void what_is_not_finite_shows(void **state)
{
    (void)state;
    const fm_bf16 odd[] = {0x7f80, 0xff80, 0x7fc0, 0xffff};
    for (int k = 0; k < 4; k++) {
        fm_bf16 x[BLOCK] = {0}, q[BLOCK];
        float   scale;
        x[0] = 0x3f80, x[5] = odd[k];
        fm_row_quantise(q, &scale, x, BLOCK);
        assert_true(!isfinite(fm_f32_of_bf16(q[5]) * scale));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds_to_the_nearest),
        cmocka_unit_test(ties_go_to_even),
        cmocka_unit_test(zeros_and_tiny_rows_stay_finite),
        cmocka_unit_test(what_is_not_finite_shows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
