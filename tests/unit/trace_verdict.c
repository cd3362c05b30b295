/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict on traces whose bottleneck is known, because they were written that way. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "trace_report/text.h"
#include "trace_report/verdict.h"
#include "trace_writer.h"

static char folder[] = "/tmp/fathom-trace-XXXXXX";
static char stem[64];

static const written_job usual = {.stem       = stem,
                                  .n_rank     = 4,
                                  .n_step     = 2000, /* long: opening four files takes time, too */
                                  .slow_rank  = -1,
                                  .attend_us  = 1000,
                                  .experts_us = 3000,
                                  .move_us    = 200,
                                  .plan_us    = 20,
                                  .gap_us     = 20};

/* The verdict on a job, judged by a machine that reads 100 GB/s and does 1 TFLOP/s. */
static void judge(fm_str *out, const written_job *w, int with_rates)
{
    fm_trace_job      job   = {0};
    fm_trace_analysis a     = {0};
    fm_rates          rates = {0};
    const char       *path  = stem;
    write_job(w);
    assert_int_equal(fm_rates_init(&rates, 1, 0, 0), FM_OK);
    snprintf(rates.rank[0].host, sizeof rates.rank[0].host, "nodea");
    snprintf(rates.made, sizeof rates.made, "2026-01-02T03:04:05Z");
    rates.rank[0].read                    = (fm_rate){1e11, 0, 1e11, 1};
    rates.rank[0].product[FM_FACTOR_BF16] = (fm_rate){1e12, 0, 1e12, 1};
    assert_int_equal(fm_trace_job_open(&job, &path, 1), FM_OK);
    assert_int_equal(fm_trace_analyse(&a, &job, with_rates ? &rates : NULL), FM_OK);
    fm_trace_verdict(out, &a);
    fm_trace_analysis_fini(&a);
    fm_trace_job_close(&job);
    fm_rates_fini(&rates);
    for (int i = 0; i < w->n_rank; i++) {
        char file[300];
        written_path(file, sizeof file, w, i);
        unlink(file);
    }
}

static void expect(const fm_str *got, const char *want)
{
    if (!strstr(got->text, want)) fail_msg("no \"%s\" in:\n%s", want, got->text);
}

static void expect_not(const fm_str *got, const char *word)
{
    if (strstr(got->text, word)) fail_msg("\"%s\" in:\n%s", word, got->text);
}

static void names_the_slow_rank(void **state)
{
    written_job w = usual;
    fm_str      v = {0};
    (void)state;
    w.slow_rank   = 3;
    w.slow_attend = 1.5;
    judge(&v, &w, 1);
    /* the others wait 500 us of a step of 4740 us; three ranks of four */
    expect(&v, "8 % of the time ranks wait for rank 3 (nodeb), which is 12 % slower in its ops, "
               "most in attend (moe) "
               "(50 % slower).\n");
    expect(&v, "63 % of the time: experts (moe): reads 33.3 GB/s from memory, 33 % of its "
               "bandwidth.\n");
    expect(&v, "Limits are known: fathom doctor measured them on nodea, 2026-01-02T03:04:05Z.\n");
    fm_str_fini(&v);
}

/* A rank that is stopped between its arrival and its sending looks like slow communication: all
 * ranks stay in the call.  It needs no more than other calls of its size. */
static void a_rank_stopped_in_a_collective_moves_no_bytes(void **state)
{
    written_job w = usual;
    fm_str      v = {0};
    (void)state;
    w.slow_rank   = 2;
    w.slow_attend = 1.1;
    w.held_every  = 3;
    w.held_us     = 9000;
    w.one_host    = 1;
    judge(&v, &w, 0);
    /* 3000 us of a step of 7340 us, and the others wait 100 us for the rank's attend */
    expect(&v, "42 % of the time ranks wait for rank 2 (nodea)");
    expect(&v, "3 % of the time ranks move bytes");
    expect(&v, "The largest single win: make rank 2 (nodea) as fast as the others");
    fm_str_fini(&v);
}

