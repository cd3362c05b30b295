/* SPDX-License-Identifier: Apache-2.0 */
/* The feed of cached pages: a reader that follows it from any version knows what the tree holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "llm/kv/kv_tiers.h"
#include "llm/kv/page_feed.h"
#include "llm/kv/page_hash.h"
#include "llm/route/cache_index.h"

enum { N_PAGE = 24, PAGE = 4, CONTEXT = 64 };

static fm_kv *make_cache(void)
{
    fm_kv *kv = NULL;
    assert_int_equal(fm_kv_create(&kv, &(fm_kv_options){.n_page      = N_PAGE,
                                                        .page_size   = PAGE,
                                                        .max_lease   = 2,
                                                        .max_context = CONTEXT,
                                                        .share       = 1}),
                     FM_OK);
    return kv;
}

/* Computes a text and lets go of it. */
static void use(fm_kv *kv, const int32_t *token, int n)
{
    fm_kv_lease lease;
    assert_int_equal(fm_kv_begin(kv, &lease, token, n), FM_OK);
    assert_int_equal(fm_kv_grow(kv, &lease, n), FM_OK);
    fm_kv_publish(kv, &lease, token, n);
    fm_kv_end(kv, &lease);
}

/* A reader as the router has one. */
typedef struct {
    fm_cache_index pages;
    uint64_t       epoch, version;
} reader;

static void catch_up(reader *r, fm_page_feed *f, int want_all)
{
    fm_str                   lines  = {0};
    int                      is_all = 0;
    const fm_page_feed_state s      = fm_page_feed_read(f, r->epoch, r->version, &lines, &is_all);
    if (want_all >= 0) assert_int_equal(is_all, want_all);
    if (is_all) fm_cache_index_clear(&r->pages);
    for (const char *at = lines.text; at && *at; at = strchr(at, '\n') + 1) {
        const uint64_t key = strtoull(at + 1, NULL, 16);
        if (*at == '+')
            fm_cache_index_insert(&r->pages, key);
        else
            fm_cache_index_evict(&r->pages, key);
    }
    r->epoch   = s.epoch;
    r->version = s.version;
    fm_str_fini(&lines);
}

static int known(const reader *r, const int32_t *token, int n)
{
    uint64_t     key[CONTEXT / PAGE];
    fm_page_hash h = fm_page_hash_root(0);
    for (int i = 0; i < n / PAGE; i++) {
        h      = fm_page_hash_next(h, token + i * PAGE, PAGE);
        key[i] = h.lo;
    }
    return fm_cache_index_match(&r->pages, key, n / PAGE, 0) * PAGE;
}

/* Texts share prefixes; the pool holds a few of them, so pages come and go. */
static void make_text(int32_t *token, int which)
{
    for (int i = 0; i < CONTEXT; i++) token[i] = i < 8 ? which % 2 : i < 20 ? which % 6 : which;
}

static void readers_know_what_the_tree_holds(void **state)
{
    (void)state;
    fm_kv        *kv        = make_cache();
    fm_page_feed *feed      = NULL;
    reader        all_along = {{0}, 0, 0};
    int32_t       token[CONTEXT];
    assert_int_equal(fm_page_feed_create(&feed, N_PAGE, PAGE), FM_OK);
    assert_int_equal(fm_page_feed_follow(feed, kv, 0), FM_OK);
    catch_up(&all_along, feed, 1);
    for (int round = 0; round < 400; round++) {
        make_text(token, (int)(fm_rng_u32(1, (uint64_t)round) % 18));
        use(kv, token, 20 + (int)(fm_rng_u32(2, (uint64_t)round) % 40));
        if (round == 200) fm_kv_flush(kv);
        if (round % 3 == 0) catch_up(&all_along, feed, 0);
        if (round % 3) continue;
        reader late = {{0}, 0, 0};
        catch_up(&late, feed, 1);
        for (int which = 0; which < 18; which++) {
            make_text(token, which);
            const int want = fm_kv_match(kv, token, CONTEXT);
            assert_int_equal(known(&all_along, token, CONTEXT), want);
            assert_int_equal(known(&late, token, CONTEXT), want);
        }
        assert_int_equal(all_along.pages.n_held, late.pages.n_held);
        fm_cache_index_fini(&late.pages);
    }
    fm_cache_index_fini(&all_along.pages);
    fm_kv_destroy(kv);
    fm_page_feed_destroy(feed);
}

