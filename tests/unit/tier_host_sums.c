/* SPDX-License-Identifier: Apache-2.0 */
/* Checksums of pages in host memory: bytes that changed are found, and a page is never taken for
 * another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "llm/tier/host_sums.h"

enum { N_SLOT = 64, N_CHECK = 16, STRIDE = 8192, BYTES = 5000 };

static char          *memory;
static fm_host_sums  *h;

static void open_with(double fault_rate)
{
    const fm_host_sums_options o = {.stride     = STRIDE,
                                    .image      = memory,
                                    .image_bytes = BYTES,
                                    .n_slot     = N_SLOT,
                                    .n_check    = N_CHECK,
                                    .fault_rate = fault_rate};
    assert_int_equal(fm_host_sums_create(&h, &o), FM_OK);
}

static int open_plain(void **state)
{
    (void)state;
    memory = calloc(N_SLOT, STRIDE);
    open_with(0);
    return memory == NULL;
}

static int shut(void **state)
{
    (void)state;
    fm_host_sums_destroy(h);
    free(memory);
    return 0;
}

static fm_page_hash key(int i) { return (fm_page_hash){(uint64_t)i, 7}; }

static void fill(int slot, int i)
{
    fm_host_sums_expect(h, slot, key(i));
    for (int k = 0; k < BYTES; k++) memory[slot * STRIDE + k] = (char)(i * 31 + k * 7);
}

static fm_slot_state check(int number, int slot, int i)
{
    fm_slot_state is;
    fm_host_sums_check(h, number, slot, key(i));
    while ((is = fm_host_sums_checked(h, number)) == FM_SLOT_BUSY) fm_host_sums_wait(h, 0.01);
    return is;
}

static void wait_made(int slot, int i)
{
    fm_hash128 sum;
    fm_host_sums_make(h, slot);
    while (!fm_host_sums_get(h, slot, key(i), &sum)) fm_host_sums_wait(h, 0.001);
}

static void what_is_unchanged_is_good(void **state)
{
    (void)state;
    for (int i = 0; i < N_SLOT; i++) {
        fill(i, i);
        wait_made(i, i);
    }
    for (int i = 0; i < N_SLOT; i++) assert_int_equal(check(i % N_CHECK, i, i), FM_SLOT_READY);
    assert_int_equal(fm_host_sums_get_stats(h).n_altered, 0);
}

static void every_altered_bit_is_found(void **state)
{
    (void)state;
    fill(3, 5);
    wait_made(3, 5);
    for (int i = 0; i < 200; i++) {
        char *const at = &memory[3 * STRIDE + (int)(fm_rng_u32(1, (uint64_t)i) % BYTES)];
        *at            = (char)(*at ^ 1 << i % 8);
        assert_int_equal(check(0, 3, 5), FM_SLOT_FAILED);
        *at = (char)(*at ^ 1 << i % 8);
        assert_int_equal(check(1, 3, 5), FM_SLOT_READY);
    }
    assert_int_equal(fm_host_sums_get_stats(h).n_altered, 200);
}

static void another_page_is_not_taken_for_it(void **state)
{
    (void)state;
    fill(0, 1);
    wait_made(0, 1);
    assert_int_equal(check(0, 0, 2), FM_SLOT_FAILED); /* not the page that was asked for */
    assert_int_equal(check(0, 9, 1), FM_SLOT_FAILED); /* a slot that never had one */
    fill(0, 2);
    assert_int_equal(check(0, 0, 1), FM_SLOT_FAILED); /* it has made room */
}

/* A check before the bytes have come is answered when they have. */
static void a_check_waits_for_the_bytes(void **state)
{
    (void)state;
    fill(2, 2);
    fm_host_sums_check(h, 4, 2, key(2));
    assert_int_equal(fm_host_sums_checked(h, 4), FM_SLOT_BUSY);
    fm_host_sums_wait(h, 0.001);
    assert_int_equal(fm_host_sums_checked(h, 4), FM_SLOT_BUSY);
    wait_made(2, 2);
    assert_int_equal(fm_host_sums_checked(h, 4), FM_SLOT_READY);
}

/* Slots are filled again while checksums of what they had are still made. */
static void a_slot_that_is_filled_again_has_the_new_checksum(void **state)
{
    (void)state;
    for (int i = 0; i < 5000; i++) {
        const int slot = (int)(fm_rng_u32(2, (uint64_t)i) % 4);
        fill(slot, i);
        fm_host_sums_make(h, slot);
        if (i % 3 == 0) assert_int_equal(check(i % N_CHECK, slot, i), FM_SLOT_READY);
    }
    assert_int_equal(fm_host_sums_get_stats(h).n_altered, 0);
}

static void injected_faults_are_found(void **state)
{
    int n_failed = 0;
    (void)state;
    fm_host_sums_destroy(h);
    open_with(0.2);
    for (int i = 0; i < 1000; i++) {
        fill(i % N_SLOT, i);
        wait_made(i % N_SLOT, i);
        n_failed += check(0, i % N_SLOT, i) == FM_SLOT_FAILED;
    }
    assert_in_range(n_failed, 100, 300);
    assert_int_equal(fm_host_sums_get_stats(h).n_altered, n_failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_unchanged_is_good, open_plain, shut),
        cmocka_unit_test_setup_teardown(every_altered_bit_is_found, open_plain, shut),
        cmocka_unit_test_setup_teardown(another_page_is_not_taken_for_it, open_plain, shut),
        cmocka_unit_test_setup_teardown(a_check_waits_for_the_bytes, open_plain, shut),
        cmocka_unit_test_setup_teardown(a_slot_that_is_filled_again_has_the_new_checksum, open_plain, shut),
        cmocka_unit_test_setup_teardown(injected_faults_are_found, open_plain, shut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
