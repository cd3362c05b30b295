/* SPDX-License-Identifier: Apache-2.0 */
/* The study file: what was written comes back, a torn line is dropped, other
 * studies are refused; and what the numbers for a model are. */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tune/importance.h"
#include "tune/prune.h"
#include "tune/study.h"

static void ok(fm_status rc)
{
    if (rc != FM_OK) fail_msg("%s", fm_why());
}

static char path[] = "/tmp/fathom-study-XXXXXX";

static int new_path(void **state)
{
    (void)state;
    strcpy(path + sizeof path - 7, "XXXXXX");
    const int fd = mkstemp(path);
    if (fd < 0) return -1;
    close(fd);
    return unlink(path);
}

static int remove_path(void **state)
{
    (void)state;
    unlink(path);
    return 0;
}

static void make_space(fm_space *s)
{
    *s = (fm_space){0};
    ok(fm_space_add(s, "n=1..100"));
    ok(fm_space_add(s, "m={a,b}"));
    ok(fm_space_add(s, "x=0.0..1.0 if m=b"));
}

static fm_trial *put(fm_study *s, double n, double m, double x, fm_trial_state state, double value)
{
    const fm_point p = {{n, m, x}};
    fm_trial      *t = fm_study_begin(s, &p);
    t->state         = state;
    t->value         = value;
    t->seconds       = 1.5;
    ok(fm_study_end(s, t));
    return t;
}

static void comes_back(void **state)
{
    (void)state;
    fm_space space;
    fm_study s, again;
    make_space(&space);
    ok(fm_study_open(&s, path, &space, &(fm_study_aim){.maximize = 1, .what = "prog {n}"}));
    put(&s, 10, 0, NAN, FM_TRIAL_OK, 5);
    put(&s, 20, 1, 0.123456789, FM_TRIAL_FAILED, NAN);
    fm_study_close(&s);

    ok(fm_study_open(&again, path, &space, &(fm_study_aim){.maximize = 1, .what = "prog {n}"}));
    assert_int_equal(again.n, 2);
    assert_int_equal(again.trial[0].state, FM_TRIAL_OK);
    assert_true(again.trial[0].value == 5 && isnan(again.trial[0].at.v[2]));
    assert_int_equal(again.trial[1].state, FM_TRIAL_FAILED);
    assert_true(isnan(again.trial[1].value) && fabs(again.trial[1].at.v[2] - 0.123456789) < 1e-9);
    assert_int_equal(fm_study_begin(&again, &again.trial[0].at)->id, 2);
    fm_study_close(&again);
    fm_space_fini(&space);
}

/* Cut anywhere, as a kill in the middle of a write would leave it: whole lines
 * are kept, and the study can be continued. */
static void torn_lines_are_dropped(void **state)
{
    (void)state;
    fm_space    space;
    fm_study    s;
    struct stat st;
    make_space(&space);
    ok(fm_study_open(&s, path, &space, &(fm_study_aim){.maximize = 1, .what = "prog"}));
    for (int i = 0; i < 3; i++) put(&s, i + 1, 0, NAN, FM_TRIAL_OK, i);
    fm_study_close(&s);
    assert_int_equal(stat(path, &st), 0);
    for (off_t cut = st.st_size - 1; cut >= 0; cut--) {
        assert_int_equal(truncate(path, cut), 0);
        ok(fm_study_open(&s, path, &space, &(fm_study_aim){.maximize = 1, .what = "prog"}));
        const int n = s.n;
        assert_true(n <= 3);
        put(&s, 50, 0, NAN, FM_TRIAL_OK, 1);
        fm_study_close(&s);
        ok(fm_study_open(&s, path, &space, &(fm_study_aim){.maximize = 1, .what = "prog"}));
        assert_int_equal(s.n, n + 1);
        fm_study_close(&s);
    }
    fm_space_fini(&space);
}

static void says(fm_status got, fm_status want, const char *what)
{
    assert_int_equal(got, want);
    if (!strstr(fm_why(), what)) fail_msg("\"%s\" does not say \"%s\"", fm_why(), what);
}

