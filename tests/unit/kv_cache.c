/* SPDX-License-Identifier: Apache-2.0 */
/* The cache's contract, case by case. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "llm/kv/kv_cache.h"

static fm_kv *make(int n_page, int page_size, int share)
{
    const fm_kv_options opt = {.n_page = n_page, .page_size = page_size, .max_lease = 8,
                               .max_context = 1000, .share = share};
    fm_kv *kv = NULL;
    assert_int_equal(fm_kv_create(&kv, &opt), FM_OK);
    return kv;
}

static const int32_t *count_from(int32_t first)
{
    static int32_t text[1000];
    for (int i = 0; i < 1000; i++) text[i] = first + i;
    return text;
}

/* A text that was computed and has ended. */
static void remember(fm_kv *kv, const int32_t *text, int n)
{
    fm_kv_lease l;
    assert_int_equal(fm_kv_begin(kv, &l, text, n), FM_OK);
    assert_int_equal(fm_kv_grow(kv, &l, n), FM_OK);
    fm_kv_publish(kv, &l, text, n);
    fm_kv_end(kv, &l);
    fm_kv_audit(kv);
}

static void refuses_wrong_options(void **state)
{
    (void)state;
    const fm_kv_options good = {.n_page = 4, .page_size = 4, .max_lease = 1, .max_context = 16};
    fm_kv_options       bad[6];
    fm_kv              *kv = NULL;

    for (int i = 0; i < 6; i++) bad[i] = good;
    bad[0].n_page      = 0;
    bad[1].page_size   = 0;
    bad[2].page_size   = 65;
    bad[3].max_lease   = 0;
    bad[4].max_context = -1;
    bad[5].n_page      = INT32_MAX;
    for (int i = 0; i < 6; i++) {
        assert_int_equal(fm_kv_create(&kv, &bad[i]), FM_E_ARG);
        assert_null(kv);
        assert_true(strlen(fm_why()) > 10);
        assert_int_equal(fm_kv_bytes(&bad[i]), 0);
    }
    fm_kv_destroy(NULL);
}

static void books_are_as_large_as_announced(void **state)
{
    (void)state;
    for (int size = 1; size <= 64; size *= 4) {
        fm_kv_options opt = {.n_page = 1, .page_size = size, .max_lease = 1, .max_context = size,
                             .share = 1};
        const size_t  base = fm_kv_bytes(&opt);
        for (opt.n_page = 2; opt.n_page < 5000; opt.n_page = opt.n_page * 3 / 2 + 1)
            assert_true(fm_kv_bytes(&opt) <= base + (size_t)opt.n_page * fm_kv_book_bytes(size, opt.has_tiers));
    }
}

static void finds_full_pages_and_leaves_one_row(void **state)
{
    (void)state;
    fm_kv         *kv   = make(16, 4, 1);
    const int32_t *text = count_from(0);
    fm_kv_lease    l;

    remember(kv, text, 10); /* two full pages */
    assert_int_equal(fm_kv_match(kv, text, 10), 8);
    assert_int_equal(fm_kv_match(kv, text, 8), 8);
    assert_int_equal(fm_kv_match(kv, text, 7), 4);

    assert_int_equal(fm_kv_begin(kv, &l, text, 8), FM_OK); /* all cached, one row must be left */
    assert_int_equal(l.n_cached, 4);
    fm_kv_end(kv, &l);
    assert_int_equal(fm_kv_begin(kv, &l, text, 9), FM_OK);
    assert_int_equal(l.n_cached, 8);
    assert_int_equal(l.n_shared, 2);
    fm_kv_end(kv, &l);
    assert_int_equal(fm_kv_begin(kv, &l, text, 1), FM_OK);
    assert_int_equal(l.n_cached, 0);
    fm_kv_end(kv, &l);

    const fm_kv_stats st = fm_kv_get_stats(kv);
    assert_int_equal(st.hit_tokens, 12);
    assert_int_equal(st.asked_tokens, 10 + 8 + 9 + 1);
    fm_kv_audit(kv);
    fm_kv_destroy(kv);
}

