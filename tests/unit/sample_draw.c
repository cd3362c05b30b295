/* SPDX-License-Identifier: Apache-2.0 */
/* The seeded draw: right frequencies, and nothing but seed and position in it. */
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

enum { MAX_VOCAB = 5000 };

static int32_t draw(fm_sampler *s, const fm_sampling *p, const float *x, int n, int position)
{
    static float         copy[MAX_VOCAB];
    static const int32_t output[1 << 16]; /* without penalties only its length matters */
    fm_sampled           out;
    memcpy(copy, x, (size_t)n * sizeof *copy);
    fm_sample(s, p, copy, output, position, NULL, 0, &out);
    assert_in_range(out.id, 0, n - 1);
    return out.id;
}

static fm_sampler *make(int vocab)
{
    fm_sampler *s = NULL;
    assert_int_equal(fm_sampler_create(&s, vocab), FM_OK);
    return s;
}

typedef enum { OVER_SEEDS, OVER_POSITIONS } series;

/* Counts n_draw draws from 8 logits. */
static void tally(int *count, const fm_sampling *given, const float *x, series what, int n_draw)
{
    fm_sampler *s = make(8);
    fm_sampling p = *given;
    memset(count, 0, 8 * sizeof *count);
    for (int i = 0; i < n_draw; i++) {
        p.seed = what == OVER_SEEDS ? (uint64_t)i : 77;
        count[draw(s, &p, x, 8, what == OVER_SEEDS ? 5 : i)]++;
    }
    fm_sampler_destroy(s);
}

/* Chi-square of 20,000 draws against probabilities; 29.9 is the 1e-4 point of
 * seven degrees of freedom. */
static void follows(const fm_sampling *p, const float *x, const double *prob)
{
    for (series what = OVER_SEEDS; what <= OVER_POSITIONS; what++) {
        const int n = 20000;
        int       count[8];
        double    chi2 = 0;
        tally(count, p, x, what, n);
        for (int i = 0; i < 8; i++) {
            const double want = prob[i] * n;
            if (want > 0) chi2 += (count[i] - want) * (count[i] - want) / want;
            else assert_int_equal(count[i], 0);
        }
        if (chi2 > 29.9) fail_msg("series %d: chi-square %g", (int)what, chi2);
    }
}

static const float eight[8] = {0.5f, 2, -1, 1.25f, 2, -INFINITY, 0, -3};

/* softmax(x / t) over the tokens in `keep` */
static void softmax(double *prob, const float *x, double t, const int *keep)
{
    double z = 0;
    for (int i = 0; i < 8; i++) z += prob[i] = keep[i] ? exp((double)x[i] / t) : 0;
    for (int i = 0; i < 8; i++) prob[i] /= z;
}

