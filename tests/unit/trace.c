/* SPDX-License-Identifier: Apache-2.0 */
/* Recording and reading: sums are exact, the ring keeps the latest, a killed writer leaves a
 * readable file, and no file makes the reader fail otherwise than with a sentence. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "trace/histogram.h"
#include "trace/trace.h"
#include "trace/trace_ranks.h"
#include "trace/trace_read.h"

static char path[] = "/tmp/fathom-trace-XXXXXX";

static fm_trace *open_trace(size_t ring_bytes)
{
    fm_trace              *t = NULL;
    const fm_trace_options o = {
        .path = path, .ring_bytes = ring_bytes, .n_rank = 1, .host = "here", .row = "row"};
    assert_int_equal(fm_trace_open(&t, &o), FM_OK);
    return t;
}

static int key(fm_trace *t, const char *name)
{
    fm_trace_key k = {.cls = FM_TRACE_WORK};
    snprintf(k.name, sizeof k.name, "%s", name);
    return fm_trace_key_of(t, &k);
}

static void sums_are_exact_when_the_ring_is_not(void **state)
{
    enum { N = 10000, KEPT = 4096 / 32 };
    fm_trace      *t    = open_trace(4096);
    const uint64_t from = fm_trace_now();
    fm_trace_file  f    = {0};
    (void)state;
    const int a = key(t, "a"), b = key(t, "b");
    assert_int_equal(key(t, "a"), a);
    for (int i = 0; i < N; i++)
        fm_trace_add(t, i % 2 ? a : b,
                     &(fm_trace_event){.begin   = from + (uint64_t)i * 1000,
                                       .end     = from + (uint64_t)i * 1000 + 100 + (uint64_t)i,
                                       .comm_ns = 50,
                                       .rows    = 3,
                                       .tag     = (uint64_t)i,
                                       .bytes   = 8,
                                       .flops   = 16});
    fm_trace_close(t);
    assert_int_equal(fm_trace_load(&f, path), FM_OK);
    assert_int_equal(f.n_key, 2);
    const fm_trace_sum *s = &f.sum[a];
    assert_int_equal(s->count, N / 2);
    assert_int_equal(s->total_ns, (uint64_t)100 * N / 2 + (uint64_t)(N / 2) * (N / 2));
    assert_int_equal(s->comm_ns, 50 * N / 2);
    assert_int_equal(s->rows, 3 * N / 2);
    assert_int_equal(s->min_ns, 101);
    assert_int_equal(s->max_ns, 100 + N - 1);
    assert_true(s->bytes == 8.0 * N / 2 && s->flops == 16.0 * N / 2);
    assert_true(s->bin[fm_trace_bin_of(8, 16)].bytes == s->bytes);
    assert_int_equal(f.n_span, KEPT - 1); /* the oldest of a full ring may be half written */
    assert_int_equal(f.n_lost, N - KEPT + 1);
    for (size_t i = 0; i < f.n_span; i++) assert_int_equal(f.span[i].tag, N - f.n_span + i);
    assert_int_equal(f.head.is_closed, 1);
    fm_trace_file_fini(&f);
}

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void quantiles_are_within_the_bound(void **state)
{
    enum { N = 20001 };
    static uint64_t x[N], bucket[FM_TRACE_BUCKETS];
    uint64_t        seed = 1;
    (void)state;
    for (int i = 0; i < N; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        x[i] = 1 + (seed >> (30 + seed % 20)); /* over many octaves */
        bucket[fm_bucket_of(x[i])]++;
    }
    qsort(x, N, sizeof *x, by_value);
    for (double q = 0.05; q < 1; q += 0.05) {
        const double want = (double)x[(int)(q * (N - 1))], got = fm_bucket_quantile(bucket, q);
        if (got < want * (1 - 1.0 / 16) - 1 || got > want * (1 + 1.0 / 16) + 1)
            fail_msg("quantile %g is %g, want %g", q, got, want);
    }
    assert_int_equal(fm_bucket_of(UINT64_MAX), FM_TRACE_BUCKETS - 1);
    assert_true(fm_bucket_quantile((uint64_t[FM_TRACE_BUCKETS]){0}, 0.5) == 0);
}

