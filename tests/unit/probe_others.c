/* SPDX-License-Identifier: Apache-2.0 */
/* What others take of the CPUs, from a /proc/stat that is written here. */
#define _GNU_SOURCE
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "probe/others.h"

static char root[] = "/tmp/fathom-others-XXXXXX";

/* So many ticks of every CPU in each column but idle and iowait, which do not count. */
static void write_stat(int ticks)
{
    char path[64];
    snprintf(path, sizeof path, "%s/proc/stat", root);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "cpu  1 2 3 4 5 6 7 8 0 0\n");
    for (int i = 0; i < CPU_SETSIZE; i++)
        fprintf(f, "cpu%d %d %d %d 999%d 999%d %d %d %d 0 0\n", i, ticks, ticks, ticks, ticks,
                ticks, ticks, ticks, ticks);
    fprintf(f, "intr 1 2 3\n");
    fclose(f);
}

static void counts_what_others_take(void **state)
{
    (void)state;
    char      path[64];
    fm_others o;
    assert_non_null(mkdtemp(root));
    snprintf(path, sizeof path, "%s/proc", root);
    fm_others_begin(&o, root); /* no such file */
    assert_true(fm_others_share(&o, root) < 0);
    assert_int_equal(mkdir(path, 0700), 0);
    write_stat(1000);
    fm_others_begin(&o, root);
    usleep(200000);
    assert_true(fm_others_share(&o, root) == 0);
    write_stat(1000 + (int)sysconf(_SC_CLK_TCK) / 60); /* six columns: at most 0.1 s a CPU */
    const double share = fm_others_share(&o, root);
    if (!(share > 0.001 && share <= 0.5)) fail_msg("%g", share);
    write_stat(2000);
    assert_true(fm_others_share(&o, root) == 1);
    snprintf(path, sizeof path, "rm -rf %s", root);
    assert_int_equal(system(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(counts_what_others_take)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
