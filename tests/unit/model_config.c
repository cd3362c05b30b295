/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "llm/weights/config.h"

static fm_model_config yarn(double theta, double factor, double fast, double slow, double mscale)
{
    return (fm_model_config){.nope                = 128,
                             .rope                = 64,
                             .rope_theta          = theta,
                             .yarn                = 1,
                             .yarn_factor         = factor,
                             .yarn_beta_fast      = fast,
                             .yarn_beta_slow      = slow,
                             .yarn_mscale         = mscale,
                             .yarn_mscale_all_dim = mscale,
                             .yarn_truncate       = 1,
                             .yarn_original       = 4096};
}

/* Published softmax scales of whole model families. */
static void softmax_scales(void **state)
{
    (void)state;
    const struct {
        double factor, mscale, scale;
    } want[] = {
        {40, 0.707, 0.11472139}, {40, 1, 0.13523378}, {32, 1, 0.13086080}, {64, 1, 0.14467963}};

    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const fm_model_config c = yarn(10000, want[i].factor, 32, 1, want[i].mscale);
        assert_true(fabs(fm_attention_scale(&c) / want[i].scale - 1) < 1e-7);
        assert_true(fm_rope_magnitude(&c) == 1);
    }
    const fm_model_config moonlight = {.nope = 128, .rope = 64, .rope_theta = 50000};
    assert_true(fabs(fm_attention_scale(&moonlight) / 0.07216878 - 1) < 1e-7);
}

static void rope_magnitudes(void **state)
{
    (void)state;
    fm_model_config c = yarn(10000, 40, 32, 1, 0);
    assert_true(fabs(fm_rope_magnitude(&c) - 1.3688879) < 1e-6); /* no mscale at all: m(s, 1) */
    assert_true(fabs(fm_attention_scale(&c) - 1 / sqrt(192)) < 1e-7);

    c.yarn_mscale         = 0.707;
    c.yarn_mscale_all_dim = 1;
    assert_true(fabs(fm_rope_magnitude(&c) - 1.2608038 / 1.3688879) < 1e-6);
    c.yarn_attention_factor = 1.5;
    assert_true(fm_rope_magnitude(&c) == 1.5f);

    c = yarn(10000, 1, 32, 1, 0.5); /* nothing is stretched */
    assert_true(fm_rope_magnitude(&c) == 1);
}

/* Pairs up to `low` unchanged, from `high` on divided, between on a line. */
static void check_ramp(const fm_model_config *c, int low, int high)
{
    float f[32];
    fm_rope_frequencies(c, f);
    for (int i = 0; i < 32; i++) {
        const double plain = pow(c->rope_theta, -i / 32.0);
        const double r     = i <= low ? 0 : i >= high ? 1 : (double)(i - low) / (high - low);
        const double want  = plain * (1 - r) + plain / c->yarn_factor * r;
        if (fabs(f[i] / want - 1) > 1e-7) fail_msg("pair %d: %g, want %g", i, (double)f[i], want);
    }
}

static void yarn_frequencies(void **state)
{
    (void)state;
    const fm_model_config v3 = yarn(10000, 40, 32, 1, 1), kimi = yarn(50000, 32, 1, 1, 1);
    check_ramp(&v3, 10, 23);
    check_ramp(&kimi, 19, 20);
}

static void plain_frequencies(void **state)
{
    (void)state;
    const fm_model_config c = {.nope = 128, .rope = 8, .rope_theta = 10000};
    float                 f[4];
    fm_rope_frequencies(&c, f);
    assert_true(f[0] == 1 && f[1] == 0.1f && f[2] == 0.01f && f[3] == 0.001f);
}

/* An original context so short that both ends of the ramp fall below 0. */
static void tiny_context_is_finite(void **state)
{
    (void)state;
    fm_model_config c = yarn(10000, 4, 32, 32, 1);
    float           f[32];
    for (c.yarn_original = 1; c.yarn_original < 4096; c.yarn_original *= 3) {
        fm_rope_frequencies(&c, f);
        for (int i = 0; i < 32; i++) assert_true(isfinite(f[i]) && f[i] > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(softmax_scales),         cmocka_unit_test(rope_magnitudes),
        cmocka_unit_test(yarn_frequencies),       cmocka_unit_test(plain_frequencies),
        cmocka_unit_test(tiny_context_is_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
