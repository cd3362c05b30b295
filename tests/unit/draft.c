/* SPDX-License-Identifier: Apache-2.0 */
/* Drafts: what an n-gram index proposes, and how many drafts pay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "llm/draft/gain.h"
#include "llm/draft/ngram.h"

enum { MAX = 600 };

static void what_followed_is_proposed(void **state)
{
    (void)state;
    const int32_t text[] = {7, 1, 2, 3, 4, 9, 8, 1, 2};
    int32_t       draft[4];
    fm_ngram     *g = NULL;
    assert_int_equal(fm_ngram_create(&g, MAX, 2, 8), FM_OK);
    assert_int_equal(fm_ngram_propose(g, text, 9, draft, 3), 3);
    assert_int_equal(draft[0], 3);
    assert_int_equal(draft[1], 4);
    assert_int_equal(draft[2], 9);
    fm_ngram_destroy(g);
}

static void the_longest_match_wins(void **state)
{
    (void)state;
    const int32_t text[] = {5, 1, 2, 30, 6, 1, 2, 40, 5, 1, 2}; /* the newer one is shorter */
    int32_t       draft[1];
    fm_ngram     *g = NULL;
    assert_int_equal(fm_ngram_create(&g, MAX, 2, 8), FM_OK);
    assert_int_equal(fm_ngram_propose(g, text, 11, draft, 1), 1);
    assert_int_equal(draft[0], 30);
    assert_int_equal(fm_ngram_propose(g, text, 3, draft, 1), 0); /* nothing stood before */
    fm_ngram_destroy(g);
}

/* The longest match of at least two tokens, of equal ones the newest; by trying all. */
static int slow_propose(const int32_t *t, int n, int32_t *first)
{
    int best = 1;
    for (int at = n - 2; at >= 0; at--) {
        int m = 0;
        while (m < 8 && m <= at && t[at - m] == t[n - 1 - m]) m++;
        if (m <= best) continue;
        best   = m;
        *first = t[at + 1];
    }
    return best > 1;
}

/* Chains are short here, so that the bound on their length is not met. */
static void a_growing_text_agrees_with_trying_all(void **state)
{
    (void)state;
    int32_t   text[MAX], draft[2], want = 0;
    fm_ngram *g = NULL;
    assert_int_equal(fm_ngram_create(&g, MAX, 2, 8), FM_OK);
    for (int n = 0; n < MAX;) {
        text[n] = (int32_t)(fm_rng_u32(5, (uint64_t)n) % 12);
        n++;
        const int got = fm_ngram_propose(g, text, n, draft, 2);
        assert_int_equal(got > 0, slow_propose(text, n, &want));
        if (got) assert_int_equal(draft[0], want);
    }
    fm_ngram_destroy(g);
}

/* A text that is longer than the window: what stood within it is found, what fell out is not. */
static void a_long_text_is_found_within_the_window(void **state)
{
    (void)state;
    enum { LONG = 2 * FM_NGRAM_WINDOW };
    static int32_t text[LONG + 2];
    int32_t        draft[1];
    fm_ngram      *g = NULL;
    assert_true(fm_ngram_bytes(LONG) == fm_ngram_bytes(FM_NGRAM_WINDOW));
    assert_int_equal(fm_ngram_create(&g, LONG + 2, 2, 8), FM_OK);
    for (int back = FM_NGRAM_WINDOW - 100; back < FM_NGRAM_WINDOW + 200; back += 200) {
        for (int i = 0; i < LONG; i++) text[i] = i;
        memcpy(text + LONG, text + LONG - back, 2 * sizeof *text);
        fm_ngram_serve(g, (uint64_t)back);
        for (int n = 1; n < LONG; n += 1000) (void)fm_ngram_propose(g, text, n, draft, 1);
        assert_int_equal(fm_ngram_propose(g, text, LONG + 2, draft, 1), back < FM_NGRAM_WINDOW);
        if (back < FM_NGRAM_WINDOW) assert_int_equal(draft[0], text[LONG - back + 2]);
    }
    fm_ngram_destroy(g);
}

/* Another sequence, although its text is shorter, finds nothing of the one before. */
static void an_index_serves_one_sequence_after_another(void **state)
{
    (void)state;
    const int32_t a[] = {1, 2, 3, 1, 2}, b[] = {1, 2, 9, 1, 2};
    int32_t       draft[1];
    fm_ngram     *g = NULL;
    assert_int_equal(fm_ngram_create(&g, MAX, 2, 8), FM_OK);
    fm_ngram_serve(g, 1);
    assert_int_equal(fm_ngram_propose(g, a, 5, draft, 1), 1);
    assert_int_equal(draft[0], 3);
    fm_ngram_serve(g, 2);
    assert_int_equal(fm_ngram_propose(g, b, 3, draft, 1), 0);
    assert_int_equal(fm_ngram_propose(g, b, 5, draft, 1), 1);
    assert_int_equal(draft[0], 9);
    fm_ngram_destroy(g);
}

