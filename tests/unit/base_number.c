/* SPDX-License-Identifier: Apache-2.0 */
/* The short formats against their definitions, every bit pattern. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>

#include <cmocka.h>

#include "base/number.h"

/* A sign, e exponent bits with that bias, m mantissa bits; no special values. */
static double value_of(uint32_t bits, int e, int m, int bias)
{
    const uint32_t exp = bits >> m & ((1u << e) - 1), man = bits & ((1u << m) - 1);
    const double   v   = exp ? ldexp(1 + ldexp(man, -m), (int)exp - bias)
                             : ldexp(man, 1 - bias - m);
    return bits >> (e + m) & 1 ? -v : v;
}

static void same(float got, double want, uint32_t bits)
{
    if (isnan(want) ? !isnan(got) : (double)got != want || !signbit(got) != !signbit(want))
        fail_msg("0x%x is %a, want %a", (unsigned)bits, (double)got, want);
}

static void every_bf16(void **state)
{
    (void)state;
    for (uint32_t b = 0; b < 1 << 16; b++) {
        const float f = fm_f32_of_bf16((fm_bf16)b);
        if ((b & 0x7f80) != 0x7f80) same(f, value_of(b, 8, 7, 127), b);
        else if (b & 0x7f) assert_true(isnan(f));
        else same(f, b >> 15 ? -INFINITY : INFINITY, b);
        if (!isnan(f)) assert_int_equal(fm_bf16_of_f32(f), b);
    }
}

/* The nearer neighbour, the even one at equal distance. */
static uint32_t nearest_bf16(uint32_t low, double x)
{
    const double a = fabs(value_of(low & 0x7fff, 8, 7, 127)); /* also where the next is inf */
    const double b = fabs(value_of((low & 0x7fff) + 1, 8, 7, 127));
    const double d = (fabs(x) - a) - (b - fabs(x));
    return low + (d > 0 || (d == 0 && low % 2));
}

static void rounding_to_bf16(void **state)
{
    (void)state;
    static const uint32_t tails[] = {0, 1, 0x4000, 0x7fff, 0x8000, 0x8001, 0xc000, 0xffff};
    for (uint32_t b = 0; b < 1 << 16; b++)
        for (int t = 0; t < 8; t++) {
            const uint32_t u = b << 16 | tails[t];
            const float    f = fm_f32_from_bits(u);
            const fm_bf16  r = fm_bf16_of_f32(f);
            if (isnan(f)) assert_true(isnan(fm_f32_of_bf16(r)) && r >> 15 == u >> 31);
            else if (!isinf(f)) assert_int_equal(r, nearest_bf16(b, (double)f));
        }
}

static void every_f16(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 1 << 16; h++) {
        const float f = fm_f32_of_f16((fm_f16)h);
        if ((h & 0x7c00) != 0x7c00) same(f, value_of(h, 5, 10, 15), h);
        else if (h & 0x3ff) assert_true(isnan(f));
        else same(f, h >> 15 ? -INFINITY : INFINITY, h);
    }
}

static void every_fp8(void **state)
{
    (void)state;
    for (uint32_t b = 0; b < 256; b++)
        same(fm_f32_of_fp8((fm_fp8)b), (b & 0x7f) == 0x7f ? NAN : value_of(b, 4, 3, 7), b);
    assert_true(fm_f32_of_fp8(0x7e) == 448);
}

static void every_e8m0(void **state)
{
    (void)state;
    for (int e = 0; e < 255; e++) same(fm_f32_of_e8m0((uint8_t)e), ldexp(1, e - 127), (uint32_t)e);
    assert_true(isnan(fm_f32_of_e8m0(255)));
}

static void sizes(void **state)
{
    (void)state;
    assert_int_equal(fm_dtype_bytes(FM_F32), 4);
    assert_int_equal(fm_dtype_bytes(FM_BF16), 2);
    assert_int_equal(fm_dtype_bytes(FM_F16), 2);
    assert_int_equal(fm_dtype_bytes(FM_FP8), 1);
    assert_int_equal(fm_dtype_bytes(FM_E8M0), 1);
    assert_int_equal(fm_round_up(0, 64), 0);
    assert_int_equal(fm_round_up(1, 64), 64);
    assert_int_equal(fm_round_up(64, 64), 64);
    assert_int_equal(fm_round_up(65, 3), 66);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bf16), cmocka_unit_test(rounding_to_bf16),
        cmocka_unit_test(every_f16),  cmocka_unit_test(every_fp8),
        cmocka_unit_test(every_e8m0), cmocka_unit_test(sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