static void plain_frequencies(void **state)
{
    (void)state;
    static const int all[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    static const float temperature[] = {1, 0.4f, 3};
    for (int i = 0; i < 3; i++) {
        double      prob[8];
        fm_sampling p = fm_sampling_default();
        p.temperature = temperature[i];
        softmax(prob, eight, (double)p.temperature, all);
        follows(&p, eight, prob);
    }
}

/* Sorted: 1 4 3 0 6 2 7 with 0.346 0.346 0.164 0.077 0.047 0.017 0.002. */
static void filtered_frequencies(void **state)
{
    (void)state;
    static const struct {
        int   top_k;
        float top_p, min_p;
        int   keep[8];
    } cases[] = {
        {3, 1, 0, {0, 1, 0, 1, 1, 0, 0, 0}},
        {1, 1, 0, {0, 1, 0, 0, 0, 0, 0, 0}},         /* a tie: the lower id */
        {100, 1, 0, {1, 1, 1, 1, 1, 0, 1, 1}},
        {-1, 0.5f, 0, {0, 1, 0, 0, 1, 0, 0, 0}},     /* the one that crosses stays */
        {-1, 0.3f, 0, {0, 1, 0, 0, 0, 0, 0, 0}},
        {-1, 0.8f, 0, {0, 1, 0, 1, 1, 0, 0, 0}},
        {-1, 1, 0.2f, {1, 1, 0, 1, 1, 0, 0, 0}},     /* relative to the best */
        {-1, 1, 1, {0, 1, 0, 0, 1, 0, 0, 0}},
        {3, 0.8f, 0.5f, {0, 1, 0, 0, 1, 0, 0, 0}},   /* each on the unfiltered distribution */
        {4, 0.75f, 0.01f, {0, 1, 0, 1, 1, 0, 0, 0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double      prob[8];
        fm_sampling p = fm_sampling_default();
        p.top_k       = cases[i].top_k;
        p.top_p       = cases[i].top_p;
        p.min_p       = cases[i].min_p;
        softmax(prob, eight, 1, cases[i].keep);
        follows(&p, eight, prob);
    }
}

/* 5000 equal tokens in 50 groups; 98.0 is the 4e-5 point of 49 degrees. */
static void no_favourites_in_a_large_vocabulary(void **state)
{
    (void)state;
    static float x[MAX_VOCAB];
    int          count[50] = {0};
    double       chi2      = 0;
    fm_sampler  *s         = make(MAX_VOCAB);
    fm_sampling  p         = fm_sampling_default();
    for (int i = 0; i < 10000; i++) {
        p.seed = (uint64_t)i / 100;
        count[draw(s, &p, x, MAX_VOCAB, i % 100) / 100]++;
    }
    for (int i = 0; i < 50; i++) chi2 += (count[i] - 200) * (count[i] - 200) / 200.0;
    if (chi2 > 98) fail_msg("chi-square %g", chi2);
    fm_sampler_destroy(s);
}

/* The same draw again, after others, in another sampler. */
static void only_seed_and_position_matter(void **state)
{
    (void)state;
    float       x[500];
    fm_sampler *a = make(500), *b = make(500);
    fm_sampling p = fm_sampling_default(), other = fm_sampling_default();
    other.temperature = 2;
    other.top_p       = 0.5f;
    for (int i = 0; i < 500; i++) x[i] = (float)(fm_mix32((uint32_t)i) % 64) * 0.125f;
    int differ = 0, last = -1;
    for (int i = 0; i < 200; i++) {
        p.seed             = (uint64_t)(i / 10) << 33 | 9;
        const int32_t once = draw(a, &p, x, 500, i % 10);
        draw(b, &other, x, 500, i);
        assert_int_equal(draw(b, &p, x, 500, i % 10), once);
        differ += once != last;
        last = once;
    }
    assert_true(differ > 150);
    fm_sampler_destroy(a);
    fm_sampler_destroy(b);
}

/* Dropping losers leaves the winner: every token runs its own race. */
static void filters_keep_a_winner_they_do_not_drop(void **state)
{
    (void)state;
    float       x[300];
    fm_sampler *s = make(300);
    int         survived = 0;
    for (int i = 0; i < 300; i++) x[i] = (float)(fm_mix32((uint32_t)i) % 1000) * 0.01f;
    for (int i = 0; i < 300; i++) {
        fm_sampling p      = fm_sampling_default();
        p.seed             = 3;
        const int32_t free = draw(s, &p, x, 300, i);
        int           rank = 0; /* tokens before it in the order */
        for (int j = 0; j < 300; j++) rank += x[j] > x[free] || (x[j] == x[free] && j < free);
        p.top_k = rank + 1;
        assert_int_equal(draw(s, &p, x, 300, i), free);
        if (rank) {
            p.top_k = rank;
            assert_int_not_equal(draw(s, &p, x, 300, i), free);
            survived++;
        }
    }
    assert_true(survived > 100);
    fm_sampler_destroy(s);
}

static void a_shift_of_all_logits_changes_nothing(void **state)
{
    (void)state;
    float       x[256], y[256];
    fm_sampler *s = make(256);
    fm_sampling p = fm_sampling_default();
    p.top_p       = 0.9f;
    for (int i = 0; i < 256; i++) { /* sixteenths: the sums are exact */
        x[i] = (float)(fm_mix32((uint32_t)i) % 128) * 0.0625f;
        y[i] = x[i] - 1000;
    }
    for (int i = 0; i < 200; i++) assert_int_equal(draw(s, &p, x, 256, i), draw(s, &p, y, 256, i));
    fm_sampler_destroy(s);
}

static void certain_tokens_are_drawn(void **state)
{
    (void)state;
    float       x[64];
    int         seen[64] = {0};
    fm_sampler *s        = make(64);
    fm_sampling p        = fm_sampling_default();
    for (int i = 0; i < 64; i++) x[i] = i % 2 ? NAN : 3e38f;
    x[9] = x[40] = INFINITY;
    p.top_p = 0.99f;
    for (int i = 0; i < 100; i++) seen[draw(s, &p, x, 64, i)]++;
    assert_int_equal(seen[9] + seen[40], 100);
    assert_in_range(seen[9], 25, 75);
    fm_sampler_destroy(s);
}

/* The definition is in integers and in sums of fixed order, so these ids hold on
 * every machine (a Python program in doubles gives them, too); a change of them is
 * a change for everyone who set a seed. */
static void pinned_draws(void **state)
{
    (void)state;
    static const int32_t want[8] = {306, 266, 263, 864, 745, 494, 205, 326};
    float                x[1000];
    fm_sampler          *s = make(1000);
    fm_sampling          p = fm_sampling_default();
    p.seed                 = 2025;
    p.top_p                = 0.95f;
    p.temperature          = 0.6f;
    for (int i = 0; i < 1000; i++) x[i] = (float)(fm_mix32((uint32_t)i) % 4096) * 0x1p-8f;
    for (int i = 0; i < 8; i++) assert_int_equal(draw(s, &p, x, 1000, i), want[i]);
    fm_sampler_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_frequencies),
        cmocka_unit_test(filtered_frequencies),
        cmocka_unit_test(no_favourites_in_a_large_vocabulary),
        cmocka_unit_test(only_seed_and_position_matter),
        cmocka_unit_test(filters_keep_a_winner_they_do_not_drop),
        cmocka_unit_test(a_shift_of_all_logits_changes_nothing),
        cmocka_unit_test(certain_tokens_are_drawn),
        cmocka_unit_test(pinned_draws),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
