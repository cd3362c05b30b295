/* SPDX-License-Identifier: Apache-2.0 */
/* Small things everything stands on: strings, failures, slabs, files, hashes,
 * log lines. */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/mapped_file.h"
#include "base/rng.h"
#include "base/slab.h"
#include "base/str.h"

static void strings_grow(void **state)
{
    (void)state;
    fm_str s = {0};
    for (int i = 0; i < 1000; i++) fm_str_printf(&s, "%d,", i % 10);
    assert_int_equal(s.len, 2000);
    assert_int_equal(strlen(s.text), 2000);
    assert_memory_equal(s.text, "0,1,2,3,4,5,6,7,8,9,0,", 22);
    fm_str_clear(&s);
    assert_int_equal(s.len, 0);
    assert_string_equal(s.text, "");
    fm_str_fini(&s);
    assert_null(s.text);
    fm_str_fini(&s);
}

static void strings_hold_any_byte(void **state)
{
    (void)state;
    fm_str s = {0};
    fm_str_add(&s, NULL, 0);
    assert_string_equal(s.text, "");
    fm_str_add(&s, "a\0b", 3);
    fm_str_puts(&s, "c");
    assert_int_equal(s.len, 4);
    assert_memory_equal(s.text, "a\0bc", 5); /* and the terminator */
    fm_str_fini(&s);
}

static void strings_at_the_edge_of_growth(void **state)
{
    (void)state;
    char *block = malloc(200);
    memset(block, 'x', 200);
    for (size_t n = 60; n < 70; n++) {
        fm_str s = {0};
        fm_str_add(&s, block, n);
        assert_true(s.cap > s.len && s.text[n] == 0);
        fm_str_printf(&s, "%.*s", 130, block);
        assert_int_equal(strlen(s.text), n + 130);
        fm_str_fini(&s);
    }
    free(block);
}

static void failures_leave_a_sentence(void **state)
{
    (void)state;
    char long_name[3000];
    memset(long_name, 'n', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = 0;
    assert_int_equal(fm_fail(FM_E_IO, "%s: gone", "file"), FM_E_IO);
    assert_string_equal(fm_why(), "file: gone");
    fm_fail(FM_E_FORMAT, "%s", long_name);
    assert_in_range(strlen(fm_why()), 500, 2000);
    assert_string_equal(fm_status_text(FM_OK), "ok");
    assert_true(strlen(fm_status_text(FM_E_FULL)) > 5);
    assert_string_equal(fm_status_text((fm_status)-99), "unknown status");
}

static void slabs_measure_and_place(void **state)
{
    (void)state;
    fm_slab s = {0};
    assert_null(fm_slab_take(&s, 1));
    assert_null(fm_slab_take(&s, 65));
    assert_int_equal(s.used, 64 + 128);

    char *base = aligned_alloc(FM_SLAB_ALIGN, s.used);
    s          = (fm_slab){.base = base, .size = s.used};
    assert_ptr_equal(fm_slab_take(&s, 1), base);
    assert_ptr_equal(fm_slab_take(&s, 65), base + 64);
    assert_int_equal(s.used, s.size);
    free(base);
}

static void files_become_memory(void **state)
{
    (void)state;
    char           path[] = "/tmp/fathom-test-XXXXXX";
    const int      fd     = mkstemp(path);
    fm_mapped_file f      = {0};
    assert_true(fd >= 0);
    assert_int_equal(fm_mapped_file_open(&f, path), FM_OK); /* empty */
    assert_true(f.data == NULL && f.size == 0);
    fm_mapped_file_close(&f);

    assert_int_equal(write(fd, "hello", 5), 5);
    assert_int_equal(fm_mapped_file_open(&f, path), FM_OK);
    close(fd);
    unlink(path);
    assert_int_equal(f.size, 5);
    assert_memory_equal(f.data, "hello", 5);
    fm_mapped_file_close(&f);
    fm_mapped_file_close(&f);

    assert_int_equal(fm_mapped_file_open(&f, path), FM_E_IO);
    assert_non_null(strstr(fm_why(), path));
    assert_int_equal(fm_mapped_file_open(&f, "/tmp"), FM_E_IO);
    assert_non_null(strstr(fm_why(), "not a regular file"));
    assert_null(f.data);
}

/* Dummy weights and draws hang on these: they must never change. */
static void hashes_are_pinned(void **state)
{
    (void)state;
    assert_int_equal(fm_mix32(0), 0);
    assert_int_equal(fm_mix32(1), 0x688990c0u);
    assert_int_equal(fm_rng_u32(0, 0), 0x0u);
    assert_int_equal(fm_rng_u32(0x123456789abcdef0u, 0x100000001u), 0xbf24b8b5u);
    assert_true(fm_rng_key("model.norm.weight", 7) == 0x5f5bab15890247a0u);
    assert_true(fm_rng_key("a", 0) != fm_rng_key("b", 0));
    assert_true(fm_rng_key("a", 0) != fm_rng_key("a", 1));
}

/* Every input bit flips every output bit about half the time. */
static void mixing_spreads(void **state)
{
    (void)state;
    for (int in = 0; in < 32; in++) {
        int flips[32] = {0};
        for (uint32_t x = 0; x < 2000; x++) {
            const uint32_t v = x * 0x01000193u, d = fm_mix32(v) ^ fm_mix32(v ^ 1u << in);
            for (int out = 0; out < 32; out++) flips[out] += (int)(d >> out & 1);
        }
        for (int out = 0; out < 32; out++) assert_in_range(flips[out], 850, 1150);
    }
}

/* What one log line looks like on standard error. */
static void log_into(char *line, size_t size)
{
    int       ends[2];
    const int before = dup(STDERR_FILENO);
    assert_true(before >= 0 && pipe(ends) == 0);
    dup2(ends[1], STDERR_FILENO);
    fm_log(FM_LOG_ERROR, "test", "%s", "words");
    dup2(before, STDERR_FILENO);
    const ssize_t n = read(ends[0], line, size - 1);
    line[n > 0 ? n : 0] = 0;
    close(ends[0]);
    close(ends[1]);
    close(before);
}

static void log_lines_have_the_time_since_the_start(void **state)
{
    (void)state;
    char   line[128], room[16], words[16];
    double seconds = -1;
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL); /* before the first call */
    log_into(line, sizeof line);
    assert_int_equal(sscanf(line, "%lf error %15s %15s", &seconds, room, words), 3);
    assert_true(seconds >= 0.02 && seconds < 60);
    assert_string_equal(room, "test:");
    assert_string_equal(words, "words");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(log_lines_have_the_time_since_the_start),
        cmocka_unit_test(strings_grow),
        cmocka_unit_test(strings_hold_any_byte),
        cmocka_unit_test(strings_at_the_edge_of_growth),
        cmocka_unit_test(failures_leave_a_sentence),
        cmocka_unit_test(slabs_measure_and_place),
        cmocka_unit_test(files_become_memory),
        cmocka_unit_test(hashes_are_pinned),
        cmocka_unit_test(mixing_spreads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
