/* SPDX-License-Identifier: Apache-2.0 */
/* A world of one: started without a launcher, it has every call and needs
 * nothing; and the table of what communication costs. */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "comm/comm_stats.h"
#include "comm/mpi/mpi_wire.h"
#include "comm/world.h"

static void forget_launchers(void)
{
    unsetenv("OMPI_COMM_WORLD_SIZE");
    unsetenv("PMI_SIZE");
    unsetenv("PMIX_RANK");
    unsetenv("SLURM_STEP_NUM_TASKS");
}

static void one_rank_opens_at_once(void **state)
{
    (void)state;
    forget_launchers();
    const double began = fm_now();
    fm_world    *w     = NULL;
    assert_int_equal(fm_world_open(&w, NULL), FM_OK);
    assert_true(fm_now() - began < 0.05);
    assert_int_equal(fm_world_comm(w)->n_rank, 1);
    assert_string_equal(fm_world_comm(w)->ops->name, "self");
    assert_int_equal(fm_world_agree(w, "build", 1, "a"), FM_OK);
    fm_world_doing(w, "nothing %d", 1);
    fm_str text = {0};
    assert_int_equal(fm_world_placement(w, &text), FM_OK);
    assert_non_null(strstr(text.text, fm_world_host(w, 0)));
    assert_int_equal(fm_world_report(w, &text), FM_OK);
    fm_str_fini(&text);
    fm_world_close(w);
    fm_world_close(NULL);
}

static void a_group_of_one_copies(void **state)
{
    (void)state;
    fm_comm self = fm_comm_self();
    float   x[3] = {1, 2, 3}, y[3] = {0};
    size_t  n[1] = {sizeof x};
    assert_int_equal(fm_all_reduce_f32(&self, x, 3), FM_OK);
    assert_int_equal(fm_barrier(&self), FM_OK);
    assert_int_equal(fm_broadcast(&self, x, sizeof x, 0), FM_OK);
    assert_int_equal(fm_all_gather(&self, y, x, n), FM_OK);
    assert_memory_equal(x, y, sizeof x);
    y[1] = 0;
    assert_int_equal(fm_all_to_all(&self, y, n, x, n), FM_OK);
    assert_memory_equal(x, y, sizeof x);
    assert_int_equal(fm_send(&self, x, 4, 0, 0), FM_E_ARG);
}

static void a_group_of_one_splits(void **state)
{
    (void)state;
    fm_comm     self = fm_comm_self(), *part = NULL;
    fm_comm_job job;
    int         done = 0;
    assert_int_equal(fm_comm_split(&self, &(fm_comm_part){0, 0, "half", 0}, &part), FM_OK);
    assert_int_equal(part->n_rank, 1);
    assert_int_equal(fm_comm_start(part, &job, fm_call_barrier()), FM_OK);
    assert_int_equal(fm_comm_test(&job, &done), FM_OK);
    assert_true(done);
    assert_int_equal(fm_comm_wait(&job), FM_OK);
    fm_comm_close(part);
    assert_int_equal(fm_comm_split(&self, &(fm_comm_part){-1, 0, "none", 0}, &part), FM_OK);
    assert_null(part);
    fm_comm_close(NULL);
}

static void launchers_are_known_by_their_variables(void **state)
{
    (void)state;
    forget_launchers();
    assert_int_equal(fm__launched_ranks(), 1);
    setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
    assert_int_equal(fm__launched_ranks(), 4);
    setenv("OMPI_COMM_WORLD_SIZE", "rubbish", 1);
    assert_int_equal(fm__launched_ranks(), 1);
    forget_launchers();
    setenv("PMI_SIZE", "2", 1);
    assert_int_equal(fm__launched_ranks(), 2);
    forget_launchers();
    setenv("PMIX_RANK", "0", 1);
    assert_int_equal(fm__launched_ranks(), 0);
    setenv("SLURM_STEP_NUM_TASKS", "16", 1);
    assert_int_equal(fm__launched_ranks(), 16);
    forget_launchers();
}

static void bad_settings_are_named(void **state)
{
    (void)state;
    forget_launchers();
    fm_world *w = NULL;
    setenv("FM_COMM_TIMEOUT", "soon", 1);
    assert_int_equal(fm_world_open(&w, NULL), FM_E_ARG);
    assert_non_null(strstr(fm_why(), "comm-timeout"));
    unsetenv("FM_COMM_TIMEOUT");
    assert_null(w);
}

/* Two ranks; rank 1 alone is in group "b", as its first. */
static void the_report_adds_up_by_name(void **state)
{
    (void)state;
    fm_comm_stats all[4] = {{.name = "world"}, {.name = ""}, {.name = "b"}, {.name = "world"}};
    all[0].cost[FM_COMM_ALL_REDUCE] = (fm_comm_cost){10, 4000000, 1.0, 0.5};
    all[3].cost[FM_COMM_ALL_REDUCE] = (fm_comm_cost){10, 4000000, 3.0, 2.5};
    all[2].cost[FM_COMM_BARRIER]    = (fm_comm_cost){7, 0, 0.25, 0};
    const fm__stats_table t         = {all, 2, 2, 10, 1};
    fm_str                text      = {0};
    fm__stats_print(&text, &t);
    assert_non_null(strstr(text.text,
                           "world           all_reduce         2         10        4.000     "
                           "2.000   75.0      1.50   rank 1\n"));
    assert_non_null(strstr(text.text,
                           "b               barrier            1          7        0.000     "
                           "0.250    0.0      1.00   rank 1\n"));
    assert_non_null(
        strstr(text.text, "   1         17        4.000     3.250      32.5    76.9\n"));
    fm_str_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_rank_opens_at_once),
        cmocka_unit_test(a_group_of_one_copies),
        cmocka_unit_test(a_group_of_one_splits),
        cmocka_unit_test(launchers_are_known_by_their_variables),
        cmocka_unit_test(bad_settings_are_named),
        cmocka_unit_test(the_report_adds_up_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
