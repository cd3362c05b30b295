/* SPDX-License-Identifier: Apache-2.0 */
/* The formulas of the online benchmark; expected numbers are NumPy's. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../app/bench_online.h"

static void near(double got, double want)
{
    if (fabs(got - want) > 1e-9 * (1 + fabs(want))) fail_msg("%.15g, want %.15g", got, want);
}

static void gaps_are_numpys(void **state)
{
    (void)state;
    static const double want[] = {0.11731702249421477, 0.7525303577293803, 0.32918642338636234,
                                  0.2282356384439883, 0.04240621761558657};
    fm_mt               g;
    fm_mt_seed_numpy(&g, 42);
    for (int i = 0; i < 5; i++) near(fm_next_gap(&g, 4.0), want[i]);
}

static void spreads_are_numpys(void **state)
{
    (void)state;
    double          x[] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3.5};
    const fm_spread s   = fm_spread_of(x, 10);
    near(s.mean, 3.95);
    near(s.median, 3.75);
    near(s.std, 2.328626204439004);
    near(s.p90, 6.3);
    near(s.p95, 7.65);
    near(s.p99, 8.73);
    near(s.max, 9);

    double one = 7;
    near(fm_spread_of(&one, 1).p99, 7);
    near(fm_spread_of(&one, 1).std, 0);
    near(fm_spread_of(NULL, 0).mean, 0);
}

static void gaps_are_shared_by_the_tokens_of_an_event(void **state)
{
    (void)state;
    fm_online_answer a = {.sent = 100};
    fm_online_arrived(&a, 100.5, 1, 2);  /* the first event, two tokens: TTFT */
    fm_online_arrived(&a, 100.6, 1, 0);  /* no new tokens: the clock runs on */
    fm_online_arrived(&a, 101.1, 1, 3);  /* 0.6 s for three */
    fm_online_arrived(&a, 101.2, 1, -1); /* not counted by the server: one */
    fm_online_arrived(&a, 101.9, 0, -1); /* no text: none */
    near(a.ttft, 0.5);
    assert_int_equal(a.n_itl, 4);
    for (int i = 0; i < 3; i++) near(a.itl[i], 0.2);
    near(a.itl[3], 0.1);
    assert_int_equal(a.n_seen, 6);
    fm_online_answer_fini(&a);
}

static void text_that_comes_late_starts_the_count_anew(void **state)
{
    (void)state;
    fm_online_answer a = {.sent = 10};
    fm_online_arrived(&a, 11, 0, 1); /* ids without text, as from a server without a tokenizer */
    fm_online_arrived(&a, 12, 0, 1);
    near(a.ttft, 1);
    assert_int_equal(a.n_itl, 1);
    fm_online_arrived(&a, 13, 1, 1);
    near(a.ttft, 3);
    assert_int_equal(a.n_itl, 0);
    fm_online_arrived(&a, 13.5, 1, 1);
    near(a.itl[0], 0.5);
    fm_online_answer_fini(&a);
}

static void metrics_by_hand(void **state)
{
    (void)state;
    double           quick[] = {0.1, 0.3}, slow[] = {1, 1};
    char             why[] = "refused";
    fm_online_answer a[]   = {
          {.sent     = 50,
           .ttft     = 0.2,
           .latency  = 0.6,
           .n_prompt = 10,
           .n_output = 3,
           .itl      = quick,
           .n_itl    = 2},
          {.sent     = 50.5,
           .ttft     = 1,
           .latency  = 3,
           .n_prompt = 20,
           .n_output = 3,
           .itl      = slow,
           .n_itl    = 2},
          {.sent = 51, .ttft = 0.4, .latency = 0.4, .n_prompt = 5, .n_output = 1},
          {.sent = 51, .latency = 9, .n_prompt = 7, .n_output = 2, .error = why},
    };
    const fm_online_metrics m = fm_online_measure(a, 4, 4.0);
    assert_int_equal(m.completed, 3);
    assert_int_equal(m.failed, 1);
    assert_int_equal(m.n_input, 35);
    assert_int_equal(m.n_output, 7);
    near(m.request_throughput, 0.75);
    near(m.input_throughput, 8.75);
    near(m.output_throughput, 1.75);
    near(m.total_throughput, 10.5);
    near(m.concurrency, 1.0);
    near(m.e2e.mean, 4000.0 / 3);
    near(m.ttft.median, 400);
    near(m.tpot.mean, (200 + 1000) / 2.0); /* the one-token answer has no TPOT */
    near(m.itl.mean, 600);
    near(m.itl.max, 1000);
    /* tokens at 50.2 .3 .6 | 51.5 52.5 53.5 | 51.4; alive in second 51: all but the first */
    near(m.max_output_per_s, 3);
    assert_int_equal(m.max_concurrent, 2);
}

static void nothing_succeeded(void **state)
{
    (void)state;
    char                    why[] = "refused";
    fm_online_answer        a     = {.sent = 1, .latency = 1, .error = why};
    const fm_online_metrics m     = fm_online_measure(&a, 1, 0);
    assert_int_equal(m.completed, 0);
    near(m.itl.mean, 0);
    assert_int_equal(m.max_concurrent, 0);
    assert_int_equal(fm_online_measure(NULL, 0, 1).failed, 0);
}

static void a_run_fails_when_most_requests_do(void **state)
{
    (void)state;
    static const struct {
        int completed, failed;
        fm_status rc;
    } run[] = {{0, 0, FM_OK},   {9, 0, FM_OK},     {8, 1, FM_OK},       {1, 1, FM_OK},
               {4, 4, FM_OK},   {4, 5, FM_E_COMM}, {1, 1999, FM_E_COMM}, {0, 1, FM_E_COMM}};
    for (size_t i = 0; i < sizeof run / sizeof *run; i++) {
        const fm_online_metrics m = {.completed = run[i].completed, .failed = run[i].failed};
        assert_int_equal(fm_online_verdict(&m), run[i].rc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gaps_are_numpys),
        cmocka_unit_test(spreads_are_numpys),
        cmocka_unit_test(gaps_are_shared_by_the_tokens_of_an_event),
        cmocka_unit_test(text_that_comes_late_starts_the_count_anew),
        cmocka_unit_test(metrics_by_hand),
        cmocka_unit_test(nothing_succeeded),
        cmocka_unit_test(a_run_fails_when_most_requests_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
