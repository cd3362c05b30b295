/* SPDX-License-Identifier: Apache-2.0 */
/* Finding a slow rank: noise alone names none, a slowed one is named, whatever the number of ranks,
 * the size and the shape of the noise. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "probe/compare.h"

enum { REPEATS = 5, MOST = 16 };

static const fm_metric bandwidth = {"memory bandwidth", "GB/s", 1e-9, 0, 0.10, 0};
static const fm_metric latency   = {"latency", "us", 1e6, 1, 1.0, 10e-6};

static uint64_t drawn;

static double uniform(void) { return ((double)fm_rng_u32(2025, drawn++) + 0.5) * 0x1p-32; }

static double normal(void)
{
    return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
}

/* Noise of relative size sigma: on both sides, or a disturbance that only slows down. */
static double noisy(const fm_metric *m, double x, double sigma, int one_sided)
{
    if (!one_sided) return x * fmax(0.05, 1 + sigma * normal());
    const double slower = 1 - sigma * log(uniform());
    return m->is_time ? x * slower : x / slower;
}

static fm_rate measured(const fm_metric *m, double x, double sigma, int one_sided)
{
    double y[REPEATS];
    for (int i = 0; i < REPEATS; i++) y[i] = noisy(m, x, sigma, one_sided);
    return m->is_time ? fm_rate_of_times(y, REPEATS) : fm_rate_of(y, REPEATS);
}

typedef struct {
    int hits, others; /* how often the slowed one was named, and how often another */
} outcome;

/* One of n is slowed to `speed`; 1: none is. */
static outcome try_once(const fm_metric *m, int n, double sigma, int one_sided, double speed)
{
    fm_sample    s[MOST];
    fm_deviation d[MOST];
    const int    slow = (int)(uniform() * n);
    const double x    = m->is_time ? 20e-6 : 2e10;
    outcome      o    = {0};
    for (int i = 0; i < n; i++) {
        const double mine = i != slow ? x : m->is_time ? x / speed : x * speed;
        s[i]              = (fm_sample){"cpu", measured(m, mine, sigma, one_sided)};
    }
    fm_compare(m, s, n, d);
    for (int i = 0; i < n; i++) {
        if (d[i].off > 0 && i == slow && speed < 1)
            o.hits++;
        else if (d[i].off > 0)
            o.others++;
    }
    return o;
}

static outcome try_often(const fm_metric *m, int n, double sigma, int one_sided, double speed,
                         int trials)
{
    outcome sum = {0};
    for (int t = 0; t < trials; t++) {
        const outcome o = try_once(m, n, sigma, one_sided, speed);
        sum.hits += o.hits;
        sum.others += o.others;
    }
    return sum;
}

static const int sizes[] = {2, 3, 4, 8, 16};

static void noise_accuses_nobody(void **state)
{
    (void)state;
    static const double sigma[] = {0.002, 0.01, 0.02, 0.04, 0.10, 0.30};
    enum { TRIALS = 2000 };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (size_t k = 0; k < sizeof sigma / sizeof sigma[0]; k++)
            for (int shape = 0; shape < 4; shape++) {
                const fm_metric *m = shape / 2 ? &latency : &bandwidth;
                const outcome    o = try_often(m, sizes[i], sigma[k], shape % 2, 1, TRIALS);
                const int most = sigma[k] > 0.03 ? TRIALS / 400 : 0; /* noise as large as a fault */
                if (o.others > most)
                    fail_msg("%s of %d, noise %g, shape %d: %d of %d accused", m->name, sizes[i],
                             sigma[k], shape, o.others, TRIALS);
            }
}

static void the_slowed_one_is_named(void **state)
{
    (void)state;
    static const struct {
        double sigma, speed;
    } fault[] = {{0.005, 0.85}, {0.01, 0.8}, {0.02, 0.7}, {0.03, 0.5}, {0.04, 0.4}};
    enum { TRIALS = 500 };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (size_t k = 0; k < sizeof fault / sizeof fault[0]; k++)
            for (int one_sided = 0; one_sided < 2; one_sided++) {
                const outcome o = try_often(&bandwidth, sizes[i], fault[k].sigma, one_sided,
                                            fault[k].speed, TRIALS);
                if (o.hits < TRIALS - TRIALS / 50 || o.others > 0)
                    fail_msg("one of %d at %g of its speed, noise %g: named %d of %d times, others "
                             "%d times",
                             sizes[i], fault[k].speed, fault[k].sigma, o.hits, TRIALS, o.others);
            }
}

