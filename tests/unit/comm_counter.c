/* SPDX-License-Identifier: Apache-2.0 */
/* A shared counter among threads: every number once, rounds begin at 0, and a
 * round that is over gives nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <pthread.h>

#include <cmocka.h>

#include "comm/counter.h"
#include "comm/counter_internal.h"

enum { THREADS = 4, NUMBERS = 20000 };

static unsigned char seen[NUMBERS + THREADS];

static void *take_all(void *counter)
{
    long long i = 0;
    while (fm_counter_next(counter, &i) == FM_OK && i < NUMBERS)
        __atomic_add_fetch(&seen[i], 1, __ATOMIC_RELAXED);
    return NULL;
}

static void every_number_once(void **state)
{
    (void)state;
    fm_comm     self = fm_comm_self();
    fm_counter *c    = NULL;
    assert_int_equal(fm_counter_open(&c, &self), FM_OK);
    for (int round = 0; round < 3; round++) {
        pthread_t thread[THREADS];
        memset(seen, 0, sizeof seen);
        fm_counter_reset(c);
        for (int t = 0; t < THREADS; t++) pthread_create(&thread[t], NULL, take_all, c);
        for (int t = 0; t < THREADS; t++) pthread_join(thread[t], NULL);
        for (int i = 0; i < NUMBERS; i++) assert_int_equal(seen[i], 1);
    }
    fm_counter_close(c);
    fm_counter_close(NULL);
}

static void a_late_comer_gets_nothing(void **state)
{
    (void)state;
    _Atomic uint64_t word = 0;
    assert_int_equal(fm__counter_take(&word, 1), 0);
    assert_int_equal(fm__counter_take(&word, 1), 1);
    assert_int_equal(fm__counter_take(&word, 2), 0);
    assert_int_equal(fm__counter_take(&word, 1), FM__ROUND_OVER);
    assert_int_equal(fm__counter_take(&word, 2), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_once),
        cmocka_unit_test(a_late_comer_gets_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