static void no_layout_is_advised_on_one_host(void **state)
{
    written_job w = usual;
    fm_str      v = {0};
    (void)state;
    w.move_us = 4000;
    judge(&v, &w, 0);
    expect(&v, "move fewer bytes between ranks, 50 % of the time (a layout that keeps groups on "
               "one host)");
    fm_str_clear(&v);
    w.one_host = 1;
    judge(&v, &w, 0);
    expect(&v, "move fewer bytes between ranks, 50 % of the time.\n");
    fm_str_fini(&v);
}

static void accuses_nobody_of_equals(void **state)
{
    fm_str v = {0};
    (void)state;
    judge(&v, &usual, 1);
    expect_not(&v, "ranks wait for rank");
    expect(&v, "5 % of the time ranks move bytes, most in all_gather (attn): 8.00 GB at 5.00 GB/s "
               "a rank.\n");
    expect(&v, "The largest single win: bring experts (moe) from 33 % of the machine's limit to "
               "the limit, 47 % of the time.\n");
    fm_str_fini(&v);
}

static void sees_the_long_prompt_stall(void **state)
{
    written_job w = usual;
    fm_str      v = {0};
    (void)state;
    w.n_rank       = 1;
    w.prompt_every = 500;
    w.prompt_us    = 800000;
    judge(&v, &w, 0);
    expect(&v, "Stalls: 4 steps \"decode behind a prompt\" took up to 801.2 ms (2079 tokens) where "
               "\"decode\" takes 4.2 ms; "
               "in the longest 31 requests waited.  To try: smaller chunks.\n");
    expect(&v, "Limits are not known: fathom doctor measures them.\n");
    fm_str_fini(&v);
}

static void sees_gaps_on_the_host(void **state)
{
    written_job w = usual;
    fm_str      v = {0};
    (void)state;
    w.n_rank = 1;
    w.gap_us = 4220;
    judge(&v, &w, 0);
    expect(&v, "50.0 % of the time are gaps between steps.\n");
    expect(&v, "The largest single win: close the gaps between steps, 50 % of the time");
    expect(&v, "A request is decode ");
    fm_str_fini(&v);
}

/* 100 steps of 5 ms of which a GPU computes 4 ms; one step of ten is timed and stands for all. */
static void write_device(fm_trace *t)
{
    enum { MS = 1000000, STEPS = 100, TIMED = 10 };
    const fm_trace_key key[] = {
        {.cls    = FM_TRACE_WORK,
         .flags  = FM_TRACE_IS_DEVICE,
         .name   = "experts",
         .part   = "moe",
         .factor = "bf16"},
        {.cls    = FM_TRACE_WORK,
         .flags  = FM_TRACE_IS_DEVICE,
         .name   = "attend",
         .part   = "moe",
         .factor = "bf16"},
        {.cls   = FM_TRACE_WORK,
         .flags = FM_TRACE_IS_DEVICE | FM_TRACE_BESIDE,
         .name  = "mlp",
         .part  = "moe, beside"},
        {.cls = FM_TRACE_PHASE, .name = "launch"},
        {.cls = FM_TRACE_PHASE, .flags = FM_TRACE_IS_DEVICE, .name = "wait for the device"}};
    const uint64_t from = fm_trace_now();
    int            k[5];
    for (int i = 0; i < 5; i++) k[i] = fm_trace_key_of(t, &key[i]);
    for (uint64_t n = 0; n < STEPS; n++) {
        const uint64_t at = from + n * 5 * MS;
        fm_trace_add(t, k[3], &(fm_trace_event){.begin = at, .end = at + 2 * MS});
        fm_trace_add(t, k[4], &(fm_trace_event){.begin = at + 2 * MS, .end = at + 5 * MS});
        if (n % TIMED) continue;
        fm_trace_event e = {
            .begin = at + MS, .end = at + 4 * MS, .bytes = 6e9, .flops = 1e9, .more = TIMED - 1};
        fm_trace_add(t, k[0], &e);
        fm_trace_add(t, k[2], &e);
        fm_trace_add(
            t, k[1],
            &(fm_trace_event){.begin = at + 4 * MS, .end = at + 5 * MS, .more = TIMED - 1});
    }
}

