/* SPDX-License-Identifier: Apache-2.0 */
/* What the router's policy does to loads, in virtual time (route_model.h): medians over seeds
 * against one server with the pools of all, and against what SGLang's router and round_robin do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../brief.h"
#include "route_model.h"
#include "route_search.h"

enum { MAX_SEEDS = 5, BRIEF_SEEDS = 3, POLICIES = 4, TRIES = 300, BRIEF_TRIES = 20 };

/* 32,768 tokens of cache in all. */
static const model_load burst    = {.n_client   = 32,
                                    .n_group    = 16,
                                    .n_request  = 320,
                                    .n_prefix   = 1370,
                                    .n_question = 20,
                                    .n_output   = 8,
                                    .spread     = 1};
static const model_load overflow = {.n_client   = 32,
                                    .n_group    = 32,
                                    .n_request  = 320,
                                    .n_prefix   = 780,
                                    .n_question = 190,
                                    .n_output   = 8,
                                    .spread     = 1};
static const model_load arrivals = {.n_group    = 28,
                                    .n_request  = 800,
                                    .n_prefix   = 880,
                                    .n_question = 40,
                                    .n_output   = 8,
                                    .spread     = 2,
                                    .rate       = 30,
                                    .zipf       = 1};
static const model_load chat     = {.n_group    = 8,
                                    .n_request  = 900,
                                    .n_prefix   = 195,
                                    .n_question = 80,
                                    .n_output   = 16,
                                    .n_turn     = 6,
                                    .spread     = 1,
                                    .rate       = 30,
                                    .think      = 1.5};
static const model_load one_hot  = {.n_client   = 32,
                                    .n_group    = 1,
                                    .n_request  = 640,
                                    .n_prefix   = 1500,
                                    .n_question = 200,
                                    .n_output   = 32,
                                    .spread     = 1};

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, compare);
    return x[n / 2];
}

static model_result run_policy(const model_load *l, model_policy p, int n_core)
{
    double    cached[MAX_SEEDS], p50[MAX_SEEDS], p99[MAX_SEEDS];
    const int n = is_brief() ? BRIEF_SEEDS : MAX_SEEDS;
    for (int i = 0; i < n; i++) {
        const model_result r = model_run(l, p, n_core, (uint64_t)i + 1);
        cached[i]            = r.n_cached;
        p50[i]               = r.ttft50;
        p99[i]               = r.ttft99;
    }
    return (model_result){median(cached, n), median(p50, n), median(p99, n)};
}

typedef struct {
    model_result by[POLICIES]; /* medians */
} table;

static table run(const char *name, const model_load *l, int n_core)
{
    static const char *const word[POLICIES] = {"ours", "tree", "turns", "one"};
    table                    t;
    for (int p = 0; p < POLICIES; p++) {
        const model_result r = t.by[p] = run_policy(l, (model_policy)p, n_core);
        printf("%-9s %d cores  %-5s %8.0f cached  TTFT p50 %6.1f p99 %6.1f ms\n", name, n_core,
               word[p], r.n_cached, 1000 * r.ttft50, 1000 * r.ttft99);
    }
    return t;
}

static void is_sooner(const table *t, model_policy other)
{
    assert_true(t->by[MODEL_OURS].ttft50 < t->by[other].ttft50);
    assert_true(t->by[MODEL_OURS].ttft99 < t->by[other].ttft99);
}

static void caches_like_one(const table *t)
{
    assert_true(t->by[MODEL_OURS].n_cached >= 0.95 * t->by[MODEL_ONE].n_cached);
}

static void is_ahead(const char *name, const model_load *l)
{
    for (int n_core = 2; n_core <= MODEL_WORKERS; n_core += 2) {
        const table t = run(name, l, n_core);
        caches_like_one(&t);
        for (model_policy p = MODEL_TREE; p <= MODEL_TURNS; p++) {
            is_sooner(&t, p);
            assert_true(t.by[MODEL_OURS].n_cached >= t.by[p].n_cached);
        }
    }
}

static void prefixes_that_fit_in_a_burst(void **state)
{
    (void)state;
    is_ahead("burst", &burst);
}

/* Here the tree caches one or two per cent more: a prefix that was evicted comes back to the same
 * worker, and longer queues there put its requests together. */
static void prefixes_that_overflow_in_a_burst(void **state)
{
    (void)state;
    for (int n_core = 2; n_core <= MODEL_WORKERS; n_core += 2) {
        const table t = run("overflow", &overflow, n_core);
        caches_like_one(&t);
        is_sooner(&t, MODEL_TREE);
        is_sooner(&t, MODEL_TURNS);
        assert_true(t.by[MODEL_OURS].n_cached >= 0.96 * t.by[MODEL_TREE].n_cached);
    }
}

static void random_arrivals(void **state)
{
    (void)state;
    is_ahead("arrivals", &arrivals);
}

static void conversations(void **state)
{
    (void)state;
    is_ahead("chat", &chat);
}

/* In a burst on shared cores the longest times are those of the work itself. */
static void a_search_finds_little_more(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= BRIEF_SEEDS; seed++) {
        const model_result ours = model_run(&burst, MODEL_OURS, 2, seed);
        const model_result best =
            model_search(&burst, 2, seed, is_brief() ? BRIEF_TRIES : TRIES);
        printf("burst     2 cores  ours %8.0f cached  TTFT p50 %6.1f p99 %6.1f ms; "
               "found %8.0f cached  p50 %6.1f p99 %6.1f ms\n",
               ours.n_cached, 1000 * ours.ttft50, 1000 * ours.ttft99, best.n_cached,
               1000 * best.ttft50, 1000 * best.ttft99);
        assert_true(ours.ttft99 < 1.15 * best.ttft99);
    }
}

/* One prefix is computed at several workers rather than that they are idle. */
static void a_prefix_that_all_ask_for(void **state)
{
    (void)state;
    const table t = run("one", &one_hot, MODEL_WORKERS);
    caches_like_one(&t);
    is_sooner(&t, MODEL_TREE);
    assert_true(t.by[MODEL_OURS].ttft50 < t.by[MODEL_TURNS].ttft50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prefixes_that_fit_in_a_burst),
        cmocka_unit_test(prefixes_that_overflow_in_a_burst),
        cmocka_unit_test(random_arrivals),
        cmocka_unit_test(conversations),
        cmocka_unit_test(a_search_finds_little_more),
        cmocka_unit_test(a_prefix_that_all_ask_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
