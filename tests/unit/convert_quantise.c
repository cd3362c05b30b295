/* SPDX-License-Identifier: Apache-2.0 */
/* Rounding to 4 and 8 bits: exact values stay, every value goes to the nearest one, and the scale
 * is the better of two. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <math.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "llm/convert/quantise.h"

static float number(uint64_t key, uint64_t i)
{
    return (float)(int32_t)fm_rng_u32(key, i) * 0x1p-31f;
}

static void fp8_is_the_nearest(void **state)
{
    (void)state;
    for (int b = 0; b < 256; b++) { /* what is representable stays */
        if ((b & 0x7f) == 0x7f) continue;
        assert_int_equal(fm_fp8_of_f32(fm_f32_of_fp8((fm_fp8)b)), b);
    }
    for (uint64_t i = 0; i < 20000; i++) {
        const float v    = ldexpf(number(1, i), (int)(i % 24) - 14);
        const float got  = fm_f32_of_fp8(fm_fp8_of_f32(v));
        float       best = INFINITY;
        for (int b = 0; b < 256; b++)
            if ((b & 0x7f) != 0x7f) best = fminf(best, fabsf(fm_f32_of_fp8((fm_fp8)b) - v));
        assert_true(fabsf(got - v) == best);
    }
    assert_int_equal(fm_fp8_of_f32(1e9f), 0x7e);
    assert_int_equal(fm_fp8_of_f32(-1e9f), 0xfe);
    assert_int_equal(fm_fp8_of_f32(1.0625f), 0x38); /* ties to even */
    assert_int_equal(fm_fp8_of_f32(1.1875f), 0x3a);
    assert_int_equal(fm_fp8_of_f32(NAN) & 0x7f, 0x7f);
}

static float int4_value(const uint8_t *out, const fm_bf16 *scale, int i)
{
    return (float)((out[i / 2] >> i % 2 * 4 & 15) - 8) * fm_f32_of_bf16(scale[i / 32]);
}

static void int4_keeps_what_it_can_express(void **state)
{
    (void)state;
    float   row[96];
    uint8_t out[48];
    fm_bf16 scale[3];
    for (int i = 0; i < 32; i++) row[i] = (float)(i % 15 - 7) * 0.25f; /* the largest is 7 */
    for (int i = 32; i < 64; i++) row[i] = (float)(i % 16 - 8) * 0.5f; /* -8 is there */
    for (int i = 64; i < 96; i++) row[i] = 0;
    fm_quantise_int4(out, scale, row, 96);
    for (int i = 0; i < 96; i++) assert_true(int4_value(out, scale, i) == row[i]);
}

static double error_with(const float *v, float s)
{
    double sum = 0;
    for (int i = 0; i < 32; i++) {
        const float q = fmaxf(-8, fminf(7, rintf(v[i] / s)));
        sum += pow((double)v[i] - (double)s * (double)q, 2);
    }
    return sum;
}

static void int4_takes_the_better_scale(void **state)
{
    (void)state;
    int taken[2] = {0};
    for (uint64_t g = 0; g < 300; g++) {
        float   v[32], m = 0;
        uint8_t out[16];
        fm_bf16 scale;
        double  got = 0;
        for (int i = 0; i < 32; i++) m = fmaxf(m, fabsf(v[i] = number(2, g * 32 + (uint64_t)i)));
        fm_quantise_int4(out, &scale, v, 32);
        for (int i = 0; i < 32; i++)
            got += pow((double)v[i] - (double)int4_value(out, &scale, i), 2);
        const fm_bf16 by_7 = fm_bf16_of_f32(m / 7), by_8 = fm_bf16_of_f32(m / 8);
        const double  best =
            fmin(error_with(v, fm_f32_of_bf16(by_7)), error_with(v, fm_f32_of_bf16(by_8)));
        assert_true(fabs(got - best) <= 1e-9);
        taken[scale == by_8]++;
    }
    assert_true(taken[0] > 10 && taken[1] > 10);
}

static void fp8_blocks_have_their_own_scales(void **state)
{
    (void)state;
    enum { ROWS = 20, K = 200 };
    static float  rows[ROWS * K];
    static fm_fp8 out[ROWS * K];
    float         scale[2];
    for (int i = 0; i < ROWS * K; i++)
        rows[i] = number(3, (uint64_t)i) * (i % K < 128 ? 1.0f : 1e-4f);
    fm_quantise_fp8(out, scale, rows, ROWS, K);
    assert_true(scale[1] < scale[0] * 1e-3f);
    for (int i = 0; i < ROWS * K; i++) {
        const float s = scale[i % K / 128], got = fm_f32_of_fp8(out[i]) * s;
        assert_true(fabsf(got - rows[i]) <= fmaxf(fabsf(rows[i]) / 15, s * 0x1p-9f));
    }
    memset(rows, 0, sizeof rows);
    fm_quantise_fp8(out, scale, rows, ROWS, K);
    for (int i = 0; i < ROWS * K; i++) assert_int_equal(out[i] & 0x7f, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fp8_is_the_nearest),
        cmocka_unit_test(int4_keeps_what_it_can_express),
        cmocka_unit_test(int4_takes_the_better_scale),
        cmocka_unit_test(fp8_blocks_have_their_own_scales),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
