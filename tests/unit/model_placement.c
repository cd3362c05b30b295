/* SPDX-License-Identifier: Apache-2.0 */
/* The table of experts: both directions agree, copies share the rows, bad tables are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "llm/weights/shard.h"

/* Every slot's expert has a copy there, and every copy's slot has the expert. */
static void check_table(const fm_placement *p)
{
    assert_int_equal(p->copy0[p->n_expert], p->slot0[p->n_set]);
    for (int e = 0; e < p->n_expert; e++)
        for (int i = p->copy0[e]; i < p->copy0[e + 1]; i++) {
            assert_true(p->copy[i].slot < fm_placement_slots(p, p->copy[i].set));
            assert_int_equal(fm_placement_expert(p, p->copy[i].set, p->copy[i].slot), e);
        }
}

static void even_sets_are_the_shares(void **state)
{
    (void)state;
    for (int n_expert = 1; n_expert <= 17; n_expert++)
        for (int n_set = 1; n_set <= 8; n_set++) {
            fm_placement *p    = NULL;
            int           most = 0;
            assert_int_equal(fm_placement_create_even(&p, n_expert, n_set), FM_OK);
            check_table(p);
            for (int q = 0; q < n_set; q++) {
                const fm_range r = fm_share_of((fm_share){q, n_set}, n_expert, 1);
                assert_int_equal(fm_placement_slots(p, q), fm_range_len(r));
                for (int e = r.begin; e < r.end; e++) {
                    const fm_expert_copy c = fm_placement_copy(p, e, 12345);
                    assert_int_equal(c.set, q);
                    assert_int_equal(c.slot, e - r.begin);
                }
                if (fm_range_len(r) > most) most = fm_range_len(r);
            }
            assert_int_equal(p->most_slots, most);
            assert_int_equal(most, (n_expert + n_set - 1) / n_set);
            fm_placement_destroy(p);
        }
}

static void copies_take_rows_in_turn(void **state)
{
    static const int32_t n_slot[] = {3, 2, 3}, expert[] = {3, 0, 2, 1, 3, 2, 3, 0};
    fm_placement        *p = NULL;
    (void)state;
    assert_int_equal(fm_placement_create(&p, 4, 3, n_slot, expert), FM_OK);
    check_table(p);
    assert_int_equal(p->most_slots, 3);
    for (int row = 0; row < 9; row++) {
        assert_int_equal(fm_placement_copy(p, 3, row).set, row % 3);
        assert_int_equal(fm_placement_copy(p, 0, row).set, row % 2 ? 2 : 0);
        assert_int_equal(fm_placement_copy(p, 1, row).set, 1);
    }
    fm_placement_destroy(p);
}

static void refuse(const char *why, int n_expert, int n_set, const int32_t *n_slot,
                   const int32_t *expert)
{
    fm_placement *p = NULL;
    assert_int_equal(fm_placement_create(&p, n_expert, n_set, n_slot, expert), FM_E_ARG);
    assert_null(p);
    if (!strstr(fm_why(), why)) fail_msg("\"%s\" is not in: %s", why, fm_why());
}

static void bad_tables_are_refused(void **state)
{
    static const int32_t two[] = {2, 2}, three[] = {3, 1}, one[] = {3};
    (void)state;
    refuse("expert 2 lies nowhere", 4, 2, two, (const int32_t[]){0, 1, 3, 1});
    refuse("expert 1 lies twice in set 0", 3, 2, three, (const int32_t[]){1, 0, 1, 2});
    refuse("no expert 4", 4, 2, two, (const int32_t[]){0, 1, 2, 4});
    refuse("no expert -1", 4, 2, two, (const int32_t[]){-1, 1, 2, 3});
    refuse("in order", 3, 1, one, (const int32_t[]){0, 2, 1});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(even_sets_are_the_shares),
        cmocka_unit_test(copies_take_rows_in_turn),
        cmocka_unit_test(bad_tables_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
