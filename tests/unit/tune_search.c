/* SPDX-License-Identifier: Apache-2.0 */
/* Trials as processes: values from output, limits of time, failures, pruning,
 * parallel runs; and a search over a shell command. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "tune/search.h"

static void ok(fm_status rc)
{
    if (rc != FM_OK) fail_msg("%s", fm_why());
}

static double last(const char *metric, const char *text)
{
    fm_metric *m = NULL;
    double     x = NAN;
    ok(fm_metric_create(&m, metric));
    if (!fm_metric_last(m, text, strlen(text), &x)) x = NAN;
    fm_metric_destroy(m);
    return x;
}

static void metrics(void **state)
{
    (void)state;
    assert_true(last("tok/s: *([0-9.]+)", "tok/s: 1.5\nother\ntok/s:   2.5\n") == 2.5);
    assert_true(last("^[0-9]+$", "a\n12\nb") == 12);
    assert_true(last("rate ([0-9.,]+)", "rate 1,234.5") == 1234.5);
    assert_true(last("x=(-?[0-9.e+-]+)", "x=-1.5e-3") == -1.5e-3);
    assert_true(isnan(last("nothing ([0-9]+)", "something 1")));
    assert_true(isnan(last("x=(\\w+)", "x=abc")));
    assert_true(last("json:a.b[1].c", "log\n{\"a\": {\"b\": [0, {\"c\": 7}]}}\n") == 7);
    assert_true(last("json:a", "{\"a\": 1}\n{\"a\": 2}\n{broken\n") == 2);
    assert_true(isnan(last("json:a.b", "{\"a\": 1}\n")));
    fm_metric *m = NULL;
    assert_int_equal(fm_metric_create(&m, "("), FM_E_ARG);
    assert_null(m);
}

static void limits(void **state)
{
    (void)state;
    fm_limit l;
    ok(fm_limit_init(&l, "P99: *([0-9.]+) <= 200"));
    assert_true(fm_limit_excess(&l, "P99: 150", 8) == 0);
    assert_true(fabs(fm_limit_excess(&l, "P99: 300", 8) - 0.5) < 1e-12);
    assert_true(isinf(fm_limit_excess(&l, "none", 4)));
    fm_limit_fini(&l);
    ok(fm_limit_init(&l, "json:rate>=10"));
    assert_true(fabs(fm_limit_excess(&l, "{\"rate\": 5}", 11) - 0.5) < 1e-12);
    fm_limit_fini(&l);
    assert_int_equal(fm_limit_init(&l, "P99 < 3"), FM_E_ARG);
    assert_int_equal(fm_limit_init(&l, "P99 <= x"), FM_E_ARG);
}

static void run_to_end(fm_process *p, const char *script, double limit)
{
    char *const            argv[] = {"sh", "-c", (char *)script, NULL};
    const fm_process_place place  = {0, 1, 0};
    ok(fm_process_start(p, argv, &place, limit));
    while (!fm_process_step(p)) fm_process_wait(p, 1, 0.05);
}

static void ends_are_told(void **state)
{
    (void)state;
    fm_process p;
    char       why[200];
    run_to_end(&p, "echo one; echo two >&2", 10);
    fm_process_why(&p, why, sizeof why);
    assert_string_equal(why, "");
    assert_string_equal(p.output.text, "one\ntwo\n");
    fm_process_fini(&p);

    run_to_end(&p, "echo no memory; exit 3", 10);
    fm_process_why(&p, why, sizeof why);
    assert_string_equal(why, "exit status 3: no memory");
    fm_process_fini(&p);

    run_to_end(&p, "kill -9 $$", 10);
    fm_process_why(&p, why, sizeof why);
    assert_string_equal(why, "killed by signal 9 (out of memory?)");
    fm_process_fini(&p);
}

/* The whole group goes: a child in the background does not outlive its trial. */
static void time_limit_ends_the_group(void **state)
{
    (void)state;
    fm_process p;
    char       why[200];
    run_to_end(&p, "sleep 60 & echo $!; wait", 0.3);
    fm_process_why(&p, why, sizeof why);
    assert_string_equal(why, "time limit of 0.3 s");
    assert_true(p.seconds < 4);
    const pid_t child = (pid_t)atoi(p.output.text);
    assert_true(child > 0);
    int gone = 0;
    for (int i = 0; i < 100 && !gone; i++) { /* reaped by init or a subreaper */
        char path[64], state_char = 'Z';
        snprintf(path, sizeof path, "/proc/%d/stat", child);
        FILE *f = fopen(path, "r");
        if (f) {
            (void)!fscanf(f, "%*d %*s %c", &state_char);
            fclose(f);
        }
        gone = !f || state_char == 'Z';
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    assert_true(gone);
    fm_process_fini(&p);
}

/* One that does not heed SIGTERM, and one that floods its output. */
static void hard_cases_end(void **state)
{
    (void)state;
    fm_process p;
    run_to_end(&p, "trap '' TERM; while :; do sleep 0.1; done", 0.2);
    assert_int_equal(p.end, FM_END_TIME);
    fm_process_fini(&p);
    run_to_end(&p, "head -c 30000000 /dev/zero | tr '\\0' x; echo; echo 42", 20);
    assert_true(p.output.len < 9 << 20);
    assert_string_equal(p.output.text + p.output.len - 3, "42\n");
    fm_process_fini(&p);
    char *const            argv[] = {"/no/such/program", NULL};
    const fm_process_place place  = {0, 1, 0};
    char                   why[200];
    ok(fm_process_start(&p, argv, &place, 0));
    while (!fm_process_step(&p)) fm_process_wait(&p, 1, 0.05);
    fm_process_why(&p, why, sizeof why);
    assert_string_equal(why, "exit status 127: /no/such/program: No such file or directory");
    fm_process_fini(&p);
}

/* ---- whole searches ---- */

typedef struct {
    fm_space   space;
    fm_study   study;
    fm_metric *metric, *report;
    fm_search  q;
    char      *word[4];
} rig;

static void set_up(rig *r, const char *param, const char *script)
{
    *r = (rig){.word = {"sh", "-c", (char *)script, NULL}};
    ok(fm_space_add(&r->space, param));
    fm_study_init(&r->study, &r->space, 1);
    ok(fm_metric_create(&r->metric, "value ([0-9.]+)"));
    ok(fm_metric_create(&r->report, "step ([0-9.]+)"));
    r->q = (fm_search){.study   = &r->study,
                       .sampler = fm_search_sampler_find("gp"),
                       .word    = r->word,
                       .n_word  = 3,
                       .metric  = r->metric,
                       .n_trial = 12,
                       .jobs    = 1};
}

static void tear_down(rig *r)
{
    fm_metric_destroy(r->metric);
    fm_metric_destroy(r->report);
    fm_study_close(&r->study);
    fm_space_fini(&r->space);
}

static void finds_the_best(void **state)
{
    (void)state;
    rig         r;
    const char *why;
    set_up(&r, "n=1..100",
           "if [ {n} -gt 90 ]; then exit 9; fi; echo value $((10000 - ({n} - 60) * ({n} - 60)))");
    r.q.n_trial   = 16;
    r.q.n_confirm = 2;
    ok(fm_search_run(&r.q, &why));
    assert_string_equal(why, "all trials were run");
    ok(fm_search_confirm(&r.q));
    assert_int_equal(r.study.n, 18);
    const fm_trial *best = fm_study_find(&r.study, fm_study_winner(&r.study));
    assert_true(fabs(best->at.v[0] - 60) <= 3);
    tear_down(&r);
}

static void a_small_space_is_exhausted(void **state)
{
    (void)state;
    rig         r;
    const char *why;
    set_up(&r, "n=1..5", "echo value {n}");
    ok(fm_search_run(&r.q, &why));
    assert_string_equal(why, "every point was tried");
    assert_int_equal(r.study.n, 5);
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < i; j++)
            assert_true(r.study.trial[i].at.v[0] != r.study.trial[j].at.v[0]);
    tear_down(&r);
}

