/* SPDX-License-Identifier: Apache-2.0 */
/* Where a prompt goes when caches are full: workers as the router knows them, no sockets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "llm/route/route_internal.h"

enum { N_WORKER = 3, PAGE = 16, N_PAGE = 64 };

typedef struct {
    fm_route_options opt;
    fm_route         route;
    fm_worker        worker[N_WORKER];
} stand;

static stand *make_stand(void)
{
    stand *s = calloc(1, sizeof *s);
    assert_non_null(s);
    s->route.opt    = &s->opt;
    s->route.policy = FM_ROUTE_CACHE_AWARE;
    for (int i = N_WORKER; i-- > 0;) {
        fm_worker *w      = &s->worker[i];
        w->id             = i + 1;
        w->health         = FM_WORKER_UP;
        w->feed.page_size = PAGE;
        w->feed.n_page    = N_PAGE;
        w->next           = s->route.workers;
        s->route.workers  = w;
    }
    return s;
}

static void free_stand(stand *s)
{
    for (int i = 0; i < N_WORKER; i++) fm_cache_index_fini(&s->worker[i].feed.pages);
    free(s);
}

static fm__rcall *make_call(int32_t first, int n)
{
    fm__rcall *c = calloc(1, sizeof *c);
    assert_non_null(c);
    for (int i = 0; i < n; i++) fm_ids_add(&c->prompt, first + i);
    return c;
}

static void free_call(fm__rcall *c)
{
    fm_ids_fini(&c->prompt);
    free(c->page);
    free(c);
}

/* The worker has n pages that so many prompts had, none of which the test sends; last used so many
 * seconds ago. */
static void fill_with(fm_worker *w, int n, int n_prompt, double seconds)
{
    fm_cache_index *pages = &w->feed.pages;
    fm_cache_index_expire(pages, fm_now() - seconds, 1);
    for (int i = 0; i < n; i++) {
        const uint64_t key = (uint64_t)(w->id * 1000 + i);
        fm_cache_index_insert(pages, key);
        for (int k = 0; k < n_prompt; k++) fm_cache_index_use(pages, &key, 1, fm_now() - seconds);
    }
}

static void fill(fm_worker *w, int n, double seconds) { fill_with(w, n, 2, seconds); }

static int chosen(stand *s, fm__rcall *c)
{
    int32_t          n_cached = 0;
    const fm_worker *w        = fm__choose_worker(&s->route, c, &n_cached);
    assert_non_null(w);
    return w->id;
}

/* All caches are full: the least recently used pages are evicted first. */
static void a_new_prefix_evicts_the_oldest_pages(void **state)
{
    (void)state;
    stand     *s = make_stand();
    fm__rcall *c = make_call(1, 10 * PAGE);
    fill(&s->worker[0], N_PAGE, 2);
    fill(&s->worker[1], N_PAGE, 30);
    fill(&s->worker[2], N_PAGE, 5);
    for (int i = 0; i < 4; i++) assert_int_equal(chosen(s, c), 2);
    free_call(c);
    free_stand(s);
}

static void free_pages_are_taken_before_any_is_evicted(void **state)
{
    (void)state;
    stand     *s = make_stand();
    fm__rcall *c = make_call(1, 10 * PAGE);
    fill(&s->worker[0], N_PAGE - 12, 2);
    fill(&s->worker[1], N_PAGE, 30);
    fill(&s->worker[2], N_PAGE - 5, 5);
    for (int i = 0; i < 4; i++) assert_int_equal(chosen(s, c), 1);
    s->worker[0].promised_tokens = 12 * PAGE; /* answers under way will need these pages */
    for (int i = 0; i < 4; i++) assert_int_equal(chosen(s, c), 2);
    free_call(c);
    free_stand(s);
}

/* Pages of one prompt alone are not asked for again: evicting them costs nothing. */
static void a_new_prefix_spares_shared_pages(void **state)
{
    (void)state;
    stand     *s = make_stand();
    fm__rcall *c = make_call(1, 10 * PAGE);
    fill_with(&s->worker[0], N_PAGE, 3, 20);
    fill_with(&s->worker[1], N_PAGE, 2, 20);
    fill_with(&s->worker[2], N_PAGE, 1, 20);
    for (int i = 0; i < 4; i++) assert_int_equal(chosen(s, c), 3);
    s->worker[2].pending_tokens = 10 * PAGE * 4; /* until the queue costs more than what is lost */
    for (int i = 0; i < 4; i++) assert_int_equal(chosen(s, c), 3);
    s->worker[2].pending_tokens = 10 * PAGE * 6;
    for (int i = 0; i < 4; i++) assert_int_not_equal(chosen(s, c), 3);
    free_call(c);
    free_stand(s);
}

