/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of the GPU's limits, against tables worked out by hand for
 * 4.3 TB/s, 790 TFLOP/s in BF16 and 1400 in FP8. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "bench/bound.h"
#include "llm/load/config_read.h"
#include "llm/load/model_path.h"

static const fm_roof h200 = {4.3e12, 790e12, 1400e12, 1};

static fm_model_config shape_of(const char *name, const char *json)
{
    const char     *text = fm_builtin_config(name);
    fm_model_config c;
    assert_non_null(text);
    assert_int_equal(fm_config_parse(&c, text, strlen(text), name, json), FM_OK);
    return c;
}

static fm_model_config v2_lite(void) { return shape_of("v2-lite", NULL); }

static fm_model_config r1_bf16(void)
{
    return shape_of("r1", "{\"num_hidden_layers\": 8, \"quantization_config\": null}");
}

static fm_model_config r1_fp8(void) { return shape_of("r1", "{\"num_hidden_layers\": 13}"); }

static void near(double got, double want, double relative, const char *what)
{
    if (fabs(got - want) > relative * want) fail_msg("%s: %g, expected %g", what, got, want);
}

static fm_bound decode(const fm_model_config *c, int B)
{
    const fm_shape s = {.n_seq = B, .n_row = 1, .pos0 = 499, .generated = 1, .n_out = B};
    return fm_bound_step(c, &s, &h200);
}

static fm_bound prefill(const fm_model_config *c, int n)
{
    const fm_shape s = {.n_seq = 1, .n_row = n, .n_out = 1};
    return fm_bound_step(c, &s, &h200);
}

static void decode_steps_have_their_bytes_and_times(void **state)
{
    static const struct {
        int    B;
        double gb, ms;
    } lite[] = {{1, 4.92, 1.145},    {8, 18.06, 4.201},   {32, 30.43, 7.077},
                {128, 33.60, 7.814}, {256, 36.21, 8.562}, {512, 41.42, 10.402}},
      bf16[] = {{1, 11.22, 2.61}, {32, 79.98, 18.61}, {256, 123.39, 29.30}, {512, 126.42, 32.33}},
      fp8[]  = {{1, 9.71, 2.26}, {32, 78.69, 18.30}, {256, 123.66, 29.34}, {512, 128.47, 32.37}};
    (void)state;
    const fm_model_config model[] = {v2_lite(), r1_bf16(), r1_fp8()};
    for (size_t i = 0; i < sizeof lite / sizeof *lite; i++) {
        const fm_bound b = decode(&model[0], lite[i].B);
        near(b.cost.bytes * 1e-9, lite[i].gb, 0.01, "V2-Lite, GB");
        near(b.seconds * 1e3, lite[i].ms, 0.005, "V2-Lite, ms");
    }
    for (size_t i = 0; i < sizeof fp8 / sizeof *fp8; i++) {
        near(decode(&model[1], bf16[i].B).seconds * 1e3, bf16[i].ms, 0.005, "R1 BF16, ms");
        near(decode(&model[1], bf16[i].B).cost.bytes * 1e-9, bf16[i].gb, 0.01, "R1 BF16, GB");
        near(decode(&model[2], fp8[i].B).seconds * 1e3, fp8[i].ms, 0.005, "R1 FP8, ms");
        near(decode(&model[2], fp8[i].B).cost.bytes * 1e-9, fp8[i].gb, 0.01, "R1 FP8, GB");
    }
}

static void parts_of_a_step_add_up(void **state)
{
    (void)state;
    const fm_model_config c   = v2_lite();
    const fm_bound        b   = decode(&c, 256);
    double                sum = 0;
    for (int i = 0; i < FM_N_OP; i++) sum += b.op[i];
    near(sum, b.seconds, 1e-12, "parts");
    near(b.op[FM_OP_EXPERTS] * 1e6, 6824, 0.001, "experts");
    near(b.op[FM_OP_ATTEND] * 1e6, 79 + 982, 0.002, "attention");
    near(b.op[FM_OP_MLP] * 1e6, 44 + 292, 0.005, "shared expert and dense layer");
    near(b.op[FM_OP_HEAD] * 1e6, 136, 0.005, "head");
}

static void prefill_waits_for_the_multiplier(void **state)
{
    (void)state;
    const fm_model_config c = v2_lite();
    const fm_bound        b = prefill(&c, 4096);
    near(b.op[FM_OP_EXPERTS] * 1e6, 13994, 0.001, "experts");
    near(b.op[FM_OP_ATTEND] * 1e6, 587 + 2937, 0.002, "attention");
    near(b.op[FM_OP_HEAD] * 1e6, 98, 0.005, "head");
    assert_true(b.cost.flops / h200.bf16 > b.cost.bytes / h200.bandwidth);
}

/* A limit is a lower bound of the time: faster memory or a higher peak only lower it. */
static void better_hardware_lowers_the_bound(void **state)
{
    (void)state;
    const fm_model_config c        = r1_fp8();
    fm_roof       better[] = {h200, h200, h200};
    better[0].bandwidth *= 2, better[1].bf16 *= 2, better[2].fp8 *= 2;
    for (int B = 1; B <= 1024; B *= 4) {
        const fm_shape s = {.n_seq = B, .n_row = 1, .pos0 = 499, .generated = 1, .n_out = B};
        const double   t = fm_bound_step(&c, &s, &h200).seconds;
        for (int i = 0; i < 3; i++) {
            assert_true(fm_bound_step(&c, &s, &better[i]).seconds <= t);
            assert_true(fm_bound_step(&c, &s, &better[i]).seconds >= t / 2);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decode_steps_have_their_bytes_and_times),
        cmocka_unit_test(parts_of_a_step_add_up),
        cmocka_unit_test(prefill_waits_for_the_multiplier),
        cmocka_unit_test(better_hardware_lowers_the_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
