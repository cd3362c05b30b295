/* SPDX-License-Identifier: Apache-2.0 */
/* What ops must read and compute, against the closed forms of bench/bound.h and by counting. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <string.h>

#include <cmocka.h>

#include "bench/bound.h"
#include "llm/load/config_read.h"
#include "llm/load/model_path.h"
#include "llm/op/cost.h"

enum { N_EXPERT = 16, TOP_K = 4 };

typedef struct {
    fm_model_config config;
    fm_weights      weights;
    fm_batch        batch;
    fm_matrix       up;
    fm_attn_weights attn;
    fm_run          run;
} stand;

/* One rank's part of the built-in shape, without values. */
static void set_up(stand *s)
{
    memset(s, 0, sizeof *s);
    const char *text = fm_builtin_config("r1-mini");
    assert_int_equal(fm_config_parse(&s->config, text, strlen(text), "r1-mini", NULL), FM_OK);
    s->weights = (fm_weights){.config = &s->config,
                              .shard  = fm_shard_whole(&s->config),
                              .act    = FM_BF16,
                              .n_head = s->config.n_head};
    s->up      = (fm_matrix){.dtype = FM_BF16};
    s->attn    = (fm_attn_weights){.v_up = &s->up};
    s->run     = (fm_run){.config = &s->config, .weights = &s->weights, .batch = &s->batch};
    s->run.limits.planes.plane[0] =
        (fm_plane){FM_PLANE_LATENT, s->config.kv_lora + s->config.rope, FM_BF16, 1};
}

static void assert_close(double got, double want)
{
    if (fabs(got - want) > 1e-9 * fabs(want)) fail_msg("%.12g, want %.12g", got, want);
}

static void products_read_each_weight_once(void **state)
{
    stand            s;
    const fm_matrix  w    = {.n = 64, .k = 128, .dtype = FM_BF16};
    const fm_matrix  half = {.n = 64, .k = 128, .dtype = FM_INT4};
    const fm_op_call call = {.op = FM_OP_LINEAR, .n_row = 3, .weights = &w};
    (void)state;
    set_up(&s);
    const fm_op_cost c = fm_op_cost_of(&s.run, &call, 1);
    assert_close(c.bytes, 2 * 64 * 128);
    assert_close(c.flops, 2 * 3 * 64 * 128);
    const fm_op_call in_four_bits = {.op = FM_OP_HEAD, .n_row = 1, .weights = &half};
    assert_close(fm_op_cost_of(&s.run, &in_four_bits, 1).bytes, 64 * 128 / 2 + 64 * 128 / 32 * 2);
    const fm_op_call nothing = {.op = FM_OP_RMSNORM, .n_row = 3};
    assert_true(fm_op_cost_of(&s.run, &nothing, 1).bytes == 0);
}

static void check_attention(int pos0, int n_row, int generated)
{
    stand          s;
    const fm_roof  roof  = {.bandwidth = 1, .bf16 = 1};
    const fm_shape shape = {.n_seq = 1, .n_row = n_row, .pos0 = pos0, .generated = generated};
    fm_span        span  = {
                .n_row = n_row, .pos0 = pos0, .form = generated ? FM_FORM_GENERATED : FM_FORM_PROMPT};
    set_up(&s);
    s.batch               = (fm_batch){.n_row = n_row, .n_span = 1, .span = &span};
    const fm_op_call call = {.op = FM_OP_ATTEND, .n_row = n_row, .weights = &s.attn};
    const fm_op_cost got  = fm_op_cost_of(&s.run, &call, 1);
    const fm_cost    want = fm_cost_attention(&roof, &s.config, &shape);
    assert_close(got.flops, want.flops);
    assert_close(got.bytes, want.bytes);
}

static void attention_is_that_of_the_bound(void **state)
{
    (void)state;
    check_attention(0, 1, 1);
    check_attention(999, 1, 1);
    check_attention(0, 512, 0);
    check_attention(300, 100, 0);
}

/* Three rows that choose five experts, of which this rank has all but the last. */
static void experts_are_counted_by_the_routing(void **state)
{
    stand          s;
    int32_t        chosen[3 * TOP_K] = {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 15};
    fm_mlp_weights expert[N_EXPERT]  = {{0}};
    (void)state;
    set_up(&s);
    s.config.n_expert          = N_EXPERT;
    s.config.top_k             = TOP_K;
    s.batch.n_row              = 3;
    s.run.act.route_all.expert = chosen;
    for (int e = 0; e < N_EXPERT - 1; e++) {
        expert[e].gate_up = (fm_matrix){.n = 64, .k = 32, .dtype = FM_BF16};
        expert[e].down    = (fm_matrix){.n = 32, .k = 32, .dtype = FM_BF16};
    }
    const double     each = 64 * 32 + 32 * 32;
    const fm_op_call call = {.op = FM_OP_EXPERTS, .n_row = 3, .weights = expert};
    const fm_op_cost c    = fm_op_cost_of(&s.run, &call, 1);
    assert_close(c.bytes, 4 * 2 * each);
    assert_close(c.flops, 11 * 2 * each);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_read_each_weight_once),
        cmocka_unit_test(attention_is_that_of_the_bound),
        cmocka_unit_test(experts_are_counted_by_the_routing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
