/* SPDX-License-Identifier: Apache-2.0 */
/* Two runs side by side: what changed is found, what did not is called chance; Welch's test against
 * probabilities of another implementation. */
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "trace_report/compare.h"
#include "trace_report/welch.h"
#include "trace_writer.h"

static void probabilities_are_those_of_scipy(void **state)
{
    /* scipy.stats.ttest_ind_from_stats(mean, sqrt(variance), n, ..., equal_var=False).pvalue */
    static const struct {
        fm_moments a, b;
        double    p;
    } want[] = {
        {{10, 5, 4}, {12, 6.5, 2.25}, 0.067534613424954},
        {{3, 1.0, 0.01}, {40, 1.2, 0.5}, 0.123949150129836},
        {{1000, 3.0, 1.0}, {900, 3.2, 4.0}, 0.00680676871812907},
        {{5, 2, 9}, {6, 2, 1}, 1},
        {{200, 0.001, 1e-08}, {300, 0.00102, 4e-08}, 0.140323871554504},
        {{2, 1, 1}, {2, 4, 0.5}, 0.0859772035375555},
    };
    (void)state;
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const double got = fm_welch_p(want[i].a, want[i].b);
        if (fabs(got - want[i].p) > 1e-9 + 1e-6 * want[i].p)
            fail_msg("case %zu: %.12g, want %.12g", i, got, want[i].p);
    }
    assert_true(fm_welch_p((fm_moments){1, 5, 0}, (fm_moments){9, 1, 1}) == 1);
    assert_true(fm_welch_p((fm_moments){9, 5, 0}, (fm_moments){9, 5, 0}) == 1);
    assert_true(fm_welch_p((fm_moments){9, 5, 0}, (fm_moments){9, 4, 0}) == 0);
}

typedef struct {
    fm_trace_job        job[2];
    fm_trace_analysis   analysis[2];
    fm_trace_comparison changes;
    fm_str              text;
} compared;

static const written_job usual = {.n_rank     = 1,
                                  .n_step     = 100,
                                  .slow_rank  = -1,
                                  .attend_us  = 1000,
                                  .experts_us = 3000,
                                  .plan_us    = 20};

static void write_and_open(fm_trace_job *j, fm_trace_analysis *a, written_job w)
{
    char        folder[] = "/tmp/fathom-compare-XXXXXX", stem[64], file[300];
    const char *path     = stem;
    assert_non_null(mkdtemp(folder));
    snprintf(stem, sizeof stem, "%s/trace", folder);
    w.stem = stem;
    write_job(&w);
    assert_int_equal(fm_trace_job_open(j, &path, 1), FM_OK);
    assert_int_equal(fm_trace_analyse(a, j, NULL), FM_OK);
    for (int i = 0; i < w.n_rank; i++) {
        written_path(file, sizeof file, &w, i);
        unlink(file);
    }
    rmdir(folder);
}

static void compare(compared *c, const written_job *before, const written_job *after)
{
    *c = (compared){0};
    write_and_open(&c->job[0], &c->analysis[0], *before);
    write_and_open(&c->job[1], &c->analysis[1], *after);
    assert_int_equal(fm_trace_compare(&c->changes, &c->analysis[0], &c->analysis[1]), FM_OK);
    fm_trace_compare_text(&c->text, &c->changes);
}

static void forget(compared *c)
{
    fm_str_fini(&c->text);
    fm_trace_comparison_fini(&c->changes);
    for (int i = 0; i < 2; i++) {
        fm_trace_analysis_fini(&c->analysis[i]);
        fm_trace_job_close(&c->job[i]);
    }
}

static void expect(const compared *c, const char *want)
{
    if (!strstr(c->text.text, want)) fail_msg("no \"%s\" in:\n%s", want, c->text.text);
}

static void finds_the_op_that_changed(void **state)
{
    written_job after = usual;
    compared    c;
    (void)state;
    after.attend_us = 1500;
    compare(&c, &usual, &after);
    expect(&c, "slower by 11."); /* 4020 us a step against 4520 */
    expect(&c, "What weighs most: attend (moe), +50.0 % a call, +0.050 s in all of +");
    expect(&c,
           "experts (moe)                      3.0 ms     3.0 ms     +0.0 %    +0.000 s  chance\n");
    forget(&c);
}

static void names_the_collective_that_changed(void **state)
{
    written_job before = usual, after;
    compared    c;
    (void)state;
    before.n_rank  = 4;
    before.move_us = 500;
    after          = before;
    after.move_us  = 2500;
    compare(&c, &before, &after);
    expect(&c, "What weighs most: all_gather (attn), +400.0 % a call, +0.800 s in all of +");
    expect(&c,
           "collective all_gather (attn)                500.0 us     2.5 ms   +400.0 %    +0.800 "
           "s  significant\n");
    forget(&c);
}

/* The collective is in the run of two ranks alone. */
static void lists_what_only_one_run_has(void **state)
{
    written_job two = usual;
    compared    c;
    (void)state;
    two.n_rank  = 2;
    two.move_us = 4000;
    compare(&c, &usual, &two);
    expect(&c, "What weighs most: all_gather (attn), new, +0.800 s in all of +");
    expect(&c,
           "all_gather (attn)                       -     4.0 ms          -    +0.800 s  new\n");
    forget(&c);
    compare(&c, &two, &usual);
    expect(&c, "What weighs most: all_gather (attn), gone, -0.400 s in all of -");
    expect(&c,
           "all_gather (attn)                  4.0 ms          -          -    -0.400 s  gone\n");
    forget(&c);
}

static void tells_a_step_from_a_stage_of_its_name(void **state)
{
    compared c;
    (void)state;
    compare(&c, &usual, &usual);
    expect(&c, "\nstep       decode  ");
    expect(&c, "\nrequest    decode  ");
    expect(&c, "No part changed by more than chance.\n");
    forget(&c);
}

static void prints_changes_as_json(void **state)
{
    written_job after = usual;
    compared    c;
    (void)state;
    after.experts_us = 6000;
    compare(&c, &usual, &after);
    fm_str_clear(&c.text);
    fm_trace_compare_json(&c.text, &c.changes);
    json_t *o = json_loads(c.text.text, 0, NULL);
    assert_non_null(o);
    const json_t *cause = json_object_get(o, "cause");
    assert_string_equal(json_string_value(json_object_get(cause, "name")), "experts");
    assert_string_equal(json_string_value(json_object_get(cause, "kind")), "significant");
    assert_true(fabs(json_number_value(json_object_get(cause, "more_s")) - 0.3) < 1e-3);
    assert_int_equal(json_array_size(json_object_get(o, "changes")), c.changes.n);
    json_decref(o);
    forget(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(probabilities_are_those_of_scipy),
        cmocka_unit_test(finds_the_op_that_changed),
        cmocka_unit_test(names_the_collective_that_changed),
        cmocka_unit_test(lists_what_only_one_run_has),
        cmocka_unit_test(tells_a_step_from_a_stage_of_its_name),
        cmocka_unit_test(prints_changes_as_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