static void full_pool_leaves_the_lease_alone(void **state)
{
    (void)state;
    fm_kv      *kv = make(8, 2, 1);
    fm_kv_lease a, b;

    assert_int_equal(fm_kv_begin(kv, &a, count_from(0), 10), FM_OK);
    assert_int_equal(fm_kv_grow(kv, &a, 10), FM_OK);
    assert_int_equal(fm_kv_begin(kv, &b, count_from(50), 10), FM_OK);
    assert_int_equal(fm_kv_grow(kv, &b, 4), FM_OK);
    const fm_kv_lease was = b;

    assert_int_equal(fm_kv_grow(kv, &b, 8), FM_E_FULL);
    assert_memory_equal(&was, &b, sizeof b);
    assert_int_equal(fm_kv_free_pages(kv), 1);
    assert_int_equal(fm_kv_grow(kv, &b, 17), FM_E_ARG); /* more than the pool has */
    assert_memory_equal(&was, &b, sizeof b);
    assert_int_equal(fm_kv_grow(kv, &b, 6), FM_OK);
    assert_int_equal(fm_kv_grow(kv, &b, 1), FM_OK); /* has room already */
    assert_int_equal(b.n_page, 3);

    fm_kv_audit(kv);
    fm_kv_end(kv, &a);
    fm_kv_end(kv, &b);
    assert_int_equal(fm_kv_free_pages(kv), 8);
    fm_kv_destroy(kv);
}

static void evicts_the_oldest_leaf_first(void **state)
{
    (void)state;
    fm_kv      *kv = make(8, 1, 1);
    int32_t     old[3] = {1, 2, 3}, mid[3] = {1, 2, 4}, new[3] = {7, 8, 9};
    fm_kv_lease l;

    remember(kv, old, 3);
    remember(kv, mid, 3);
    remember(kv, new, 3);
    assert_int_equal(fm_kv_evictable_pages(kv), 7); /* 1 2 are shared */
    assert_int_equal(fm_kv_begin(kv, &l, &(int32_t){99}, 1), FM_OK);

    assert_int_equal(fm_kv_grow(kv, &l, 2), FM_OK); /* one was free, then 3 goes */
    assert_int_equal(fm_kv_match(kv, old, 3), 2);
    assert_int_equal(fm_kv_match(kv, mid, 3), 3);
    assert_int_equal(fm_kv_grow(kv, &l, 5), FM_OK); /* then 4, 2, 1 */
    assert_int_equal(fm_kv_match(kv, mid, 3), 0);
    assert_int_equal(fm_kv_match(kv, new, 3), 3);
    assert_int_equal(fm_kv_get_stats(kv).evicted_pages, 4);

    fm_kv_audit(kv);
    fm_kv_flush(kv);
    assert_int_equal(fm_kv_free_pages(kv), 3);
    fm_kv_end(kv, &l);
    fm_kv_destroy(kv);
}

static void touched_pages_go_last(void **state)
{
    (void)state;
    fm_kv      *kv = make(6, 1, 1);
    int32_t     old[4] = {1, 2, 3, 9}, new[3] = {7, 8, 9};
    fm_kv_lease l, reader;

    remember(kv, old, 3);
    remember(kv, new, 3);
    assert_int_equal(fm_kv_begin(kv, &reader, old, 2), FM_OK); /* locks 1 */
    fm_kv_touch(kv, old, 4);
    fm_kv_touch(kv, &(int32_t){99}, 1);
    fm_kv_audit(kv);
    assert_int_equal(fm_kv_begin(kv, &l, &(int32_t){99}, 1), FM_OK);
    assert_int_equal(fm_kv_grow(kv, &l, 3), FM_OK);
    assert_int_equal(fm_kv_match(kv, new, 3), 0);
    assert_int_equal(fm_kv_match(kv, old, 3), 3);
    assert_int_equal(fm_kv_grow(kv, &l, 4), FM_OK); /* children before parents still */
    assert_int_equal(fm_kv_match(kv, old, 3), 2);

    fm_kv_audit(kv);
    fm_kv_end(kv, &reader);
    fm_kv_end(kv, &l);
    fm_kv_destroy(kv);
}

static void locked_pages_stay(void **state)
{
    (void)state;
    fm_kv         *kv   = make(6, 2, 1);
    const int32_t *text = count_from(0);
    fm_kv_lease    reader, greedy;

    remember(kv, text, 8);
    assert_int_equal(fm_kv_begin(kv, &reader, text, 5), FM_OK); /* locks two of the four pages */
    assert_int_equal(fm_kv_begin(kv, &greedy, text + 100, 9), FM_OK);
    assert_int_equal(fm_kv_grow(kv, &greedy, 9), FM_E_FULL);
    assert_int_equal(fm_kv_grow(kv, &greedy, 8), FM_OK);
    assert_int_equal(fm_kv_evictable_pages(kv), 0);
    fm_kv_flush(kv);
    assert_int_equal(fm_kv_match(kv, text, 8), 4);

    fm_kv_audit(kv);
    fm_kv_end(kv, &reader);
    fm_kv_end(kv, &greedy);
    fm_kv_destroy(kv);
}