static void drafts_pay_where_rows_are_cheap(void **state)
{
    (void)state;
    fm_step_cost cheap = {0}, dear = {0};
    for (int i = 0; i < 100; i++) { /* seconds = 1 + b * rows */
        const int rows = 4 + i % 5;
        fm_step_cost_add(&cheap, rows, 4, 1 + 0.01 * rows);
        fm_step_cost_add(&dear, rows, 4, 1 + 1.0 * rows);
    }
    assert_true(fm_step_cost_threshold(&cheap) < 0.05);
    assert_true(fm_step_cost_threshold(&dear) > 0.5);
    assert_int_equal(fm_drafts_that_pay(0.8, fm_step_cost_threshold(&cheap), 3), 3);
    assert_int_equal(fm_drafts_that_pay(0.5, fm_step_cost_threshold(&dear), 3), 0);
}

static void requests_whose_drafts_fail_are_told_apart(void **state)
{
    (void)state;
    fm_acceptance good = {0}, bad = {0};
    for (int i = 0; i < 20; i++) {
        fm_acceptance_add(&good, 3, 3);
        fm_acceptance_add(&bad, 3, 0);
    }
    assert_true(fm_acceptance_rate(&good, 0.5) > 0.9);
    assert_true(fm_acceptance_rate(&bad, 0.5) < 0.15);
    assert_true(fm_acceptance_rate(&(fm_acceptance){0}, 0.3) == 0.3);
}

/* A world of steps: one of n links takes 1 + cost * n seconds, is held up now and then if it is
 * busy, and the i-th draft is right as `deep` says, from step `from` on. */
typedef struct {
    double deep[3], cost;
    int    from, is_busy;
} world;

static double random_part(int i, int what) { return fm_rng_u32((uint64_t)what, (uint64_t)i) * 0x1p-32; }

static double hold_up(const world *w, int i)
{
    if (!w->is_busy) return 1;
    return random_part(i, 1) < 0.15 ? 2 + 6 * random_part(i, 2) : 1 + 0.2 * random_part(i, 3);
}

/* Returns the links of the last of n steps; *gain: tokens per second against none at all. */
static int run_steps(fm_pace *p, const world *w, int n, double *gain)
{
    fm_depths d      = {0};
    double    tokens = 0, seconds = 0, alone = 0;
    int       links = 0, pays;
    for (int i = 0; i < n; i++) {
        links          = fm_pace_links(p, 5, &d, 3, 1, &pays);
        int n_accepted = 0;
        while (i >= w->from && n_accepted < links && random_part(i, 10 + n_accepted) < w->deep[n_accepted])
            n_accepted++;
        const double took = (1 + w->cost * links) * hold_up(w, i);
        if (links) fm_depths_add(&d, links, n_accepted);
        fm_pace_add(p, 5, links, took);
        tokens += 1 + n_accepted;
        seconds += took;
        alone += hold_up(w, i);
    }
    *gain = tokens / seconds / (n / alone);
    return links;
}

static void chains_are_as_long_as_pays(void **state)
{
    (void)state;
    const world good = {{0.97, 0.95, 0.95}, 0.1, 0, 0}, once = {{0.97, 0.1, 0.1}, 0.3, 0, 0};
    fm_pace     cheap = {0}, second = {0};
    double      gain;
    assert_int_equal(run_steps(&cheap, &good, 300, &gain), 3);
    assert_true(gain > 2.5);
    assert_int_equal(run_steps(&second, &once, 300, &gain), 1);
}

/* The first steps with a chain of each length take three times as long: cold caches, new memory. */
/* What was measured for a full batch holds in the step after one of its requests has ended. */
static void drafts_go_on_when_a_request_ends(void **state)
{
    (void)state;
    for (int full = 4, size = 2; full <= 1024; full *= 2, size++) {
        fm_pace   p = {0};
        fm_depths d = {0};
        int       pays = 0;
        assert_int_equal(fm_pace_size(full), size);
        for (int i = 0; i < 64; i++) fm_depths_add(&d, 3, 3);
        for (int i = 0; i < 64; i++) {
            const int links = fm_pace_links(&p, full, &d, 3, 1, &pays);
            fm_pace_add(&p, full, links, 1 + 0.1 * links);
        }
        assert_int_equal(fm_pace_links(&p, full - 1, &d, 3, 0, &pays), 3);
        assert_int_equal(pays, 1);
    }
    assert_int_equal(fm_pace_size(1), 0);
    assert_int_equal(fm_pace_size(2), 1);
}

static void slow_first_trials_are_got_over(void **state)
{
    (void)state;
    fm_pace   p     = {0};
    fm_depths d     = {0};
    int       n[4]  = {0}, pays;
    double    right = 0.95;
    for (int i = 0; i < 1000; i++) {
        const int links = fm_pace_links(&p, 1, &d, 3, 1, &pays);
        const int cold  = links && n[links]++ < 3;
        int       n_accepted = 0;
        while (n_accepted < links && random_part(i, 10 + n_accepted) < right) n_accepted++;
        if (links) fm_depths_add(&d, links, n_accepted);
        fm_pace_add(&p, 1, links, (1 + 0.4 * links) * (cold ? 3 : 1));
    }
    if (n[2] + n[3] < 700) fail_msg("one link %d times, two %d, three %d", n[1], n[2], n[3]);
}