/* Within a factor of two the queues decide. */
static void similar_ages_leave_it_to_the_queue(void **state)
{
    (void)state;
    stand     *s = make_stand();
    fm__rcall *c = make_call(1, 10 * PAGE);
    for (int i = 0; i < N_WORKER; i++) fill(&s->worker[i], N_PAGE, 20 + 4 * i);
    s->worker[1].pending_tokens = s->worker[2].pending_tokens = 100;
    for (int i = 0; i < 4; i++) assert_int_equal(chosen(s, c), 1);
    free_call(c);
    free_stand(s);
}

/* A prompt's use of its pages makes them young, and so does sending it. */
static void prompts_that_were_sent_make_their_pages_young(void **state)
{
    (void)state;
    stand     *s = make_stand();
    fm__rcall *a = make_call(1, 10 * PAGE), *b = make_call(5000, 10 * PAGE);
    for (int i = 0; i < N_WORKER; i++) fill(&s->worker[i], N_PAGE - 9, 30);
    for (int i = 0; i < N_WORKER; i++) fm__prompt_expect(a, &s->worker[i]);
    assert_true(fm_cache_index_age(&s->worker[0].feed.pages, N_PAGE - 9, fm_now()) > 20);
    assert_true(fm_cache_index_age(&s->worker[0].feed.pages, N_PAGE, fm_now()) < 20);
    assert_int_equal(fm__prompt_cached(a, &s->worker[0]), 9 * PAGE);
    fm__prompt_unexpect(a, &s->worker[1]); /* it failed there: the pages are free again */
    for (int i = 0; i < 4; i++) assert_int_equal(chosen(s, b), 2);
    free_call(a);
    free_call(b);
    free_stand(s);
}

/* Of equal workers one has computed its first prompts beside others and reports half the rate. */
static void rates_that_differ_little_leave_no_cache_empty(void **state)
{
    (void)state;
    stand     *s = make_stand();
    fm__rcall *c = make_call(1, 10 * PAGE);
    for (int i = 0; i < N_WORKER; i++) {
        s->worker[i].feed.prefill_rate = i == 1 ? 9000 : 20000;
        s->worker[i].feed.rated        = fm_now();
        if (i != 1) fill(&s->worker[i], N_PAGE, 2);
    }
    for (int i = 0; i < 4; i++) assert_int_equal(chosen(s, c), 2);
    free_call(c);
    free_stand(s);
}

/* One that seemed slow is given a prompt from time to time, else it would seem slow for ever; the
 * slower, the more seldom. */
static void slow_workers_are_measured_anew(void **state)
{
    (void)state;
    stand     *s = make_stand();
    fm__rcall *c = make_call(1, 10 * PAGE);
    for (int i = 0; i < N_WORKER; i++) {
        s->worker[i].feed.prefill_rate = i == 1 ? 200 : 20000;
        s->worker[i].feed.rated        = fm_now() - 100;
        if (i != 1) fill(&s->worker[i], N_PAGE, 2);
    }
    for (int i = 0; i < 4; i++) assert_int_not_equal(chosen(s, c), 2);
    s->worker[1].feed.rated = fm_now() - 1000;
    for (int i = 0; i < 4; i++) assert_int_equal(chosen(s, c), 2);
    free_call(c);
    free_stand(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_prefix_evicts_the_oldest_pages),
        cmocka_unit_test(free_pages_are_taken_before_any_is_evicted),
        cmocka_unit_test(a_new_prefix_spares_shared_pages),
        cmocka_unit_test(similar_ages_leave_it_to_the_queue),
        cmocka_unit_test(prompts_that_were_sent_make_their_pages_young),
        cmocka_unit_test(rates_that_differ_little_leave_no_cache_empty),
        cmocka_unit_test(slow_workers_are_measured_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