/* A reader that comes too late, or from another life of the server, begins anew. */
static void lost_readers_get_everything(void **state)
{
    (void)state;
    fm_kv        *kv   = make_cache();
    fm_page_feed *feed = NULL;
    reader        r    = {{0}, 0, 0};
    int32_t       token[CONTEXT];
    assert_int_equal(fm_page_feed_create(&feed, N_PAGE, PAGE), FM_OK);
    assert_int_equal(fm_page_feed_follow(feed, kv, 0), FM_OK);
    make_text(token, 3);
    use(kv, token, 40);
    catch_up(&r, feed, 1);
    catch_up(&r, feed, 0);
    for (int i = 0; i < 1000; i++) { /* more changes than are kept */
        make_text(token, i);
        use(kv, token, 60);
    }
    catch_up(&r, feed, 1);
    assert_int_equal(known(&r, token, 60), 60);
    r.version += 1000; /* it knows more than there is */
    catch_up(&r, feed, 1);
    r.epoch++;
    catch_up(&r, feed, 1);
    assert_int_equal(known(&r, token, 60), 60);
    fm_cache_index_fini(&r.pages);
    fm_kv_destroy(kv);
    fm_page_feed_destroy(feed);
}

/* Two partitions hold the same page: it is gone with the second. */
static void partitions_are_counted(void **state)
{
    (void)state;
    fm_kv        *kv[2] = {make_cache(), make_cache()};
    fm_page_feed *feed  = NULL;
    reader        r     = {{0}, 0, 0};
    int32_t       token[CONTEXT];
    assert_int_equal(fm_page_feed_create(&feed, 2 * N_PAGE, PAGE), FM_OK);
    make_text(token, 5);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(fm_page_feed_follow(feed, kv[i], i * N_PAGE), FM_OK);
        use(kv[i], token, 40);
    }
    catch_up(&r, feed, 1);
    fm_kv_flush(kv[1]);
    catch_up(&r, feed, 0);
    assert_int_equal(known(&r, token, 40), 40);
    fm_kv_flush(kv[0]);
    catch_up(&r, feed, 0);
    assert_int_equal(known(&r, token, 40), 0);
    assert_int_equal(r.pages.n_held, 0);
    fm_cache_index_fini(&r.pages);
    for (int i = 0; i < 2; i++) fm_kv_destroy(kv[i]);
    fm_page_feed_destroy(feed);
}

/* A page that is demoted leaves the feed, one that is loaded again enters it. */
static void tiers_are_not_listed(void **state)
{
    (void)state;
    fm_kv        *kv   = NULL;
    fm_page_feed *feed = NULL;
    reader        r    = {{0}, 0, 0};
    fm_kv_lease   lease;
    int32_t       token[CONTEXT], page[CONTEXT / PAGE];
    assert_int_equal(fm_kv_create(&kv, &(fm_kv_options){.n_page      = N_PAGE,
                                                        .page_size   = PAGE,
                                                        .max_lease   = 2,
                                                        .max_context = CONTEXT,
                                                        .share       = 1,
                                                        .has_tiers   = 1}),
                     FM_OK);
    assert_int_equal(fm_page_feed_create(&feed, N_PAGE, PAGE), FM_OK);
    assert_int_equal(fm_page_feed_follow(feed, kv, 0), FM_OK);
    make_text(token, 3);
    use(kv, token, 40);
    catch_up(&r, feed, 1);
    assert_int_equal(known(&r, token, 40), 40);
    assert_int_equal(fm_page_feed_get_state(feed).evicted, 0); /* pages came, and none has left */
    fm_kv_demote_all(kv);
    assert_true(fm_page_feed_get_state(feed).evicted > r.version);
    catch_up(&r, feed, 0);
    assert_int_equal(known(&r, token, 40), 0);
    assert_int_equal(fm_kv_adopt_begin(kv, &lease, token, 0, 5, page), 5);
    catch_up(&r, feed, 0);
    assert_int_equal(known(&r, token, 40), 0); /* its bytes are still under way */
    fm_kv_adopt_end(kv, &lease, token, 1);
    catch_up(&r, feed, 0);
    assert_int_equal(known(&r, token, 40), 5 * PAGE);
    assert_int_equal(r.pages.n_held, 5);
    fm_cache_index_fini(&r.pages);
    fm_kv_destroy(kv);
    fm_page_feed_destroy(feed);
}