static void drafts_that_do_not_pay_cost_little(void **state)
{
    (void)state;
    static const double p[] = {0, 0.3, 0.97};
    for (int busy = 0; busy < 2; busy++)
        for (int i = 0; i < 3; i++)
            for (double cost = 0.2; cost < 3; cost *= 2) {
                const world w = {{p[i], p[i], p[i]}, cost, 0, busy};
                fm_pace     pace = {0};
                double      gain;
                run_steps(&pace, &w, 2000, &gain);
                if (gain < 0.985) fail_msg("busy %d, right %g, cost %g: %g", busy, p[i], cost, gain);
            }
}

static void text_that_becomes_predictable_is_noticed(void **state)
{
    (void)state;
    const world w    = {{0.97, 0.95, 0.95}, 0.3, 2000, 1};
    fm_pace     pace = {0};
    double      gain;
    assert_int_equal(run_steps(&pace, &w, 2300, &gain) > 0, 1);
}

static void a_busy_machine_hides_no_gain(void **state)
{
    (void)state;
    const world w    = {{0.97, 0.95, 0.95}, 0.2, 0, 1};
    fm_pace     pace = {0};
    double      gain;
    run_steps(&pace, &w, 2000, &gain);
    assert_true(gain > 2.0); /* 2.3 without trials */
}

static void the_cache_of_drafts_rests_where_none_pays(void **state)
{
    (void)state;
    fm_rest r    = {0};
    int     kept = 0, tried = 0;
    for (int i = 0; i < 10000; i++, fm_rest_step(&r, 0)) {
        kept += fm_rest_keeps(&r);
        tried += fm_rest_drafts(&r);
        assert_true(fm_rest_keeps(&r) || !fm_rest_drafts(&r));
    }
    assert_true(kept < 1000 && tried > 100 && tried < kept);
    fm_rest_step(&r, 1);
    assert_true(fm_rest_keeps(&r) && fm_rest_drafts(&r));
}

/* Steps of 1000 that wait for their tokens, with so many sequences of ten whose drafts are right with
 * the same probability; *n_tried: steps that verify drafts. */
static int steps_that_wait(int n_found, double right, int *n_tried)
{
    fm_look       l = {0};
    fm_acceptance a = {0};
    int           n_wait = 0, has_drafts = 0;
    *n_tried = 0;
    for (int step = 0; step < 1000; step++, fm_look_step(&l)) {
        if (!has_drafts && !fm_look_is_due(&l) && step) continue; /* planned ahead */
        n_wait++;
        fm_look_begin(&l);
        has_drafts = n_found && fm_look_proposes(&l);
        for (int i = 0; i < n_found; i++) {
            fm_look_add(&l, fm_expected_tokens(fm_acceptance_rate(&a, 0.5), 1) - 1);
            if (has_drafts) fm_acceptance_add(&a, 1, random_part(step, i) < right);
        }
        fm_look_end(&l, 10);
        *n_tried += has_drafts;
    }
    return n_wait;
}

static void steps_wait_only_for_drafts_that_pay(void **state)
{
    int n_tried;
    (void)state;
    assert_true(steps_that_wait(0, 0, &n_tried) < 30); /* no text repeats itself */
    assert_true(steps_that_wait(10, 0.02, &n_tried) < 60 && n_tried >= 3 && n_tried < 30);
    assert_true(steps_that_wait(1, 0.5, &n_tried) < 60 && n_tried >= 3); /* of ten */
    assert_true(steps_that_wait(10, 0.7, &n_tried) > 950 && n_tried > 950);
    assert_true(steps_that_wait(4, 0.9, &n_tried) > 950 && n_tried > 950);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_followed_is_proposed),
        cmocka_unit_test(the_longest_match_wins),
        cmocka_unit_test(a_growing_text_agrees_with_trying_all),
        cmocka_unit_test(a_long_text_is_found_within_the_window),
        cmocka_unit_test(an_index_serves_one_sequence_after_another),
        cmocka_unit_test(drafts_pay_where_rows_are_cheap),
        cmocka_unit_test(requests_whose_drafts_fail_are_told_apart),
        cmocka_unit_test(chains_are_as_long_as_pays),
        cmocka_unit_test(drafts_go_on_when_a_request_ends),
        cmocka_unit_test(slow_first_trials_are_got_over),
        cmocka_unit_test(drafts_that_do_not_pay_cost_little),
        cmocka_unit_test(text_that_becomes_predictable_is_noticed),
        cmocka_unit_test(a_busy_machine_hides_no_gain),
        cmocka_unit_test(the_cache_of_drafts_rests_where_none_pays),
        cmocka_unit_test(steps_wait_only_for_drafts_that_pay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
