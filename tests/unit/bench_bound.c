/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic that speeds are held against, against numbers worked out
 * another way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <string.h>

#include <cmocka.h>

#include "bench/bound.h"
#include "llm/load/config_read.h"
#include "llm/load/model_path.h"

static const fm_roof xeon = {.bandwidth = 27e9, .bf16 = 3.6e12};

static fm_model_config shape_of(const char *name)
{
    fm_model_config c;
    const char     *text = fm_builtin_config(name);
    assert_non_null(text);
    if (fm_config_parse(&c, text, strlen(text), name, NULL) != FM_OK) fail_msg("%s", fm_why());
    return c;
}

static fm_shape decode(int n_seq, int pos0)
{
    return (fm_shape){.n_seq = n_seq, .n_row = 1, .pos0 = pos0, .generated = 1, .n_out = n_seq};
}

static void assert_close(double got, double want, double part)
{
    if (fabs(got - want) > part * fabs(want)) fail_msg("%.9g, want %.9g", got, want);
}

/* One token reads its active parameters and the latents before it. */
static void a_token_reads_the_active_parameters(void **state)
{
    (void)state;
    static const char *const name[] = {"r1-mini", "v2-lite", "r1"};
    for (int i = 0; i < 3; i++) {
        fm_model_config c     = shape_of(name[i]);
        const fm_shape  s     = decode(1, 999);
        const double    cache = 1000.0 * (c.kv_lora + c.rope) * 2 * c.n_layer;
        c.fp8                 = 0; /* R1's are: as if they were BF16 */
        const fm_bound b      = fm_bound_step(&c, &s, &xeon);
        /* norms and router biases are no matrices */
        assert_close(b.cost.bytes - cache, 2.0 * (double)fm_param_active(&c), 1e-3);
    }
}

/* 8 and 4 bits change what linear layers take, not routers, k_up and v_up, and the head only INT4. */
static void quantised_weights_are_fewer_bytes(void **state)
{
    (void)state;
    fm_model_config c       = shape_of("r1-mini");
    const fm_shape  s       = decode(1, 999);
    const double    bf16    = fm_bound_step(&c, &s, &xeon).cost.bytes;
    const double    up      = (double)c.n_head * (c.nope + c.v_dim) * c.kv_lora * c.n_layer;
    const double    routers = (double)c.n_expert * c.hidden * (c.n_layer - c.n_dense);
    const double    cache   = 1000.0 * (c.kv_lora + c.rope) * c.n_layer;
    const double    rest    = 2 * (up + routers + cache);
    const double    head    = 2.0 * c.vocab * c.hidden;
    const double experts    = fm_cost_experts(&xeon, &c, 1).bytes / 2; /* weights */
    c.fp8                   = 1;
    const double fp8 = rest + head + (bf16 - rest - head) / 2;
    assert_close(fm_bound_step(&c, &s, &xeon).cost.bytes, fp8 - up, 2e-3);
    c.nope += 64; /* heads are no whole blocks any more: kv_b_proj becomes BF16 */
    const double grown = (64.0 / (c.nope - 64 + c.v_dim)) * up;
    const double q     = 64.0 * c.n_head * c.q_lora * c.n_layer;
    assert_close(fm_bound_step(&c, &s, &xeon).cost.bytes, fp8 + 2 * grown + q, 2e-3);
    c.nope -= 64;
    assert_close(fm_cost_experts(&xeon, &c, 1).bytes, experts * 1.002, 1e-3);
    c.fp8 = 0, c.int4 = 1;
    assert_close(fm_cost_experts(&xeon, &c, 1).bytes, experts * 0.5625, 1e-3);
    assert_close(fm_bound_step(&c, &s, &xeon).cost.bytes, rest + (bf16 - rest) * 4.5 / 16, 1e-6);
}

static void r1_mini_is_as_fast_as_worked_out_by_hand(void **state)
{
    (void)state;
    const fm_model_config c   = shape_of("r1-mini");
    const fm_shape        one = decode(1, 128), many = decode(64, 128);
    const fm_shape        text = {.n_seq = 1, .n_row = 2048, .n_out = 1};
    assert_close(1 / fm_bound_step(&c, &one, &xeon).seconds, 48.3, 0.01);
    assert_close(64 / fm_bound_step(&c, &many, &xeon).seconds, 662, 0.01);
    /* all parameters but embedding and head, and attention: scores and values of half the square */
    const double rows = 2048, head = 32768.0 * 1024;
    const double meet = 12 * 16 * 2 * (192 + 128) * rows * (rows + 1) / 2;
    assert_close(fm_bound_step(&c, &text, &xeon).cost.flops,
                 2 * rows * ((double)fm_param_active(&c) - head) + 2 * head + meet, 1e-3);
}

static void experts_fill_up(void **state)
{
    (void)state;
    const fm_model_config c    = shape_of("r1-mini");
    double                last = 0;
    assert_close(fm_experts_met(&c, 1), 8, 1e-12);
    for (int rows = 1; rows <= 4096; rows *= 2) {
        const double met = fm_experts_met(&c, rows);
        assert_true(met >= last && met <= 64 && met <= 8.0 * rows + 1e-9);
        last = met;
    }
    assert_close(last, 64, 1e-9);
}

static void a_step_is_no_faster_than_either_roof(void **state)
{
    (void)state;
    const fm_model_config c    = shape_of("r1-mini");
    double                rate = 0;
    for (int n = 1; n <= 256; n *= 2) {
        const fm_shape s   = decode(n, 500);
        const fm_bound b   = fm_bound_step(&c, &s, &xeon);
        double         sum = 0;
        for (int i = 0; i < FM_N_OP; i++) sum += b.op[i];
        assert_close(sum, b.seconds, 1e-12);
        assert_true(b.seconds >= b.cost.bytes / xeon.bandwidth * (1 - 1e-12));
        assert_true(b.seconds >= b.cost.flops / xeon.bf16 * (1 - 1e-12));
        assert_true(n / b.seconds > rate); /* company never costs throughput */
        rate = n / b.seconds;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_reads_the_active_parameters),
        cmocka_unit_test(quantised_weights_are_fewer_bytes),
        cmocka_unit_test(r1_mini_is_as_fast_as_worked_out_by_hand),
        cmocka_unit_test(experts_fill_up),
        cmocka_unit_test(a_step_is_no_faster_than_either_roof),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
