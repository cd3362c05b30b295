/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of the scheduler against a sorted array, and how many requests each of its levels
 * links, which bounds what an insertion walks over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rng.h"
#include "llm/sched/queue.h"

enum { N = 3000, MANY = 20000 };

static int by_place(const void *a, const void *b)
{
    const fm_request *x = *(fm_request *const *)a, *y = *(fm_request *const *)b;
    if (x->priority != y->priority) return x->priority > y->priority ? -1 : 1;
    return x->arrival < y->arrival ? -1 : x->arrival > y->arrival;
}

static void check_order(const fm__queue *q, fm_request **want, int n)
{
    qsort(want, (size_t)n, sizeof *want, by_place);
    assert_int_equal(q->n, n);
    const fm_request *r = fm__queue_first(q);
    for (int i = 0; i < n; i++, r = fm_request_next(r)) assert_ptr_equal(r, want[i]);
    assert_null(r);
    for (int i = n - 1, at_end = 1; i >= 0; i--, at_end = 0)
        assert_ptr_equal(at_end ? q->end[0].prev : want[i + 1]->link[0].prev, want[i]);
}

static void requests_stand_by_priority_and_arrival(void **state)
{
    (void)state;
    fm_request *all = calloc(N, sizeof *all), **in = calloc(N, sizeof *in);
    fm__queue   q = {0};
    int         n = 0;
    uint64_t    d = 0;
    for (int i = 0; i < N; i++) {
        all[i].priority = (int)(fm_rng_u32(1, d++) % 3);
        all[i].arrival  = fm_rng_u32(1, d++) % 4 ? (uint64_t)i + 1 : 1 + fm_rng_u32(1, d++);
        fm__queue_insert(&q, in[n++] = &all[i]);
        if (fm_rng_u32(1, d++) % 3 == 0) { /* one leaves, from anywhere */
            const int k = (int)(fm_rng_u32(1, d++) % (uint32_t)n);
            fm__queue_remove(&q, in[k]);
            in[k] = in[--n];
        }
        if (i % 100 == 0) check_order(&q, in, n);
    }
    check_order(&q, in, n);
    for (int i = 0; i < n; i++) assert_ptr_equal(fm__queue_pop(&q), in[i]);
    assert_null(fm__queue_pop(&q));
    for (int level = 0; level < FM_QUEUE_LEVELS; level++)
        assert_true(!q.end[level].next && !q.end[level].prev);
    free(in);
    free(all);
}

static void alike_ones_keep_the_order_of_insertion(void **state)
{
    (void)state;
    fm_request r[9] = {{0}};
    fm__queue  q    = {0};
    for (int i = 0; i < 9; i++) {
        r[i].arrival = i == 4 ? 7 : 0;
        fm__queue_insert(&q, &r[i]);
    }
    for (int i = 0; i < 9; i++)
        if (i != 4) assert_ptr_equal(fm__queue_pop(&q), &r[i]);
    assert_ptr_equal(fm__queue_pop(&q), &r[4]);
}

static void each_level_links_a_quarter_of_the_one_below(void **state)
{
    (void)state;
    fm_request *all = calloc(MANY, sizeof *all);
    fm__queue   q   = {0};
    for (int i = 0; i < MANY; i++) {
        all[i].priority = i % 2;
        all[i].arrival  = (uint64_t)i;
        fm__queue_insert(&q, &all[i]);
    }
    int below = MANY;
    for (int level = 1; level < 5; level++) {
        int n = 0;
        for (const fm_request *r = q.end[level].next; r; r = r->link[level].next) n++;
        assert_in_range(4 * n, below * 3 / 4, below * 5 / 4);
        below = n;
    }
    free(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_stand_by_priority_and_arrival),
        cmocka_unit_test(alike_ones_keep_the_order_of_insertion),
        cmocka_unit_test(each_level_links_a_quarter_of_the_one_below),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
