/* SPDX-License-Identifier: Apache-2.0 */
/* Who gets a request, and when a worker gets none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "llm/route/affinity.h"
#include "llm/route/breaker.h"
#include "llm/route/histogram.h"
#include "llm/route/policy.h"

static fm_candidate even(int load)
{
    return (fm_candidate){
        .load = load, .prefill_rate = 1000, .row_seconds = 1e-4};
}

static void in_turn(void **state)
{
    (void)state;
    const fm_candidate     c[3] = {even(0), even(0), even(0)};
    const fm_candidate_ask ask  = {0};
    fm_policy_state        s    = {0};
    for (int i = 0; i < 9; i++)
        assert_int_equal(fm_policy_choose(FM_ROUTE_ROUND_ROBIN, c, 3, &ask, &s), i % 3);
}

static void random_reaches_all(void **state)
{
    (void)state;
    const fm_candidate     c[4] = {even(0), even(9), even(3), even(1)};
    const fm_candidate_ask ask  = {0};
    fm_policy_state        s    = {.key = 5};
    int                    n[4] = {0};
    for (int i = 0; i < 4000; i++) n[fm_policy_choose(FM_ROUTE_RANDOM, c, 4, &ask, &s)]++;
    for (int i = 0; i < 4; i++) assert_in_range(n[i], 850, 1150);
}

/* The most loaded is never the lighter of two different ones. */
static void two_choices_avoid_the_worst(void **state)
{
    (void)state;
    const fm_candidate     c[4] = {even(0), even(9), even(3), even(1)};
    const fm_candidate_ask ask  = {0};
    fm_policy_state        s    = {.key = 5};
    int                    n[4] = {0};
    for (int i = 0; i < 4000; i++) n[fm_policy_choose(FM_ROUTE_POWER_OF_TWO, c, 4, &ask, &s)]++;
    assert_int_equal(n[1], 0);
    assert_true(n[0] > n[3] && n[3] > n[2] && n[2] > 0);
    assert_int_equal(fm_policy_choose(FM_ROUTE_POWER_OF_TWO, c, 1, &ask, &s), 0);
}

static void least_load_shares_ties(void **state)
{
    (void)state;
    const fm_candidate     c[3] = {even(1), even(4), even(1)};
    const fm_candidate_ask ask  = {0};
    fm_policy_state        s    = {0};
    int                    n[3] = {0};
    for (int i = 0; i < 300; i++) n[fm_policy_choose(FM_ROUTE_LEAST_LOAD, c, 3, &ask, &s)]++;
    assert_int_equal(n[1], 0);
    assert_true(n[0] >= 100 && n[2] >= 100);
}

/* A cached prefix draws a request until the queue there costs more than computing it anew. */
static void cache_against_queue(void **state)
{
    (void)state;
    fm_candidate           c[2] = {even(0), even(0)};
    const fm_candidate_ask ask  = {.n_prompt = 1000, .n_output = 100};
    fm_policy_state        s    = {0};
    c[1].n_cached               = 900;
    for (int i = 0; i < 4; i++)
        assert_int_equal(fm_policy_choose(FM_ROUTE_CACHE_AWARE, c, 2, &ask, &s), 1);
    c[1].pending_tokens = 4400; /* 100 tokens delay 5 requests, 1000 do, too */
    assert_int_equal(fm_policy_choose(FM_ROUTE_CACHE_AWARE, c, 2, &ask, &s), 1);
    c[1].pending_tokens = 4600;
    assert_int_equal(fm_policy_choose(FM_ROUTE_CACHE_AWARE, c, 2, &ask, &s), 0);
    c[0].pending_tokens = 4600; /* both busy */
    assert_int_equal(fm_policy_choose(FM_ROUTE_CACHE_AWARE, c, 2, &ask, &s), 1);
    c[0].pending_tokens = 0;
    c[1].prefill_rate   = 10000; /* a faster worker */
    assert_int_equal(fm_policy_choose(FM_ROUTE_CACHE_AWARE, c, 2, &ask, &s), 1);
    c[1]          = even(449); /* each adds 0.1 ms to 100 steps */
    c[1].n_cached = 900;
    assert_int_equal(fm_policy_choose(FM_ROUTE_CACHE_AWARE, c, 2, &ask, &s), 1);
    c[1].load = 451;
    assert_int_equal(fm_policy_choose(FM_ROUTE_CACHE_AWARE, c, 2, &ask, &s), 0);
}

/* Requests that wait for a prefix which is being computed have little to compute themselves: the
 * worker with two prefixes is busier than the one with a prefix and many that wait for it. */
static void waiting_for_a_prefix_is_no_work(void **state)
{
    (void)state;
    fm_candidate           c[2] = {even(2), even(9)};
    const fm_candidate_ask ask  = {.n_prompt = 1000, .n_output = 8};
    fm_policy_state        s    = {0};
    c[0].pending_tokens         = 2 * 1000;
    c[1].pending_tokens         = 1000 + 8 * 20;
    for (int i = 0; i < 4; i++)
        assert_int_equal(fm_policy_choose(FM_ROUTE_CACHE_AWARE, c, 2, &ask, &s), 1);
}