static void unfit_trials_do_not_win(void **state)
{
    (void)state;
    rig         r;
    const char *why;
    fm_limit    limit;
    set_up(&r, "n=1..20", "echo value {n}; echo latency $(({n} * 10))");
    ok(fm_limit_init(&limit, "latency ([0-9]+) <= 125"));
    r.q.limit   = &limit;
    r.q.n_limit = 1;
    r.q.n_trial = 14;
    ok(fm_search_run(&r.q, &why));
    const fm_trial *best = fm_study_find(&r.study, fm_study_winner(&r.study));
    assert_true(best->at.v[0] == 12);
    fm_limit_fini(&limit);
    tear_down(&r);
}

/* Slow and hopeless trials are ended at the step where they show it. */
static void hopeless_trials_are_pruned(void **state)
{
    (void)state;
    rig         r;
    const char *why;
    set_up(&r, "n=1..12",
           "echo step {n}; sleep 0.02; echo step {n}; if [ {n} -lt 5 ]; then sleep 5; fi; echo "
           "value {n}");
    r.q.sampler        = fm_search_sampler_find("random");
    r.q.report         = r.report;
    r.q.first          = (fm_point[]){{{9}}, {{10}}, {{11}}, {{12}}, {{8}}};
    r.q.n_first        = 5;
    const double began = fm_now();
    ok(fm_search_run(&r.q, &why));
    int n_pruned = 0;
    for (int i = 0; i < r.study.n; i++) {
        const fm_trial *t = &r.study.trial[i];
        n_pruned += t->state == FM_TRIAL_PRUNED;
        if (t->at.v[0] < 5) assert_int_equal(t->state, FM_TRIAL_PRUNED);
    }
    assert_true(n_pruned >= 4);
    assert_true(fm_now() - began < 10);
    tear_down(&r);
}

