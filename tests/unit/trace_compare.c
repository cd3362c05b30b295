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

#include "trace_report/compare.h"
#include "trace_report/welch.h"
#include "trace_writer.h"

static void probabilities_are_those_of_scipy(void **state)
{
    /* scipy.stats.ttest_ind_from_stats(mean, sqrt(variance), n, ..., equal_var=False).pvalue */
    static const struct {
        fm_sample a, b;
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
    assert_true(fm_welch_p((fm_sample){1, 5, 0}, (fm_sample){9, 1, 1}) == 1);
    assert_true(fm_welch_p((fm_sample){9, 5, 0}, (fm_sample){9, 5, 0}) == 1);
    assert_true(fm_welch_p((fm_sample){9, 5, 0}, (fm_sample){9, 4, 0}) == 0);
}

static void write_and_open(fm_trace_job *j, fm_trace_analysis *a, const char *path,
                           double attend_us)
{
    const written_job w = {.stem       = path,
                           .n_rank     = 1,
                           .n_step     = 100,
                           .slow_rank  = -1,
                           .attend_us  = attend_us,
                           .experts_us = 3000,
                           .plan_us    = 20};
    write_job(&w);
    assert_int_equal(fm_trace_job_open(j, &path, 1), FM_OK);
    assert_int_equal(fm_trace_analyse(a, j, NULL), FM_OK);
    unlink(path);
}

static void finds_the_op_that_changed(void **state)
{
    char              before[] = "/tmp/fathom-before-XXXXXX", after[] = "/tmp/fathom-after-XXXXXX";
    fm_trace_job      job[2]      = {{0}};
    fm_trace_analysis analysis[2] = {{0}};
    fm_str            text        = {0};
    (void)state;
    close(mkstemp(before));
    close(mkstemp(after));
    write_and_open(&job[0], &analysis[0], before, 1000);
    write_and_open(&job[1], &analysis[1], after, 1500);
    fm_trace_compare(&text, &analysis[0], &analysis[1]);
    assert_non_null(strstr(text.text, "slower by 11.")); /* 4020 us a step against 4520 */
    assert_non_null(
        strstr(text.text, "What weighs most: attend (moe), +50.0 % a call, +0.050 s in all.\n"));
    assert_non_null(strstr(
        text.text,
        "experts (moe)                      3.0 ms     3.0 ms     +0.0 %    +0.000 s  chance\n"));
    fm_str_fini(&text);
    for (int i = 0; i < 2; i++) {
        fm_trace_analysis_fini(&analysis[i]);
        fm_trace_job_close(&job[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(probabilities_are_those_of_scipy),
        cmocka_unit_test(finds_the_op_that_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
