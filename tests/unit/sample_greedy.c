/* SPDX-License-Identifier: Apache-2.0 */
/* Greedy choice, and what happens to logits before any choice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "llm/sample/sample.h"

static fm_sampling greedy(void)
{
    fm_sampling p = fm_sampling_default();
    p.temperature = 0;
    return p;
}

/* Samples once from a copy of x [n]. */
static fm_sampled sample_after(const fm_sampling *p, const float *x, int n, const int32_t *output,
                               int n_output)
{
    static const int32_t eos[] = {1, 1000000, -1}; /* ids outside are ignored */
    fm_sampler *s = NULL;
    fm_sampled  out;
    float      *copy = malloc((size_t)n * sizeof *copy); /* exact size: reads past it are seen */
    assert_int_equal(fm_sampler_create(&s, n), FM_OK);
    memcpy(copy, x, (size_t)n * sizeof *copy);
    memset(&out, 0xa5, sizeof out);
    fm_sample(s, p, copy, output, n_output, eos, 3, &out);
    fm_sampler_destroy(s);
    free(copy);
    return out;
}

static int32_t pick(const fm_sampling *p, const float *x, int n)
{
    return sample_after(p, x, n, NULL, 0).id;
}

static void close_to(float got, double want)
{
    if (!(fabs((double)got - want) < 1e-6 * (1 + fabs(want)))) fail_msg("%g, want %g", got, want);
}

/* Sizes around the lanes and blocks inside; the largest value everywhere once. */
static void largest_at_every_place(void **state)
{
    (void)state;
    static const int  sizes[] = {1, 2, 31, 32, 33, 65, 4095, 4096, 4097, 8200};
    static float      x[8200];
    const fm_sampling p = greedy();
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        const int n = sizes[k], step = n / 50 + 1;
        for (int i = 0; i < n; i++) x[i] = -5 - (float)(fm_mix32((uint32_t)i) % 1000);
        for (int i = 0; i < n; i += step) {
            const float was = x[i];
            x[i]            = -4.5f;
            assert_int_equal(pick(&p, x, n), i);
            x[i] = was;
        }
    }
}

static void ties_go_to_the_lowest_id(void **state)
{
    (void)state;
    static float      x[9000];
    const fm_sampling p = greedy();
    assert_int_equal(pick(&p, x, 9000), 0);
    x[0] = -0.0f; /* equal to the zeros behind it */
    assert_int_equal(pick(&p, x, 9000), 0);
    x[8999] = x[4100] = x[4099] = 1;
    assert_int_equal(pick(&p, x, 9000), 4099);
    x[63] = 1;
    assert_int_equal(pick(&p, x, 9000), 63);
}

static void nan_and_infinity(void **state)
{
    (void)state;
    float       x[100];
    fm_sampling p = greedy();
    for (int i = 0; i < 100; i++) x[i] = NAN;
    assert_int_equal(pick(&p, x, 100), 0);
    for (int i = 0; i < 100; i++) x[i] = i % 2 ? NAN : -INFINITY;
    assert_int_equal(pick(&p, x, 100), 0);
    x[77] = -1e30f;
    assert_int_equal(pick(&p, x, 100), 77);
    x[50] = INFINITY;
    assert_int_equal(pick(&p, x, 100), 50);

    p.logprobs = 1;
    assert_true(sample_after(&p, x, 100, NULL, 0).logprob == 0); /* certain */
    x[60] = INFINITY;
    close_to(sample_after(&p, x, 100, NULL, 0).logprob, log(0.5));
}

static void nothing_possible_is_token_zero(void **state)
{
    (void)state;
    float x[40];
    for (int i = 0; i < 40; i++) x[i] = i % 3 ? -INFINITY : NAN;
    for (int temperature = 0; temperature < 2; temperature++) {
        fm_sampling p  = fm_sampling_default();
        p.temperature  = (float)temperature;
        p.top_logprobs = 5;
        p.logprobs     = 1;
        p.top_p        = 0.5f;
        const fm_sampled out = sample_after(&p, x, 40, NULL, 0);
        assert_int_equal(out.id, 0);
        assert_int_equal(out.n_top, 0);
        assert_true(out.logprob == -INFINITY);
    }
}

/* Log-probability of token id after whatever p does to four logits. */
static float logprob_of(fm_sampling p, const float *x, const int32_t *output, int n_output, int id)
{
    p.top_logprobs       = 4;
    const fm_sampled out = sample_after(&p, x, 4, output, n_output);
    for (int i = 0; i < out.n_top; i++)
        if (out.top[i].id == id) return out.top[i].logprob;
    return -INFINITY;
}

/* The change of logit `id` against an untouched token 3. */
static float change(const fm_sampling *p, const float *x, const int32_t *output, int n, int id)
{
    return logprob_of(*p, x, output, n, id) - logprob_of(*p, x, output, n, 3) - (x[id] - x[3]);
}

static void penalties_count_output_tokens(void **state)
{
    (void)state;
    static const float   x[4]     = {2, -1, 0.5f, 0};
    static const int32_t output[] = {0, 1, 0, 0};
    fm_sampling          p        = greedy();

    p.frequency_penalty = 0.25f;
    close_to(change(&p, x, output, 4, 0), -0.75);
    close_to(change(&p, x, output, 4, 1), -0.25);
    close_to(change(&p, x, output, 4, 2), 0);

    p.presence_penalty = 0.5f;
    close_to(change(&p, x, output, 4, 0), -1.25);
    close_to(change(&p, x, output, 4, 1), -0.75);

    p.repetition_penalty = 2; /* after the others: (2-1.25)/2 and (-1-0.75)*2 */
    close_to(change(&p, x, output, 4, 0), 0.375 - 2);
    close_to(change(&p, x, output, 4, 1), -3.5 + 1);
    close_to(change(&p, x, output, 4, 2), 0);

    close_to(change(&p, x, output, 0, 0), 0);
}