static void others_are_refused(void **state)
{
    (void)state;
    fm_space space, other = {0};
    fm_study s, second;
    make_space(&space);
    ok(fm_space_add(&other, "n=1..99"));
    ok(fm_study_open(&s, path, &space, &(fm_study_aim){.maximize = 1, .what = "prog"}));
    says(fm_study_open(&second, path, &space, &(fm_study_aim){.maximize = 1, .what = "prog"}),
         FM_E_FULL, "another process");
    fm_study_close(&second);
    fm_study_close(&s);
    says(fm_study_open(&s, path, &other, &(fm_study_aim){.maximize = 1, .what = "prog"}), FM_E_ARG,
         "\"params\" differs");
    fm_study_close(&s);
    says(fm_study_open(&s, path, &space, &(fm_study_aim){.maximize = 0, .what = "prog"}), FM_E_ARG,
         "\"goal\" differs");
    fm_study_close(&s);
    says(fm_study_open(&s, path, &space, &(fm_study_aim){.maximize = 1, .what = "gorp"}), FM_E_ARG,
         "\"what\" differs");
    fm_study_close(&s);
    char *const        limit[]   = {"y <= 1"};
    const fm_study_aim aim[]     = {{.maximize = 1, .what = "prog", .metric = "x"},
                                    {.maximize = 1, .what = "prog", .limit = limit, .n_limit = 1},
                                    {.maximize = 1, .what = "prog", .report = "z"}};
    const char *const  differs[] = {"\"metric\" differs", "\"limits\" differs",
                                    "\"report\" differs"};
    for (int i = 0; i < 3; i++) {
        says(fm_study_open(&s, path, &space, &aim[i]), FM_E_ARG, differs[i]);
        fm_study_close(&s);
    }

    FILE *f = fopen(path, "w");
    fputs("a letter to my mother", f); /* no newline: it must not be taken for a torn line */
    fclose(f);
    says(fm_study_open(&s, path, &space, &(fm_study_aim){.maximize = 1, .what = "prog"}),
         FM_E_FORMAT, "not a study");
    fm_study_close(&s);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 21);
    fm_space_fini(&space);
    fm_space_fini(&other);
}

/* A trial is found by its number, so two lines cannot have the same one. */
static void numbers_are_unique(void **state)
{
    (void)state;
    fm_space space;
    fm_study s;
    make_space(&space);
    ok(fm_study_open(&s, path, &space, &(fm_study_aim){.maximize = 1, .what = "prog"}));
    put(&s, 10, 0, NAN, FM_TRIAL_FAILED, NAN);
    put(&s, 20, 0, NAN, FM_TRIAL_OK, 5)->id = 0;
    ok(fm_study_end(&s, &s.trial[1]));
    fm_study_close(&s);
    says(fm_study_open(&s, path, &space, &(fm_study_aim){.maximize = 1, .what = "prog"}),
         FM_E_FORMAT, "line 4: trial 0 is there already");
    fm_study_close(&s);
    fm_space_fini(&space);
}

static void losses_order_states(void **state)
{
    (void)state;
    fm_space space;
    fm_study s;
    make_space(&space);
    fm_study_init(&s, &space, 1);
    put(&s, 1, 0, NAN, FM_TRIAL_OK, 100);
    put(&s, 2, 0, NAN, FM_TRIAL_OK, 80);
    put(&s, 3, 0, NAN, FM_TRIAL_OK, 60);
    put(&s, 4, 0, NAN, FM_TRIAL_FAILED, NAN);
    put(&s, 5, 0, NAN, FM_TRIAL_UNFIT, 500)->excess = 0.5;
    put(&s, 6, 0, NAN, FM_TRIAL_PRUNED, NAN);
    put(&s, 7, 0, NAN, FM_TRIAL_TIMEOUT, NAN);
    double loss[7];
    fm_study_losses(&s, loss);
    assert_true(loss[0] < loss[1] && loss[1] < loss[2]);
    assert_true(loss[3] > loss[2] && loss[6] > loss[2] && loss[4] > loss[2] && loss[5] >= loss[1]);
    int best[2];
    assert_int_equal(fm_study_best(&s, best, 2), 2);
    assert_int_equal(best[0], 0);
    assert_int_equal(best[1], 1);
    fm_study_close(&s);
    fm_space_fini(&space);
}

