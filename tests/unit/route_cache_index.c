/* SPDX-License-Identifier: Apache-2.0 */
/* What the router knows of a worker's cache: which pages, and how long each was not used. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "llm/route/cache_index.h"

enum { N_KEY = 200, N_ROUND = 20000 };

/* --- ages ------------------------------------------------------------------ */

static int by_time(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Against a sorted list, over stretches of time from a tick to months. */
static void ages_are_those_of_a_sorted_list(void **state)
{
    (void)state;
    fm_page_ages a = {0};
    uint32_t     used[N_KEY], sorted[N_KEY], now = 0;
    for (int i = 0; i < N_KEY; i++) fm_page_ages_add(&a, used[i] = now);
    for (uint64_t round = 0; round < N_ROUND; round++) {
        const uint32_t step = fm_rng_u32(1, round) % (round % 1000 ? 3 : 100000);
        const int      i = (int)(fm_rng_u32(2, round) % N_KEY), n = i + 1;
        now += step;
        fm_page_ages_remove(&a, used[i]);
        fm_page_ages_add(&a, used[i] = now);
        memcpy(sorted, used, sizeof used);
        qsort(sorted, N_KEY, sizeof *sorted, by_time);
        const uint32_t want = now - sorted[n - 1], oldest = now - sorted[0];
        const uint32_t got  = fm_page_ages_oldest(&a, n, now);
        const uint32_t wide = 4 * oldest / FM_PAGE_AGES + (1u << a.shift);
        assert_in_range(got, want > 0 ? want : 1, want + wide + 1);
    }
    for (int i = 0; i < N_KEY; i++) fm_page_ages_remove(&a, used[i]);
    assert_int_equal(fm_page_ages_oldest(&a, 1, now), 0);
}

/* A long time without any page is passed at once. */
static void ages_after_a_long_silence(void **state)
{
    (void)state;
    fm_page_ages a = {0};
    fm_page_ages_add(&a, 5);
    fm_page_ages_remove(&a, 5);
    fm_page_ages_add(&a, UINT32_MAX - 10);
    assert_int_equal(fm_page_ages_oldest(&a, 1, UINT32_MAX), 10);
    assert_int_equal(fm_page_ages_oldest(&a, 7, UINT32_MAX), 10); /* there are fewer */
}

/* --- the index ------------------------------------------------------------- */

static void pages_that_prompts_use_are_the_youngest(void **state)
{
    (void)state;
    fm_cache_index c      = {0};
    const uint64_t key[4] = {11, 12, 13, 14};
    assert_true(fm_cache_index_age(&c, 1, 50) <= 0);
    fm_cache_index_expire(&c, 100, 1); /* tells the time */
    for (int i = 0; i < 4; i++) fm_cache_index_insert(&c, key[i]);
    assert_true(fm_cache_index_age(&c, 4, 110) == 10);
    fm_cache_index_use(&c, key, 2, 110);
    assert_true(fm_cache_index_age(&c, 2, 120) == 20);
    assert_true(fm_cache_index_age(&c, 3, 120) == 10);
    fm_cache_index_evict(&c, 13);
    fm_cache_index_evict(&c, 14);
    assert_true(fm_cache_index_age(&c, 1, 120) == 10);
    fm_cache_index_fini(&c);
}

/* Pages that are only expected have an age, too, until they are not expected any more. */
static void ages_follow_what_is_expected(void **state)
{
    (void)state;
    fm_cache_index c   = {0};
    const uint64_t key = 7;
    fm_cache_index_expire(&c, 100, 1);
    fm_cache_index_expect(&c, key, 120);
    assert_true(fm_cache_index_age(&c, 1, 105) == 5);
    fm_cache_index_insert(&c, key);
    assert_int_equal(c.ages.total, 1);
    fm_cache_index_evict(&c, key);
    fm_cache_index_expect(&c, key, 120);
    fm_cache_index_unexpect(&c, key, 120);
    assert_int_equal(c.ages.total, 0);
    fm_cache_index_expect(&c, key, 120);
    fm_cache_index_expire(&c, 121, SIZE_MAX);
    assert_int_equal(c.ages.total, 0);
    fm_cache_index_fini(&c);
}

static size_t n_shared(const fm_cache_index *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n_entry; i++)
        n += c->entry[i].key && c->entry[i].n_held >= 0 && c->entry[i].n_use > 1;
    return n;
}

/* Every page is counted once, through growing, deleting and shrinking. */
static void pages_are_counted_once(void **state)
{
    (void)state;
    fm_cache_index c = {0};
    for (uint64_t round = 0; round < N_ROUND; round++) {
        const double   now = (double)round / 10;
        const uint64_t key = fm_rng_u32(3, round) % 3000;
        switch (fm_rng_u32(4, round) % 5) {
        case 0: fm_cache_index_insert(&c, key); break;
        case 1: fm_cache_index_evict(&c, key); break;
        case 2: fm_cache_index_expect(&c, key, now + 20); break;
        case 3: fm_cache_index_use(&c, &key, 1, now); break;
        default: fm_cache_index_expire(&c, now, 64); break;
        }
        assert_int_equal(c.ages.total, c.n_held + c.n_expected);
        assert_int_equal(c.n_shared, n_shared(&c));
    }
    fm_cache_index_fini(&c);
}

/* Requests were sent there whose pages are expected: the feed will tell that others were evicted.
 */
static void pages_that_do_not_fit_any_more_are_gone(void **state)
{
    (void)state;
    fm_cache_index c      = {.n_room = 6};
    const uint64_t old[3] = {1, 2, 3}, late[3] = {11, 12, 13}, new[2] = {21, 22};
    for (int i = 0; i < 3; i++) fm_cache_index_insert(&c, old[i]);
    for (int i = 0; i < 3; i++) fm_cache_index_insert(&c, late[i]);
    fm_cache_index_use(&c, old, 3, 100);
    fm_cache_index_use(&c, late, 3, 110);
    assert_int_equal(fm_cache_index_match(&c, old, 3, 120), 3);
    for (int i = 0; i < 2; i++) fm_cache_index_expect(&c, new[i], 140);
    fm_cache_index_use(&c, new, 2, 120);
    assert_int_equal(fm_cache_index_match(&c, old, 3, 120),
                     3); /* which of the three is not known */
    fm_cache_index_expect(&c, 23, 140);
    fm_cache_index_expect(&c, 24, 140);
    assert_int_equal(fm_cache_index_match(&c, old, 3, 120), 0);
    assert_int_equal(fm_cache_index_match(&c, late, 3, 120), 3);
    assert_int_equal(fm_cache_index_match(&c, new, 2, 120), 2);
    for (int i = 0; i < 3; i++) fm_cache_index_evict(&c, old[i]); /* the feed tells of it */
    assert_int_equal(fm_cache_index_match(&c, late, 3, 120), 3);
    fm_cache_index_fini(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ages_are_those_of_a_sorted_list),
        cmocka_unit_test(ages_after_a_long_silence),
        cmocka_unit_test(pages_that_prompts_use_are_the_youngest),
        cmocka_unit_test(ages_follow_what_is_expected),
        cmocka_unit_test(pages_are_counted_once),
        cmocka_unit_test(pages_that_do_not_fit_any_more_are_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