static void expected_pages_count_for_a_while(void **state)
{
    (void)state;
    fm_cache_index c = {0};
    fm_cache_index_expect(&c, 7, 100);
    assert_true(fm_cache_index_has(&c, 7, 99));
    assert_false(fm_cache_index_has(&c, 7, 101));
    fm_cache_index_insert(&c, 7); /* the feed confirms it: from here on it alone says */
    assert_true(fm_cache_index_has(&c, 7, 1e6));
    fm_cache_index_evict(&c, 7);
    assert_false(fm_cache_index_has(&c, 7, 99));
    fm_cache_index_evict(&c, 8); /* unknown */
    for (uint64_t i = 1; i < 100000; i++) fm_cache_index_insert(&c, i * 0x9e3779b97f4a7c15u);
    for (uint64_t i = 1; i < 100000; i += 2) fm_cache_index_evict(&c, i * 0x9e3779b97f4a7c15u);
    for (uint64_t i = 1; i < 100000; i++)
        assert_int_equal(fm_cache_index_has(&c, i * 0x9e3779b97f4a7c15u, 0), i % 2 == 0);
    assert_int_equal(c.n_held, 49999);
    fm_cache_index_fini(&c);
}

/* Pages of prompts that a worker refused are never in its feed: they must not stay. */
static void expected_pages_that_never_come_are_dropped(void **state)
{
    (void)state;
    const uint64_t odd = 0x9e3779b97f4a7c15u;
    fm_cache_index c   = {0};
    fm_cache_index_insert(&c, 7);
    for (uint64_t round = 0; round < 20; round++) {
        const double now = 100.0 * (double)round;
        for (uint64_t i = 1; i <= 10000; i++)
            fm_cache_index_expect(&c, (round * 10000 + i) * odd, now + 20);
        fm_cache_index_expire(&c, now + 10, 1 << 20);
        assert_int_equal(c.n_expected, 10000);
        while (c.n_expected) fm_cache_index_expire(&c, now + 30, 64);
    }
    assert_true(c.n_entry <= 1024);
    assert_int_equal(c.n_held, 1);
    assert_true(fm_cache_index_has(&c, 7, 1e6));
    fm_cache_index_fini(&c);
}

static void a_failed_request_takes_back_what_it_expected(void **state)
{
    (void)state;
    fm_cache_index c = {0};
    fm_cache_index_expect(&c, 1, 20);
    fm_cache_index_expect(&c, 2, 20);
    fm_cache_index_expect(&c, 3, 20);
    fm_cache_index_expect(&c, 2, 30); /* a later request has this page, too */
    fm_cache_index_insert(&c, 3);
    for (uint64_t i = 1; i <= 4; i++) fm_cache_index_unexpect(&c, i, 20);
    for (uint64_t i = 1; i <= 4; i++)
        assert_int_equal(fm_cache_index_has(&c, i, 10), i == 2 || i == 3);
    assert_int_equal(c.n_expected, 1);
    assert_int_equal(c.n_held, 1);
    fm_cache_index_fini(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readers_know_what_the_tree_holds),
        cmocka_unit_test(lost_readers_get_everything),
        cmocka_unit_test(partitions_are_counted),
        cmocka_unit_test(tiers_are_not_listed),
        cmocka_unit_test(expected_pages_count_for_a_while),
        cmocka_unit_test(expected_pages_that_never_come_are_dropped),
        cmocka_unit_test(a_failed_request_takes_back_what_it_expected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
