/* SPDX-License-Identifier: Apache-2.0 */
/* The cut of layers into stages against every possible cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "llm/rank/layout.h"

enum { MAX_LAYER = 12, MAX_STAGE = 5 };

typedef struct {
    double cost[MAX_LAYER], embed, head;
    int    n;
} work;

static double cost_of(const work *w, int begin, int end)
{
    double sum = (begin == 0 ? w->embed : 0) + (end == w->n ? w->head : 0);
    for (int l = begin; l < end; l++) sum += w->cost[l];
    return sum;
}

/* The slowest stage of the best cut of layers from `begin` on. */
static double best(const work *w, int begin, int n_stage)
{
    if (n_stage == 1) return cost_of(w, begin, w->n);
    double least = 1e300;
    for (int end = begin + 1; end <= w->n - n_stage + 1; end++) {
        const double rest = best(w, end, n_stage - 1), own = cost_of(w, begin, end);
        const double slow = own > rest ? own : rest;
        if (slow < least) least = slow;
    }
    return least;
}

static double slowest(const work *w, const fm_range *stage, int n_stage)
{
    double worst = 0;
    int    at    = 0;
    for (int p = 0; p < n_stage; p++) {
        assert_int_equal(stage[p].begin, at);
        assert_true(stage[p].end > at);
        at                = stage[p].end;
        const double cost = cost_of(w, stage[p].begin, stage[p].end);
        if (cost > worst) worst = cost;
    }
    assert_int_equal(at, w->n);
    return worst;
}

static double draw(uint64_t key, int i, int most)
{
    return fm_rng_u32(key, (uint64_t)i) % (uint32_t)(most + 1);
}

static void no_cut_is_better(void **state)
{
    (void)state;
    for (uint64_t key = 1; key < 400; key++) {
        work w = {.n     = 1 + (int)draw(key, 100, MAX_LAYER - 1),
                  .embed = draw(key, 101, 20),
                  .head  = draw(key, 102, 40)};
        for (int l = 0; l < w.n; l++) w.cost[l] = draw(key, l, l < 3 ? 5 : 30);
        for (int p = 1; p <= MAX_STAGE && p <= w.n; p++) {
            fm_range stage[MAX_STAGE];
            fm_layout_cut_layers(stage, p, w.cost, w.n, w.embed, w.head);
            const double got = slowest(&w, stage, p), want = best(&w, 0, p);
            if (got > want * (1 + 1e-9)) fail_msg("%g where %g is possible", got, want);
        }
    }
}

static void lists_are_read(void **state)
{
    (void)state;
    fm_range stage[3];
    assert_int_equal(fm_layout_read_layers(stage, 3, "8,10,1", 19), FM_OK);
    assert_int_equal(stage[1].begin, 8);
    assert_int_equal(stage[2].end, 19);
    const char *const bad[] = {"",       "8,10",   "8,10,2",  "8,10,0", "8,11,1", "8 10 1",
                               "8,,11",  "8,10,1,", "-1,19,1", "a",      "99999999999999999999,1,1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(fm_layout_read_layers(stage, 3, bad[i], 19), FM_E_ARG);
        assert_non_null(strstr(fm_why(), "--pp-layer-partition"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_cut_is_better),
                                       cmocka_unit_test(lists_are_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