static void twins_are_merged(void **state)
{
    (void)state;
    fm_kv         *kv   = make(12, 2, 1);
    const int32_t *text = count_from(0);
    fm_kv_lease    a, b;

    assert_int_equal(fm_kv_begin(kv, &a, text, 6), FM_OK);
    assert_int_equal(fm_kv_begin(kv, &b, text, 7), FM_OK);
    assert_int_equal(fm_kv_grow(kv, &a, 6), FM_OK);
    assert_int_equal(fm_kv_grow(kv, &b, 8), FM_OK);
    assert_int_equal(fm_kv_free_pages(kv), 5);

    fm_kv_publish(kv, &a, text, 4); /* chunk by chunk */
    fm_kv_publish(kv, &a, text, 6);
    fm_kv_publish(kv, &b, text, 7);
    assert_memory_equal(a.page, b.page, 3 * sizeof *a.page);
    assert_int_equal(b.n_shared, 3);
    assert_int_equal(b.n_page, 4);
    assert_int_equal(fm_kv_free_pages(kv), 8);

    fm_kv_audit(kv);
    fm_kv_end(kv, &a);
    assert_int_equal(fm_kv_evictable_pages(kv), 0); /* b still reads them */
    fm_kv_end(kv, &b);
    assert_int_equal(fm_kv_evictable_pages(kv), 3);
    fm_kv_destroy(kv);
}

static void without_sharing_nothing_is_found(void **state)
{
    (void)state;
    fm_kv         *kv   = make(8, 2, 0);
    const int32_t *text = count_from(0);
    fm_kv_lease    l;

    remember(kv, text, 8);
    assert_int_equal(fm_kv_free_pages(kv), 8);
    assert_int_equal(fm_kv_match(kv, text, 8), 0);
    assert_int_equal(fm_kv_begin(kv, &l, text, 8), FM_OK);
    assert_int_equal(l.n_cached, 0);
    fm_kv_audit(kv);
    fm_kv_end(kv, &l);
    fm_kv_destroy(kv);
}

static void counts_leases_and_lengths(void **state)
{
    (void)state;
    fm_kv      *kv = make(8, 2, 1);
    fm_kv_lease l[9];

    for (int i = 0; i < 8; i++) assert_int_equal(fm_kv_begin(kv, &l[i], count_from(0), 3), FM_OK);
    assert_int_equal(fm_kv_begin(kv, &l[8], count_from(0), 3), FM_E_FULL);
    fm_kv_end(kv, &l[3]);
    assert_int_equal(fm_kv_begin(kv, &l[3], count_from(0), 1001), FM_E_ARG);
    assert_int_equal(fm_kv_begin(kv, &l[3], count_from(0), 0), FM_E_ARG);
    assert_int_equal(fm_kv_begin(kv, &l[3], count_from(0), 1000), FM_OK);
    fm_kv_audit(kv);
    for (int i = 0; i < 8; i++) fm_kv_end(kv, &l[i]);
    fm_kv_destroy(kv);
}

static void probe_says_what_begin_would_take(void **state)
{
    (void)state;
    fm_kv         *kv   = make(8, 2, 1);
    const int32_t *text = count_from(0);
    fm_kv_lease    l;
    int32_t        n_idle;

    remember(kv, text, 8);
    assert_int_equal(fm_kv_begin(kv, &l, text, 3), FM_OK);
    assert_int_equal(fm_kv_probe(kv, text, 8, &n_idle), 6);
    assert_int_equal(n_idle, 2);
    fm_kv_end(kv, &l);
    fm_kv_destroy(kv);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_wrong_options),
        cmocka_unit_test(books_are_as_large_as_announced),
        cmocka_unit_test(finds_full_pages_and_leaves_one_row),
        cmocka_unit_test(full_pool_leaves_the_lease_alone),
        cmocka_unit_test(evicts_the_oldest_leaf_first),
        cmocka_unit_test(touched_pages_go_last),
        cmocka_unit_test(locked_pages_stay),
        cmocka_unit_test(twins_are_merged),
        cmocka_unit_test(without_sharing_nothing_is_found),
        cmocka_unit_test(counts_leases_and_lengths),
        cmocka_unit_test(probe_says_what_begin_would_take),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