static void penalties_leave_no_trace(void **state)
{
    (void)state;
    static const int32_t output[] = {2, 2, 2, 1};
    fm_sampling          p        = greedy();
    fm_sampler          *s        = NULL;
    fm_sampled           first, again;
    p.frequency_penalty = 1;
    p.logprobs          = 1;
    assert_int_equal(fm_sampler_create(&s, 4), FM_OK);
    fm_sample(s, &p, (float[]){0, 1, 2, 3}, output, 4, NULL, 0, &first);
    fm_sample(s, &p, (float[]){0, 1, 2, 3}, output, 4, NULL, 0, &again);
    assert_true(first.logprob == again.logprob && first.id == again.id);
    fm_sampler_destroy(s);
}

static void min_new_tokens_masks_stops(void **state)
{
    (void)state;
    static const float   x[4]     = {1, 9, 8, 0}; /* 1 is end of text, 2 a stop id */
    static const int32_t output[] = {3, 3, 3};
    fm_logit_bias        bias     = {1, 50};
    fm_sampling          p        = greedy();
    p.stop_id[0]     = 2;
    p.n_stop_id      = 1;
    p.min_new_tokens = 3;
    assert_int_equal(sample_after(&p, x, 4, output, 0).id, 0);
    assert_int_equal(sample_after(&p, x, 4, output, 2).id, 0);
    assert_int_equal(sample_after(&p, x, 4, output, 3).id, 1);

    p.bias   = &bias; /* no bias lifts the mask */
    p.n_bias = 1;
    assert_int_equal(sample_after(&p, x, 4, output, 2).id, 0);
}

static void bias_is_added_last(void **state)
{
    (void)state;
    static const float         x[4]     = {2, 0, 0, 0};
    static const int32_t       output[] = {0};
    static const fm_logit_bias bias[]   = {{0, 1}, {2, 1.75f}, {2, 1.5f}};
    fm_sampling                p        = greedy();
    p.bias               = bias;
    p.n_bias             = 3;
    p.repetition_penalty = 2;
    close_to(change(&p, x, output, 1, 0), 2 / 2 + 1 - 2);
    close_to(change(&p, x, output, 1, 2), 3.25);
    assert_int_equal(sample_after(&p, x, 4, output, 1).id, 2);
}

static void top_logprobs_best_first(void **state)
{
    (void)state;
    static const float x[6] = {1, 3, -INFINITY, 3, 2, NAN};
    const double       z    = exp(1) + 2 * exp(3) + exp(2);
    fm_sampling        p    = greedy();
    p.top_logprobs          = 5;
    const fm_sampled out    = sample_after(&p, x, 6, NULL, 0);
    const int32_t    want[] = {1, 3, 4, 0};
    assert_int_equal(out.id, 1);
    assert_int_equal(out.n_top, 4); /* what is impossible has no place */
    for (int i = 0; i < 4; i++) {
        assert_int_equal(out.top[i].id, want[i]);
        close_to(out.top[i].logprob, (double)x[want[i]] - log(z));
    }
    p.top_logprobs = 1;
    assert_int_equal(sample_after(&p, x, 6, NULL, 0).n_top, 1);
}

static void unasked_logprobs_stay_zero(void **state)
{
    (void)state;
    const fm_sampling p   = greedy();
    const fm_sampled  out = sample_after(&p, (float[]){1, 2, 3}, 3, NULL, 0);
    assert_true(out.id == 2 && out.logprob == 0 && out.n_top == 0);
}

static void temperature_enters_logprobs(void **state)
{
    (void)state;
    static const float x[3] = {1, 2, 4};
    fm_sampling        p    = fm_sampling_default();
    p.logprobs              = 1;
    p.temperature           = 0.5f;
    p.top_k                 = 1; /* the filters do not */
    const double z          = exp(2) + exp(4) + exp(8);
    close_to(sample_after(&p, x, 3, NULL, 0).logprob, 8 - log(z));
    p.temperature = 1e-7f; /* counts as zero: greedy, and log-probabilities at 1 */
    close_to(sample_after(&p, x, 3, NULL, 0).logprob, 4 - log(exp(1) + exp(2) + exp(4)));
}

static void logprobs_of_a_real_vocabulary(void **state)
{
    (void)state;
    enum { V = 129280 };
    float      *x = malloc(V * sizeof *x);
    double      z = 0;
    fm_sampling p = greedy();
    p.logprobs    = 1;
    for (int i = 0; i < V; i++) x[i] = (float)fm_mix32((uint32_t)i) * 0x1p-27f - 16; /* [-16, 16) */
    const fm_sampled out = sample_after(&p, x, V, NULL, 0);
    for (int i = 0; i < V; i++) z += exp((double)x[i] - (double)x[out.id]);
    close_to(out.logprob, -log(z));
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(largest_at_every_place),
        cmocka_unit_test(ties_go_to_the_lowest_id),
        cmocka_unit_test(nan_and_infinity),
        cmocka_unit_test(nothing_possible_is_token_zero),
        cmocka_unit_test(penalties_count_output_tokens),
        cmocka_unit_test(penalties_leave_no_trace),
        cmocka_unit_test(min_new_tokens_masks_stops),
        cmocka_unit_test(bias_is_added_last),
        cmocka_unit_test(top_logprobs_best_first),
        cmocka_unit_test(unasked_logprobs_stay_zero),
        cmocka_unit_test(temperature_enters_logprobs),
        cmocka_unit_test(logprobs_of_a_real_vocabulary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
