/* SPDX-License-Identifier: Apache-2.0 */
/* Which pages of a pool are backed, as the system tells (mincore). */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "device/host.h"
#include "device/host_prefault.h"

/* Two layers of two parts of 16 MiB, units of 16 KiB: 128 of them fill a huge page. */
enum {
    UNIT    = 16 << 10,
    N_UNIT  = 1024,
    N_PART  = 2,
    N_LAYER = 2,
    BAND    = 128,
    AHEAD   = 192,
    PART    = N_UNIT * UNIT,
    LAYER   = N_PART * PART,
    POOL    = N_LAYER * LAYER,
    HUGE    = 2 << 20
};

typedef struct {
    char        *pool;
    fm_prefault *prefault;
} stand;

static int make(void **state)
{
    static stand s;
    if (fm_host_alloc((void **)&s.pool, POOL, "pool") != FM_OK) return -1;
    const fm_prefault_options o = {.base        = s.pool,
                                   .n_layer     = N_LAYER,
                                   .n_part      = N_PART,
                                   .layer_bytes = LAYER,
                                   .unit_bytes  = UNIT,
                                   .n_unit      = N_UNIT,
                                   .ahead       = AHEAD,
                                   .n_thread    = 2,
                                   .seconds     = 60};
    if (fm_prefault_create(&s.prefault, &o) != FM_OK) return -1;
    *state = &s;
    return 0;
}

static int unmake(void **state)
{
    stand *s = *state;
    fm_prefault_destroy(s->prefault);
    fm_host_free(s->pool, POOL);
    return 0;
}

static void skip_where_the_system_cannot(const stand *s)
{
    if (fm_prefault_backed(s->prefault)) return;
    print_message("no MADV_POPULATE_WRITE, or too little free memory\n");
    skip();
}

static int is_backed(const stand *s, int layer, int part, int unit)
{
    const size_t    page = (size_t)sysconf(_SC_PAGESIZE);
    const uintptr_t at   = (uintptr_t)s->pool + (size_t)layer * LAYER + (size_t)part * PART +
                         (size_t)unit * UNIT;
    unsigned char   is[UNIT / 1024 + 1] = {0};
    assert_return_code(mincore((void *)(at - at % page), UNIT, is), 0);
    return is[0] & 1;
}

/* Units [0, n) are, in all layers of all parts, and those a huge page behind the end of their band
 * are not. */
static void expect_backed_up_to(const stand *s, int n)
{
    const int end = (n + BAND - 1) / BAND * BAND + HUGE / UNIT;
    for (int layer = 0; layer < N_LAYER; layer++)
        for (int part = 0; part < N_PART; part++) {
            for (int i = 0; i < n; i++) assert_true(is_backed(s, layer, part, i));
            /* The end of a part may share a huge page with the beginning of the next. */
            for (int i = end; i < N_UNIT - HUGE / UNIT; i++)
                assert_false(is_backed(s, layer, part, i));
        }
}

static void rest(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static void wait_for(const stand *s, int n)
{
    for (int i = 0; i < 6000 && fm_prefault_backed(s->prefault) < n; i++) rest(10);
    assert_true(fm_prefault_backed(s->prefault) >= n);
}

static void the_first_units_are_backed_at_once(void **state)
{
    const stand *s = *state;
    skip_where_the_system_cannot(s);
    expect_backed_up_to(s, AHEAD);
}

static void the_thread_stays_ahead_and_goes_no_further(void **state)
{
    const stand *s = *state;
    skip_where_the_system_cannot(s);
    fm_prefault_reach(s->prefault, 300);
    wait_for(s, 300 + AHEAD);
    fm_prefault_reach(s->prefault, 20); /* lower ones change nothing */
    rest(100);
    expect_backed_up_to(s, 300 + AHEAD);
}

static void nothing_is_backed_while_it_is_paused(void **state)
{
    const stand *s = *state;
    skip_where_the_system_cannot(s);
    const int was = fm_prefault_backed(s->prefault);
    fm_prefault_pause(s->prefault);
    fm_prefault_reach(s->prefault, 300);
    rest(200);
    assert_int_equal(fm_prefault_backed(s->prefault), was);
    expect_backed_up_to(s, AHEAD);
    fm_prefault_resume(s->prefault);
    wait_for(s, 300 + AHEAD);
}

/* Bytes that are not `value`. */
static int n_other(const char *p, int n, char value)
{
    int other = 0;
    for (int i = 0; i < n; i++) other += p[i] != value;
    return other;
}

static void contents_stay(void **state)
{
    const stand *s = *state;
    skip_where_the_system_cannot(s);
    memset(s->pool, 0x5a, PART / 2);
    fm_prefault_reach(s->prefault, N_UNIT);
    wait_for(s, N_UNIT);
    assert_int_equal(n_other(s->pool, PART / 2, 0x5a), 0);
    assert_int_equal(n_other(s->pool + PART / 2, PART / 2, 0), 0);
    for (int layer = 0; layer < N_LAYER; layer++)
        for (int i = 0; i < N_UNIT; i++) assert_true(is_backed(s, layer, N_PART - 1, i));
}

static void a_pool_can_go_while_it_is_backed(void **state)
{
    const stand *s = *state;
    fm_prefault_reach(s->prefault, N_UNIT);
    rest(30);
}

static void a_block_is_backed_as_far_as_time_allows(void **state)
{
    (void)state;
    char *block = NULL;
    assert_int_equal(fm_host_alloc((void **)&block, PART, "block"), FM_OK);
    assert_int_equal(fm_host_prefault(block, PART, 2, 0), 0);
    const size_t n    = fm_host_prefault(block, PART - 5000, 2, 60);
    const stand  view = {.pool = block};
    if (n) {
        assert_int_equal(n, PART - 5000);
        for (int i = 0; i < N_UNIT; i++) assert_true(is_backed(&view, 0, 0, i));
    }
    assert_int_equal(n_other(block, PART, 0), 0);
    fm_host_free(block, PART);
}

#define WITH_POOL(test) cmocka_unit_test_setup_teardown(test, make, unmake)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_POOL(the_first_units_are_backed_at_once),
        WITH_POOL(the_thread_stays_ahead_and_goes_no_further),
        WITH_POOL(nothing_is_backed_while_it_is_paused),
        WITH_POOL(contents_stay),
        WITH_POOL(a_pool_can_go_while_it_is_backed),
        cmocka_unit_test(a_block_is_backed_as_far_as_time_allows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
