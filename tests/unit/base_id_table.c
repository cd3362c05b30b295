/* SPDX-License-Identifier: Apache-2.0 */
/* The table of ids against a plain list, and how long its chains get. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/id_table.h"
#include "base/rng.h"

enum { N = 4000, N_KEY = 700, MANY = 50000 };

static int count_alike(const fm_id_table *t, uint64_t key, const fm_id_link *wanted, int *found)
{
    int n = 0;
    for (fm_id_link *l = fm_id_table_find(t, key); l; l = fm_id_table_next_alike(l), n++) {
        assert_int_equal(l->key, key);
        *found |= l == wanted;
    }
    return n;
}

static void records_are_found_under_their_keys(void **state)
{
    (void)state;
    fm_id_link *l      = calloc(N, sizeof *l);
    char       *is_in  = calloc(N, 1);
    int        *n_here = calloc(N_KEY, sizeof *n_here), n = 0;
    fm_id_table t = {0};
    assert_null(fm_id_table_find(&t, 1));
    for (int round = 0; round < 3 * N; round++) {
        const int i   = (int)(fm_rng_u32(3, (uint64_t)round) % N);
        const int key = i % N_KEY;
        l[i].key      = (uint64_t)key << 30;
        if (is_in[i])
            fm_id_table_remove(&t, &l[i]);
        else
            assert_int_equal(fm_id_table_add(&t, &l[i]), FM_OK);
        n_here[key] += is_in[i] ? -1 : 1;
        n += is_in[i] ? -1 : 1;
        is_in[i]  = !is_in[i];
        int found = 0;
        assert_int_equal(count_alike(&t, l[i].key, &l[i], &found), n_here[key]);
        assert_int_equal(found, is_in[i]);
    }
    assert_int_equal(t.n, n);
    int seen = 0;
    for (fm_id_link *x = fm_id_table_first(&t); x; x = fm_id_table_next(&t, x), seen++)
        assert_true(is_in[x - l]);
    assert_int_equal(seen, n);
    fm_id_table_fini(&t);
    assert_null(fm_id_table_first(&t));
    free(l);
    free(is_in);
    free(n_here);
}

/* Ids that count from 1, in the low bits or, with the number of a prompt below, in higher ones. */
static void check_chains(int shift)
{
    fm_id_link *l       = calloc(MANY, sizeof *l);
    fm_id_table t       = {0};
    int         longest = 0;
    for (int i = 0; i < MANY; i++) {
        l[i].key = ((uint64_t)i + 1) << shift;
        assert_int_equal(fm_id_table_add(&t, &l[i]), FM_OK);
    }
    for (size_t b = 0; b < t.n_bucket; b++) {
        int n = 0;
        for (fm_id_link *x = t.bucket[b]; x; x = x->next) n++;
        if (n > longest) longest = n;
    }
    assert_in_range(longest, 1, 8);
    fm_id_table_fini(&t);
    free(l);
}

static void chains_stay_short(void **state)
{
    (void)state;
    for (int shift = 0; shift <= 40; shift += 4) check_chains(shift);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_found_under_their_keys),
        cmocka_unit_test(chains_stay_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