static void buckets_follow_each_other(void **state)
{
    (void)state;
    for (uint64_t ns = 0; ns < 100000; ns++) {
        const int at = fm_bucket_of(ns);
        assert_true(at == fm_bucket_of(ns ? ns - 1 : 0) || at == fm_bucket_of(ns - 1) + 1);
        assert_true(fm_bucket_middle(at) <= (double)ns * 17 / 16 + 0.5 &&
                    fm_bucket_middle(at) >= (double)ns * 15 / 16 - 0.5);
    }
}

static void keys_without_room_share_one(void **state)
{
    fm_trace *t = open_trace(4096);
    char      name[16];
    (void)state;
    for (int i = 0; i < FM_TRACE_KEYS + 50; i++) {
        snprintf(name, sizeof name, "key %d", i);
        assert_int_equal(key(t, name), i < FM_TRACE_KEYS - 1 ? i : FM_TRACE_KEYS - 1);
    }
    assert_int_equal(key(t, "key 7"), 7);
    fm_trace_close(t);
}

/* Writes spans until it is killed; says by a pipe that it has begun. */
static void write_for_ever(int say)
{
    fm_trace *t = open_trace(1 << 20);
    const int k = key(t, "work");
    for (uint64_t i = 0;; i++) {
        const uint64_t now = fm_trace_now();
        fm_trace_add(t, k, &(fm_trace_event){.begin = now, .end = now + 10, .tag = i});
        if (i == 1000 && write(say, "x", 1) != 1) _exit(1);
    }
}

/* Which may take long: of many ranks, or on busy hosts. */
static void comparing_clocks_is_not_measured(void **state)
{
    fm_comm       self = fm_comm_self();
    fm_trace_file f    = {0};
    (void)state;
    fm_trace *t = open_trace(4096);
    usleep(100000);
    assert_int_equal(fm_trace_compare_clocks(t, &self, 0), FM_OK);
    const uint64_t now = fm_trace_now();
    fm_trace_add(t, key(t, "a"), &(fm_trace_event){.begin = now, .end = now + 1000});
    assert_int_equal(fm_trace_compare_clocks(t, &self, 1), FM_OK);
    fm_trace_close(t);
    assert_int_equal(fm_trace_load(&f, path), FM_OK);
    assert_true(f.head.last_ns < 100000000);
    assert_true(f.head.epoch_ns + f.head.last_ns == now + 1000);
    fm_trace_file_fini(&f);
}

static void a_killed_writer_leaves_a_readable_trace(void **state)
{
    int           pipes[2], status = 0;
    char          x;
    fm_trace_file f = {0};
    (void)state;
    assert_int_equal(pipe(pipes), 0);
    const pid_t child = fork();
    if (child == 0) write_for_ever(pipes[1]);
    assert_int_equal(read(pipes[0], &x, 1), 1);
    usleep(200000);
    const uint64_t killed = fm_trace_now();
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(fm_trace_load(&f, path), FM_OK);
    assert_int_equal(f.head.is_closed, 0);
    assert_true(f.n_span > 1000);
    const uint64_t last = f.head.epoch_ns + f.span[f.n_span - 1].begin_ns;
    assert_true(killed < last || killed - last < 1000000000); /* up to the last second */
    for (size_t i = 1; i < f.n_span; i++) assert_int_equal(f.span[i].tag, f.span[i - 1].tag + 1);
    assert_true(f.sum[0].count + 1 >= f.head.n_span);
    fm_trace_file_fini(&f);
}

/* --- hostile files ----------------------------------------------------------- */

static char  *good;
static size_t good_size;

static void read_good(void)
{
    fm_trace *t = open_trace(4096);
    for (int i = 0; i < 200; i++)
        fm_trace_add(t, key(t, i % 2 ? "a" : "b"),
                     &(fm_trace_event){.begin = fm_trace_now(), .end = fm_trace_now()});
    fm_trace_close(t);
    FILE *f = fopen(path, "rb");
    fseek(f, 0, SEEK_END);
    good_size = (size_t)ftell(f);
    rewind(f);
    good = malloc(good_size);
    assert_int_equal(fread(good, 1, good_size, f), good_size);
    fclose(f);
}

static void try_bytes(const char *bytes, size_t size)
{
    fm_trace_file f = {0};
    if (fm_trace_parse(&f, bytes, size, "file") != FM_OK) {
        assert_true(fm_why()[0] != 0);
        return;
    }
    for (size_t i = 0; i < f.n_span; i++) assert_true(f.span[i].key < f.n_key);
    fm_trace_file_fini(&f);
}