static void counts_what_a_device_does(void **state)
{
    fm_trace              *t     = NULL;
    fm_trace_job           job   = {0};
    fm_trace_analysis      a     = {0};
    fm_rates               rates = {0};
    fm_str                 v     = {0};
    const char            *path  = stem;
    const fm_trace_options o = {.path = stem, .ring_bytes = 1 << 16, .n_rank = 1, .task = "sample"};
    (void)state;
    assert_int_equal(fm_trace_open(&t, &o), FM_OK);
    write_device(t);
    fm_trace_close(t);
    assert_int_equal(fm_rates_init(&rates, 1, 0, 0), FM_OK);
    rates.rank[0].gpu.read                    = (fm_rate){4e12, 0, 4e12, 1};
    rates.rank[0].gpu.product[FM_FACTOR_BF16] = (fm_rate){1e15, 0, 1e15, 1};
    assert_int_equal(fm_trace_job_open(&job, &path, 1), FM_OK);
    assert_int_equal(fm_trace_analyse(&a, &job, &rates), FM_OK);
    fm_trace_verdict(&v, &a);
    expect(
        &v,
        "60 % of the time: experts (moe): reads 2000.0 GB/s from memory, 50 % of its bandwidth.\n");
    expect(&v, "20 % of the time: attend (moe).\n");
    expect(&v, "20.0 % of the time the GPU has nothing to do and waits for the host, whose own "
               "time is launch 100 %.\n");
    assert_true(a.account[0].work > 0.399 && a.account[0].work < 0.401);
    fm_trace_analysis_fini(&a);
    fm_str_clear(&v);
    assert_int_equal(fm_trace_analyse(&a, &job, NULL), FM_OK);
    fm_trace_verdict(&v, &a);
    expect(&v,
           "keep the GPU busy while the host prepares the next step, with more samples at once, "
           "20 % of the time (--html shows when it waits).\n");
    fm_str_fini(&v);
    fm_trace_analysis_fini(&a);
    fm_trace_job_close(&job);
    fm_rates_fini(&rates);
    unlink(stem);
}

/* Tables and timeline of the same: no number is looked at, but everything is there. */
static void prints_a_page(void **state)
{
    fm_trace_job      job  = {0};
    fm_trace_analysis a    = {0};
    const char       *path = stem;
    fm_str            page = {0};
    (void)state;
    write_job(&usual);
    assert_int_equal(fm_trace_job_open(&job, &path, 1), FM_OK);
    assert_int_equal(fm_trace_analyse(&a, &job, NULL), FM_OK);
    fm_trace_text(&page, &a);
    expect(&page, "test, written: 4 ranks");
    expect(&page, "\nexperts (moe)  ");
    expect(&page, "\nall_gather (attn)  ");
    expect(&page, "\nrank 3   |###");
    expect(&page, "|  9: 10 waiting or under way\n");
    expect_not(&page, "nan");
    expect_not(&page, "inf");
    fm_str_fini(&page);
    fm_trace_analysis_fini(&a);
    fm_trace_job_close(&job);
}

/* 124.6 and 124.8 ms lie in one bucket of the histogram. */
static void no_quantile_is_rounded_below_the_mean(void **state)
{
    fm_trace              *t    = NULL;
    fm_trace_job           job  = {0};
    fm_trace_analysis      a    = {0};
    fm_str                 v    = {0};
    const char            *path = stem;
    const fm_trace_options o    = {
           .path = stem, .ring_bytes = 4096, .n_rank = 1, .task = "request", .row = "token"};
    (void)state;
    assert_int_equal(fm_trace_open(&t, &o), FM_OK);
    const int      k = fm_trace_key_of(t, &(fm_trace_key){.cls = FM_TRACE_TASK, .name = "decode"});
    const uint64_t from = fm_trace_now();
    fm_trace_add(t, k, &(fm_trace_event){.begin = from, .end = from + 124600000, .tag = 1});
    fm_trace_add(t, k, &(fm_trace_event){.begin = from, .end = from + 124800000, .tag = 2});
    fm_trace_close(t);
    assert_int_equal(fm_trace_job_open(&job, &path, 1), FM_OK);
    assert_int_equal(fm_trace_analyse(&a, &job, NULL), FM_OK);
    fm_trace_verdict(&v, &a);
    expect(&v, "A request is decode 124.7 ms (99 % below 124.7 ms) on average.\n");
    fm_str_fini(&v);
    fm_trace_analysis_fini(&a);
    fm_trace_job_close(&job);
    unlink(stem);
}