/* A lucky first run does not win over a point that was confirmed. */
static void confirmations_decide(void **state)
{
    (void)state;
    fm_space space;
    fm_study s;
    make_space(&space);
    fm_study_init(&s, &space, 1);
    put(&s, 1, 0, NAN, FM_TRIAL_OK, 110);
    put(&s, 2, 0, NAN, FM_TRIAL_OK, 105);
    put(&s, 3, 0, NAN, FM_TRIAL_OK, 101);
    assert_int_equal(fm_study_winner(&s), 0);
    put(&s, 1, 0, NAN, FM_TRIAL_OK, 90)->confirms  = 0;
    put(&s, 2, 0, NAN, FM_TRIAL_OK, 103)->confirms = 1;
    assert_int_equal(fm_study_winner(&s), 1);
    int    n;
    double spread;
    assert_true(fm_study_mean(&s, 1, &n, &spread) == 104 && n == 2 && spread == 2);
    assert_int_equal(fm_study_n_ended(&s), 3);
    fm_study_close(&s);
    fm_space_fini(&space);
}

static void report(fm_trial *t, int n, double each)
{
    free(t->report);
    t->report = malloc((size_t)n * sizeof *t->report);
    for (t->n_report = 0; t->n_report < n; t->n_report++)
        t->report[t->n_report] = each * (t->n_report + 1);
}

static void the_median_rule(void **state)
{
    (void)state;
    fm_space space;
    fm_study s;
    make_space(&space);
    fm_study_init(&s, &space, 1);
    for (int i = 0; i < FM_PRUNE_AFTER; i++)
        report(put(&s, i + 1, 0, NAN, FM_TRIAL_OK, i), 3, 10 + i);
    fm_trial *t = fm_study_begin(&s, &s.trial[0].at);
    assert_false(fm_prune(&s, t)); /* nothing reported */
    report(t, 2, 5);
    assert_true(fm_prune(&s, t));
    for (int i = 0; i < 2; i++) t->report[i] = 100;
    assert_false(fm_prune(&s, t));
    report(t, 4, 5); /* no other trial has reported this step */
    assert_false(fm_prune(&s, t));
    fm_study_close(&s);
    fm_space_fini(&space);
}

/* y depends on n strongly, on m weakly, on x not at all. */
static void importance_finds_what_matters(void **state)
{
    (void)state;
    fm_space space = {0};
    fm_study s;
    ok(fm_space_add(&space, "n=1..100"));
    ok(fm_space_add(&space, "m={a,b}"));
    ok(fm_space_add(&space, "x=0.0..1.0"));
    fm_study_init(&s, &space, 0);
    fm_mt random;
    fm_mt_seed_python(&random, 5);
    for (int k = 0; k < 80; k++) {
        fm_point p;
        ok(fm_point_random(&space, &random, &p));
        put(&s, p.v[0], p.v[1], p.v[2], FM_TRIAL_OK, p.v[0] + 10 * p.v[1]);
    }
    double share[3];
    ok(fm_importance(share, &s));
    assert_true(share[0] > 0.8 && share[1] > 0.005 && share[1] < 0.2 && share[2] < 0.02);
    s.n = 3;
    assert_int_equal(fm_importance(share, &s), FM_E_FULL);
    s.n = 80;
    fm_study_close(&s);
    fm_space_fini(&space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(comes_back, new_path, remove_path),
        cmocka_unit_test_setup_teardown(torn_lines_are_dropped, new_path, remove_path),
        cmocka_unit_test_setup_teardown(others_are_refused, new_path, remove_path),
        cmocka_unit_test_setup_teardown(numbers_are_unique, new_path, remove_path),
        cmocka_unit_test(losses_order_states),
        cmocka_unit_test(confirmations_decide),
        cmocka_unit_test(the_median_rule),
        cmocka_unit_test(importance_finds_what_matters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
