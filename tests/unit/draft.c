/* SPDX-License-Identifier: Apache-2.0 */
/* Drafts: what an n-gram index proposes, and how many drafts pay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_followed_is_proposed),
        cmocka_unit_test(the_longest_match_wins),
        cmocka_unit_test(a_growing_text_agrees_with_trying_all),
        cmocka_unit_test(drafts_pay_where_rows_are_cheap),
        cmocka_unit_test(requests_whose_drafts_fail_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