static void a_delay_is_named(void **state)
{
    (void)state;
    for (size_t i = 1; i < sizeof sizes / sizeof sizes[0]; i++) {
        const outcome o = try_often(&latency, sizes[i], 0.05, 1, 0.1, 500);
        assert_int_equal(o.hits, 500);
        assert_int_equal(o.others, 0);
    }
}

static fm_rate exactly(double median, double spread, double best)
{
    return (fm_rate){median, spread, best, REPEATS};
}

static void who_was_fast_once_is_unsteady(void **state)
{
    (void)state;
    fm_deviation    d[4];
    const fm_sample s[4] = {{"a", exactly(20, 0.2, 20.4)},
                            {"a", exactly(12, 4, 19.9)},
                            {"a", exactly(20, 0.2, 20.3)},
                            {"a", exactly(20, 0.2, 20.3)}};
    fm_compare(&bandwidth, s, 4, d);
    assert_true(d[1].off == 0 && d[1].is_unsteady && d[1].n_other == 3 && d[1].others == 20);
    assert_true(!d[0].is_unsteady && d[0].off == 0);
}

/* A neighbour that pauses for one of five windows is one all the same. */
static void who_was_fast_once_in_five_is_slow(void **state)
{
    (void)state;
    fm_deviation    d[4];
    const fm_sample s[4] = {{"a", exactly(16.3, 0.76, 17.1)},
                            {"a", exactly(16.3, 0.85, 16.9)},
                            {"a", exactly(6.8, 2.38, 16.3)},
                            {"a", exactly(15.3, 0.76, 17.0)}};
    fm_compare(&bandwidth, s, 4, d);
    assert_true(d[2].off > 0.5 && !d[2].is_unsteady);
    assert_true(d[0].off == 0 && d[1].off == 0 && d[3].off == 0);
}

static void kinds_are_not_mixed(void **state)
{
    (void)state;
    fm_deviation    d[5];
    const fm_sample s[5] = {{"old", exactly(10, 0.1, 10.1)},
                            {"new", exactly(20, 0.2, 20.2)},
                            {"new", exactly(20, 0.2, 20.2)},
                            {NULL, exactly(1, 0, 1)},
                            {"new", {.n = 0}}};
    fm_compare(&bandwidth, s, 5, d);
    for (int i = 0; i < 5; i++) assert_true(d[i].off == 0 && !d[i].is_unsteady);
    assert_int_equal(d[0].n_other, 0);
    assert_int_equal(d[1].n_other, 1);
}

static void small_differences_of_small_times_do_not_count(void **state)
{
    (void)state;
    fm_deviation    d[4];
    const fm_sample s[4] = {{"a", exactly(1e-6, 0, 1e-6)},
                            {"a", exactly(8e-6, 0, 8e-6)},
                            {"a", exactly(1e-6, 0, 1e-6)},
                            {"a", exactly(50e-6, 0, 50e-6)}};
    fm_compare(&latency, s, 4, d);
    assert_true(d[1].off == 0 && d[3].off > 40);
}

static void words(void **state)
{
    (void)state;
    char w[32];
    fm_deviation_words(&bandwidth, 0.314, w, sizeof w);
    assert_string_equal(w, "31 % below");
    fm_deviation_words(&latency, 2.3, w, sizeof w);
    assert_string_equal(w, "3.3 times");
    fm_deviation_words(&latency, 84, w, sizeof w);
    assert_string_equal(w, "85 times");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(noise_accuses_nobody),
        cmocka_unit_test(the_slowed_one_is_named),
        cmocka_unit_test(a_delay_is_named),
        cmocka_unit_test(who_was_fast_once_is_unsteady),
        cmocka_unit_test(who_was_fast_once_in_five_is_slow),
        cmocka_unit_test(kinds_are_not_mixed),
        cmocka_unit_test(small_differences_of_small_times_do_not_count),
        cmocka_unit_test(words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
