/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which pairs of ranks measure their links. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "probe/pairs.h"

enum { MOST = 40 };

/* Checks a plan, and counts in met[] how often two ranks meet. */
static void check(const fm_pairs_plan *p, const int *machine, int met[MOST][MOST])
{
    memset(met, 0, MOST * sizeof *met);
    for (int s = 0; s < p->n_step; s++) {
        const int *partner    = p->partner + s * p->n_rank;
        int        busy[MOST] = {0}, n_pair = 0;
        for (int a = 0; a < p->n_rank; a++) {
            const int b = partner[a];
            if (b < 0) continue;
            assert_int_not_equal(a, b);
            assert_int_equal(partner[b], a);
            if (a > b) continue;
            met[a][b]++;
            n_pair++;
            busy[machine[a]]++;
            if (machine[a] != machine[b]) busy[machine[b]]++;
        }
        assert_true(n_pair > 0);
        for (int m = 0; m < MOST; m++) assert_true(busy[m] <= 1);
    }
}

static void all_pairs_meet_once(void **state)
{
    (void)state;
    static const struct {
        int n_machine, each, more; /* `more` ranks on the first machine */
    } fleet[] = {{1, 1, 0}, {1, 2, 0}, {1, 5, 0}, {2, 1, 0}, {3, 1, 0},
                 {4, 2, 0}, {5, 1, 0}, {7, 3, 0}, {3, 2, 3}, {8, 4, 1}};
    static int met[MOST][MOST];
    for (size_t f = 0; f < sizeof fleet / sizeof fleet[0]; f++) {
        int           machine[MOST], n = 0;
        fm_pairs_plan p = {0};
        for (int i = 0; i < fleet[f].more; i++) machine[n++] = 0;
        for (int i = 0; i < fleet[f].n_machine * fleet[f].each; i++)
            machine[n++] = i % fleet[f].n_machine; /* dealt out in turn */
        assert_int_equal(fm_pairs_plan_make(&p, machine, n, 10000), FM_OK);
        check(&p, machine, met);
        for (int a = 0; a < n; a++)
            for (int b = a + 1; b < n; b++) assert_int_equal(met[a][b], 1);
        fm_pairs_plan_fini(&p);
    }
}

static void large_fleets_have_fewer_pairs(void **state)
{
    (void)state;
    static int    met[MOST][MOST];
    int           machine[32];
    fm_pairs_plan p = {0};
    for (int i = 0; i < 32; i++) machine[i] = i / 8;
    assert_int_equal(fm_pairs_plan_make(&p, machine, 32, 100), FM_OK);
    check(&p, machine, met);
    assert_true(p.n_step <= 3 * 8 + 17);
    assert_int_equal(met[0][8], 1); /* the first ranks of two machines */
    assert_int_equal(met[0][9], 0);
    assert_int_equal(met[3][27], 1);
    assert_int_equal(met[0][1], 1);
    assert_int_equal(met[0][3], 0);
    assert_int_equal(met[1][5], 1);
    fm_pairs_plan_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_pairs_meet_once),
        cmocka_unit_test(large_fleets_have_fewer_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