/* A clock 40 s behind that is fast by 200 millionths: uncorrected, its rank would be the late one.
 */
static void clocks_of_ranks_are_aligned(void **state)
{
    written_job w = usual;
    fm_str      v = {0};
    (void)state;
    w.slow_rank      = 3;
    w.slow_attend    = 1.5;
    w.clock_rank     = 1;
    w.clock_ahead_ns = -40000000000;
    w.clock_fast     = 200e-6;
    judge(&v, &w, 1);
    expect(&v, "8 % of the time ranks wait for rank 3 (nodeb), which is 12 % slower in its ops");
    expect(&v, "4 % of the time ranks move bytes, most in all_gather (attn): 8.00 GB at 5.00 GB/s");
    fm_str_fini(&v);
}

static void times_are_of_the_first_ranks_clock(void **state)
{
    written_job  w    = usual;
    fm_trace_job job  = {0};
    const char  *path = stem;
    (void)state;
    w.n_rank         = 2;
    w.clock_rank     = 1;
    w.clock_ahead_ns = 7000000000;
    w.clock_fast     = -500e-6;
    write_job(&w);
    assert_int_equal(fm_trace_job_open(&job, &path, 1), FM_OK);
    const fm_trace_file *f[2] = {&job.file[0], &job.file[1]};
    assert_true(f[1]->head.epoch_ns > f[0]->head.epoch_ns + 6000000000);
    for (size_t i = 0; i < f[1]->n_span; i++) { /* the tasks of rank 0 come last */
        const int64_t at0 = fm_trace_time(&job, 0, f[0]->span[i].begin_ns),
                      at1 = fm_trace_time(&job, 1, f[1]->span[i].begin_ns);
        if (llabs(at1 - at0) > 1000) fail_msg("span %zu: %lld ns off", i, (long long)(at1 - at0));
    }
    fm_trace_job_close(&job);
    for (int i = 0; i < 2; i++) {
        char file[300];
        written_path(file, sizeof file, &w, i);
        unlink(file);
    }
}

static void refuses_files_of_two_jobs(void **state)
{
    char         path[2][80];
    fm_trace    *t      = NULL;
    fm_trace_job job    = {0};
    const char  *both[] = {path[0], path[1]};
    (void)state;
    for (int i = 0; i < 2; i++) {
        snprintf(path[i], sizeof path[i], "%s/job%d", folder, i);
        const fm_trace_options o = {
            .path = path[i], .ring_bytes = 4096, .job = (uint64_t)i, .rank = i, .n_rank = 2};
        assert_int_equal(fm_trace_open(&t, &o), FM_OK);
        fm_trace_close(t);
    }
    assert_int_equal(fm_trace_job_open(&job, both, 2), FM_E_FORMAT);
    assert_non_null(strstr(fm_why(), "another job"));
    assert_int_equal(fm_trace_job_open(&job, (const char *[]){path[0], path[0]}, 2), FM_E_FORMAT);
    assert_non_null(strstr(fm_why(), "second trace of rank 0"));
    assert_int_equal(fm_trace_job_open(&job, (const char *[]){"/nowhere/at/all"}, 1), FM_E_IO);
}

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(stem, sizeof stem, "%s/trace", folder);
    return 0;
}

static int remove_folder(void **state)
{
    char line[80];
    (void)state;
    snprintf(line, sizeof line, "rm -rf %s", folder);
    return system(line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_the_slow_rank),
        cmocka_unit_test(accuses_nobody_of_equals),
        cmocka_unit_test(a_rank_stopped_in_a_collective_moves_no_bytes),
        cmocka_unit_test(no_layout_is_advised_on_one_host),
        cmocka_unit_test(sees_the_long_prompt_stall),
        cmocka_unit_test(sees_gaps_on_the_host),
        cmocka_unit_test(counts_what_a_device_does),
        cmocka_unit_test(prints_a_page),
        cmocka_unit_test(refuses_files_of_two_jobs),
        cmocka_unit_test(no_quantile_is_rounded_below_the_mean),
        cmocka_unit_test(clocks_of_ranks_are_aligned),
        cmocka_unit_test(times_are_of_the_first_ranks_clock),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