static void parallel_and_within_the_wall_time(void **state)
{
    (void)state;
    rig         r;
    const char *why;
    set_up(&r, "n=1..1000", "sleep 0.3; echo value {n}");
    r.q.jobs     = 4;
    r.q.n_trial  = 8;
    double began = fm_now();
    ok(fm_search_run(&r.q, &why));
    assert_int_equal(r.study.n, 8);
    assert_true(fm_now() - began < 0.3 * 8);
    tear_down(&r);

    set_up(&r, "n=1..1000", "sleep 0.2; echo value {n}");
    r.q.n_trial = 1000;
    began       = fm_now();
    r.q.until   = began + 1.5;
    ok(fm_search_run(&r.q, &why));
    assert_string_equal(why, "the wall time is over");
    assert_true(fm_now() - began < 1.7);
    assert_true(r.study.n >= 2);
    for (int i = 0; i < r.study.n - 1; i++) assert_int_equal(r.study.trial[i].state, FM_TRIAL_OK);
    tear_down(&r);
}

static int         n_asked;
static const char *stop_after_some(void) { return ++n_asked > 60 ? "SIGINT" : NULL; }

/* Interrupted trials say nothing about their points and leave no line. */
static void an_interrupt_forgets_what_was_running(void **state)
{
    (void)state;
    rig         r;
    const char *why;
    set_up(&r, "n=1..1000", "if [ {trial} -gt 1 ]; then sleep 30; fi; echo value {n}");
    r.q.jobs = 2;
    r.q.stop = stop_after_some;
    ok(fm_search_run(&r.q, &why));
    assert_string_equal(why, "SIGINT");
    for (int i = 0; i < r.study.n; i++) assert_int_equal(r.study.trial[i].state, FM_TRIAL_OK);
    tear_down(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metrics),
        cmocka_unit_test(limits),
        cmocka_unit_test(ends_are_told),
        cmocka_unit_test(time_limit_ends_the_group),
        cmocka_unit_test(hard_cases_end),
        cmocka_unit_test(finds_the_best),
        cmocka_unit_test(a_small_space_is_exhausted),
        cmocka_unit_test(unfit_trials_do_not_win),
        cmocka_unit_test(hopeless_trials_are_pruned),
        cmocka_unit_test(parallel_and_within_the_wall_time),
        cmocka_unit_test(an_interrupt_forgets_what_was_running),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