static void no_bytes_crash_the_reader(void **state)
{
    uint64_t seed = 7;
    char    *bad;
    (void)state;
    read_good();
    bad = malloc(good_size);
    for (size_t n = 0; n < good_size; n += n < 1024 ? 7 : 4099) try_bytes(good, n);
    for (int i = 0; i < 4000; i++) {
        memcpy(bad, good, good_size);
        for (int k = 0; k < 4; k++) {
            seed                      = seed * 6364136223846793005u + 1442695040888963407u;
            const size_t where        = i % 2 ? sizeof(fm_trace_head) : good_size;
            bad[(seed >> 20) % where] = (char)(seed >> 56);
        }
        try_bytes(bad, good_size);
    }
    free(bad);
    free(good);
}

static void says_why_a_file_is_no_trace(void **state)
{
    fm_trace_file f = {0};
    (void)state;
    assert_int_equal(fm_trace_parse(&f, "hello", 5, "x.txt"), FM_E_FORMAT);
    assert_string_equal(fm_why(),
                        "x.txt is no trace; --trace FILE of bench, serve, run and scf writes one");
    assert_int_equal(fm_trace_load(&f, "/nowhere/at/all"), FM_E_IO);
}

static void says_why_a_trace_cannot_be_written(void **state)
{
    fm_trace *t = NULL;
    (void)state;
    assert_int_equal(
        fm_trace_open(
            &t, &(fm_trace_options){.path = "/nowhere/trace", .ring_bytes = 4096, .n_rank = 1}),
        FM_E_IO);
    assert_string_equal(fm_why(), "/nowhere/trace: No such file or directory");
    assert_null(t);
}

static void no_room_leaves_no_file(void **state)
{
    (void)state;
    struct rlimit all, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &all), 0);
    small          = all;
    small.rlim_cur = 4096;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    fm_trace       *t  = NULL;
    const fm_status rc = fm_trace_open(
        &t, &(fm_trace_options){.path = path, .ring_bytes = 1 << 20, .n_rank = 1, .program = "t"});
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);
    assert_int_equal(rc, FM_E_IO);
    assert_non_null(strstr(fm_why(), "no room for a trace"));
    assert_null(t);
    assert_int_not_equal(access(path, F_OK), 0);
}

static void rings_of_many_ranks_share_the_default(void **state)
{
    (void)state;
    assert_int_equal(fm_trace_ring_bytes(0, 1), 64 << 20);
    for (int n = 1; n <= 38; n++) { /* 100 MB in all */
        const size_t each = fm_trace_ring_bytes(0, n) + fm_trace_table_bytes();
        if ((size_t)n * each > 100000000) fail_msg("%d ranks of %zu bytes", n, each);
    }
    assert_int_equal(fm_trace_ring_bytes(0, 39), 1 << 20);
    assert_int_equal(fm_trace_ring_bytes(0, 4096), 1 << 20);
    assert_int_equal(fm_trace_ring_bytes(3, 16), 3 << 20);
}

/* The bytes that a full ring leaves are those of the arithmetic. */
static void a_full_ring_leaves_ring_and_tables(void **state)
{
    enum { RING = 8192 };
    fm_trace   *t    = open_trace(RING);
    const int   work = key(t, "work");
    struct stat st;
    (void)state;
    for (int i = 0; i < 2 * RING / 32; i++)
        fm_trace_add(t, work, &(fm_trace_event){.begin = fm_trace_now(), .end = fm_trace_now()});
    fm_trace_close(t);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, RING + fm_trace_table_bytes());
}

static int make_file(void **state)
{
    (void)state;
    const int fd = mkstemp(path);
    if (fd >= 0) close(fd);
    return fd < 0;
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_exact_when_the_ring_is_not),
        cmocka_unit_test(quantiles_are_within_the_bound),
        cmocka_unit_test(buckets_follow_each_other),
        cmocka_unit_test(keys_without_room_share_one),
        cmocka_unit_test(comparing_clocks_is_not_measured),
        cmocka_unit_test(a_killed_writer_leaves_a_readable_trace),
        cmocka_unit_test(no_bytes_crash_the_reader),
        cmocka_unit_test(says_why_a_file_is_no_trace),
        cmocka_unit_test(says_why_a_trace_cannot_be_written),
        cmocka_unit_test(no_room_leaves_no_file),
        cmocka_unit_test(rings_of_many_ranks_share_the_default),
        cmocka_unit_test(a_full_ring_leaves_ring_and_tables),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