/* A new prefix goes where it evicts least. */
static void new_prefixes_go_where_there_is_room(void **state)
{
    (void)state;
    fm_candidate           c[3] = {even(0), even(0), even(0)};
    const fm_candidate_ask ask  = {.n_prompt = 1000, .n_output = 10};
    fm_policy_state        s    = {0};
    c[0].n_lost = c[2].n_lost = 500;
    c[1].pending_tokens       = 400;
    for (int i = 0; i < 3; i++)
        assert_int_equal(fm_policy_choose(FM_ROUTE_CACHE_AWARE, c, 3, &ask, &s), 1);
    c[2].n_cached = 600; /* what is cached needs no room */
    c[2].n_lost   = 200;
    assert_int_equal(fm_policy_choose(FM_ROUTE_CACHE_AWARE, c, 3, &ask, &s), 2);
}

static void names(void **state)
{
    (void)state;
    fm_route_policy p;
    for (int i = FM_ROUTE_CACHE_AWARE; i <= FM_ROUTE_LEAST_LOAD; i++) {
        assert_int_equal(fm_route_policy_read(&p, fm_route_policy_name((fm_route_policy)i)), FM_OK);
        assert_int_equal(p, i);
    }
    assert_int_equal(fm_route_policy_read(&p, "best"), FM_E_ARG);
}

static void breaker(void **state)
{
    (void)state;
    const fm_breaker_options o = {.failures = 3, .successes = 2, .seconds = 10};
    fm_breaker               b = {0};
    fm_breaker_fail(&b, &o, 0);
    fm_breaker_fail(&b, &o, 0);
    fm_breaker_succeed(&b, &o); /* in a row means in a row */
    fm_breaker_fail(&b, &o, 0);
    fm_breaker_fail(&b, &o, 0);
    assert_true(fm_breaker_allows(&b, &o, 0));
    fm_breaker_fail(&b, &o, 1);
    assert_false(fm_breaker_allows(&b, &o, 10.9));
    assert_true(fm_breaker_allows(&b, &o, 11));
    assert_int_equal(b.state, FM_BREAKER_HALF_OPEN);
    fm_breaker_begin(&b);
    assert_false(fm_breaker_allows(&b, &o, 11)); /* one at a time */
    fm_breaker_forget(&b);                       /* its client left */
    assert_true(fm_breaker_allows(&b, &o, 11));
    fm_breaker_begin(&b);
    fm_breaker_succeed(&b, &o);
    assert_int_equal(b.state, FM_BREAKER_HALF_OPEN);
    fm_breaker_begin(&b);
    fm_breaker_fail(&b, &o, 12);
    assert_int_equal(b.state, FM_BREAKER_OPEN);
    assert_true(fm_breaker_allows(&b, &o, 22));
    for (int i = 0; i < 2; i++) {
        fm_breaker_begin(&b);
        fm_breaker_succeed(&b, &o);
    }
    assert_int_equal(b.state, FM_BREAKER_CLOSED);
}

static void histogram(void **state)
{
    (void)state;
    fm_histogram h = {0};
    fm_str       s = {0};
    assert_true(fm_histogram_quantile(&h, 0.5) == 0);
    for (int i = 0; i < 99; i++) fm_histogram_add(&h, 0.0015);
    fm_histogram_add(&h, 1e9);
    assert_int_equal(fm_histogram_n(&h), 100);
    assert_true(fm_histogram_quantile(&h, 0.99) == 0.002);
    assert_true(fm_histogram_quantile(&h, 1) == 600);
    fm_histogram_write(&s, &h, "x", "a=\"b\"");
    assert_non_null(strstr(s.text, "x_bucket{a=\"b\",le=\"0.002\"} 99\n"));
    assert_non_null(strstr(s.text, "x_bucket{a=\"b\",le=\"+Inf\"} 100\n"));
    fm_str_fini(&s);
}

static void affinity(void **state)
{
    (void)state;
    static fm_affinity a;
    char               id[32];
    assert_int_equal(fm_affinity_find(&a, "r0"), 0);
    for (int i = 0; i < FM_AFFINITY_ROOM + 10; i++) {
        snprintf(id, sizeof id, "r%d", i);
        fm_affinity_add(&a, id, i % 7 + 1);
    }
    assert_int_equal(fm_affinity_find(&a, "r0"), 0); /* forgotten */
    assert_int_equal(fm_affinity_find(&a, "r4000"), 4000 % 7 + 1);
    assert_int_equal(fm_affinity_find(&a, "nobody"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_turn),
        cmocka_unit_test(random_reaches_all),
        cmocka_unit_test(two_choices_avoid_the_worst),
        cmocka_unit_test(least_load_shares_ties),
        cmocka_unit_test(cache_against_queue),
        cmocka_unit_test(waiting_for_a_prefix_is_no_work),
        cmocka_unit_test(new_prefixes_go_where_there_is_room),
        cmocka_unit_test(names),
        cmocka_unit_test(breaker),
        cmocka_unit_test(histogram),
        cmocka_unit_test(affinity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
