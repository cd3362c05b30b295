/* SPDX-License-Identifier: Apache-2.0 */
/* Where threads go: on this machine by asking the system, on machines we do
 * not have through hwloc's synthetic topologies. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <dirent.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <cmocka.h>

#include "device/host_threads.h"

/* As if no control group limited these tests. */
static fm_threads *made_part(const char *how, int n, fm_threads_part p)
{
    fm_threads *t = NULL;
    if (fm_threads_create_within(&t, how, n, p) != FM_OK) fail_msg("%s: %s", how, fm_why());
    return t;
}

static fm_threads *made(const char *how, int n)
{
    return made_part(how, n, (fm_threads_part){.n = 1});
}

static void team_fills_the_cores_and_is_let_go(void **state)
{
    (void)state;
    cpu_set_t before, after;
    sched_getaffinity(0, sizeof before, &before);
    fm_threads *t = made("auto", 0);
    const int   n = fm_threads_count(t);
    assert_true(fm_threads_bound(t));
    assert_int_equal(fm_threads_pin(t), n);

    int where[CPU_SETSIZE];
#pragma omp parallel num_threads(n)
    {
        cpu_set_t mine;
        sched_getaffinity(0, sizeof mine, &mine);
        where[omp_get_thread_num()] = CPU_COUNT(&mine) == 1 ? sched_getcpu() : -1;
    }
    for (int i = 0; i < n; i++) {
        assert_int_equal(where[i], fm_threads_cpu(t, i));
        assert_true(CPU_ISSET((size_t)where[i], &before));
        for (int k = 0; k < i; k++) assert_int_not_equal(where[i], where[k]);
    }
    fm_threads_destroy(t);
    sched_getaffinity(0, sizeof after, &after);
    assert_true(CPU_EQUAL(&before, &after));
}

static void the_maker_may_roam_and_pin_again(void **state)
{
    (void)state;
    cpu_set_t   before, mine;
    fm_threads *t = made("auto", 0);
    sched_getaffinity(0, sizeof before, &before);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(fm_threads_pin(t), fm_threads_count(t));
        assert_int_equal(fm_threads_pin(t), fm_threads_count(t)); /* nothing left to do */
        sched_getaffinity(0, sizeof mine, &mine);
        assert_int_equal(CPU_COUNT(&mine), 1);
        fm_threads_roam(t);
        sched_getaffinity(0, sizeof mine, &mine);
        assert_true(CPU_EQUAL(&before, &mine));
    }
    fm_threads_destroy(t);
}

static void larger_and_smaller_teams_are_left_alone(void **state)
{
    (void)state;
    fm_threads *all = made("auto", 0), *more = made("auto", fm_threads_count(all) + 1);
    fm_threads *none = made("none", 0);
    assert_false(fm_threads_bound(more));
    assert_int_equal(fm_threads_pin(more), 0);
    assert_int_equal(fm_threads_cpu(more, 0), -1);
    assert_false(fm_threads_bound(none));
    assert_int_equal(fm_threads_count(none), fm_threads_count(all));
    fm_threads_destroy(more);
    fm_threads_destroy(none);
    fm_threads_destroy(all);
}

static void a_narrow_process_is_not_widened(void **state)
{
    (void)state;
    cpu_set_t before, one;
    sched_getaffinity(0, sizeof before, &before);
    int cpu = 0;
    while (!CPU_ISSET((size_t)cpu, &before)) cpu++;
    CPU_ZERO(&one);
    CPU_SET((size_t)cpu, &one);
    fm_threads *wide = made("none", 0);
#pragma omp parallel num_threads(fm_threads_count(wide))
    sched_setaffinity(0, sizeof one, &one);
    fm_threads *t = made("auto", 0);
    assert_int_equal(fm_threads_count(t), 1);
    assert_int_equal(fm_threads_cpu(t, 0), cpu);
    fm_threads_destroy(t);
    t = made("auto", 2);
    assert_false(fm_threads_bound(t));
    fm_threads_destroy(t);
#pragma omp parallel num_threads(fm_threads_count(wide))
    sched_setaffinity(0, sizeof before, &before);
    fm_threads_destroy(wide);
}

static void bad_lists_say_so(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "a", "all", "0-", "-1", ",", "0-7,x", "3-1", "99999",
                                      "0-4000000000", "0,1,,", "auto ", "0x3"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        fm_threads     *t  = NULL;
        const fm_status rc = fm_threads_create(&t, bad[i], 4000);
        if (rc != FM_E_ARG) fail_msg("\"%s\" was taken", bad[i]);
        assert_null(t);
        assert_non_null(strstr(fm_why(), "--cpu-bind"));
    }
    fm_threads *t = NULL;
    assert_int_equal(fm_threads_create(&t, "auto", -1), FM_E_ARG);
    assert_int_equal(fm_threads_create(&t, "auto", 1 << 20), FM_E_ARG);
}

/* Two nodes of four cores of two hardware threads. */
static void one_place_per_core_over_nodes(void **state)
{
    (void)state;
    setenv("HWLOC_SYNTHETIC", "node:2 core:4 pu:2", 1);
    fm_threads *t = made("auto", 0);
    assert_int_equal(fm_threads_count(t), 8);
    assert_int_equal(fm_threads_nodes(t), 2);
    for (int i = 0; i < 8; i++) assert_int_equal(fm_threads_cpu(t, i), 2 * i);
    assert_int_equal(fm_threads_cpu(t, 8), -1);
    fm_threads_destroy(t);

    t = made("1,3,8-9", 0);
    assert_int_equal(fm_threads_count(t), 4);
    assert_int_equal(fm_threads_nodes(t), 2);
    assert_int_equal(fm_threads_cpu(t, 2), 8);
    fm_threads_destroy(t);

    t = made("0-7", 3);
    assert_int_equal(fm_threads_nodes(t), 1);
    assert_int_equal(fm_threads_cpu(t, 2), 2);
    assert_int_equal(fm_threads_cpu(t, 3), -1);
    fm_threads_destroy(t);
    unsetenv("HWLOC_SYNTHETIC");
}

static void spread_memory_can_be_used(void **state)
{
    (void)state;
    fm_threads *t = made("auto", 0);
    char       *p = aligned_alloc(4096, 1 << 16);
    assert_non_null(p);
    fm_threads_spread(t, p, 1 << 16);
    fm_threads_spread(NULL, p, 1 << 16);
    memset(p, 7, 1 << 16);
    assert_int_equal(p[65535], 7);
    free(p);
    fm_threads_destroy(t);
    fm_threads_destroy(NULL);
}

/* Three processes on the eight cores, then twelve. */
static void processes_divide_the_cores(void **state)
{
    (void)state;
    setenv("HWLOC_SYNTHETIC", "node:2 core:4 pu:2", 1);
    int taken[16] = {0};
    for (int i = 0; i < 3; i++) {
        fm_threads *t = made_part("auto", 0, (fm_threads_part){i, 3, 0});
        assert_int_equal(fm_threads_count(t), i ? 3 : 2);
        assert_true(fm_threads_bound(t));
        for (int k = 0; k < fm_threads_count(t); k++) taken[fm_threads_cpu(t, k)]++;
        fm_threads_destroy(t);
    }
    for (int cpu = 0; cpu < 16; cpu++) assert_int_equal(taken[cpu], cpu % 2 == 0);
    for (int i = 0; i < 12; i++) {
        fm_threads *t = made_part("auto", 0, (fm_threads_part){i, 12, 0});
        assert_int_equal(fm_threads_count(t), 1);
        assert_false(fm_threads_bound(t)); /* two on one core would wait for each other */
        fm_threads_destroy(t);
    }
    fm_threads *t = NULL;
    assert_int_equal(fm_threads_create_part(&t, "0-7", 0, 1, 2), FM_OK);
    assert_int_equal(fm_threads_count(t), 8);
    fm_threads_destroy(t);
    unsetenv("HWLOC_SYNTHETIC");
}

/* Of eight cores; several processes share the quota. */
static void a_quota_limits_the_default(void **state)
{
    (void)state;
    static const struct {
        const char     *how;
        int             n_thread;
        fm_threads_part part;
        int             count, bound;
    } team[] = {{"auto", 0, {0, 1, 3}, 3, 0},  {"auto", 0, {0, 1, 1}, 1, 0},
                {"auto", 0, {0, 1, 8}, 8, 1},  {"auto", 0, {0, 1, 64}, 8, 1},
                {"none", 0, {0, 1, 3}, 3, 0},  {"auto", 8, {0, 1, 3}, 8, 1},
                {"0-7", 0, {0, 1, 3}, 8, 1},   {"auto", 0, {1, 2, 3}, 1, 0},
                {"auto", 0, {1, 2, 8}, 4, 1},  {"auto", 0, {2, 4, 1}, 1, 0}};
    setenv("HWLOC_SYNTHETIC", "node:2 core:4 pu:2", 1);
    for (size_t i = 0; i < sizeof team / sizeof team[0]; i++) {
        fm_threads *t = made_part(team[i].how, team[i].n_thread, team[i].part);
        assert_int_equal(fm_threads_count(t), team[i].count);
        assert_int_equal(fm_threads_bound(t), team[i].bound);
        fm_threads_destroy(t);
    }
    unsetenv("HWLOC_SYNTHETIC");
}

static int n_living(void)
{
    int  n   = 0;
    DIR *dir = opendir("/proc/self/task");
    assert_non_null(dir);
    for (const struct dirent *d; (d = readdir(dir));) n += d->d_name[0] != '.';
    closedir(dir);
    return n;
}

static int team_size(int wanted)
{
    int n = 0;
#pragma omp parallel num_threads(wanted) reduction(+ : n)
    n += 1;
    return n;
}

static void a_dismissed_team_is_gone_and_a_new_one_works(void **state)
{
    (void)state;
    assert_int_equal(team_size(3), 3);
    const int before = n_living();
    fm_threads_dismiss();
    for (int i = 0; i < 1000 && n_living() > before - 2; i++) usleep(1000);
    assert_int_equal(n_living(), before - 2);
    assert_int_equal(team_size(3), 3);
}

static void *run_team(void *arg)
{
    (void)arg;
    assert_int_equal(team_size(2), 2);
    return NULL;
}

/* As a server does: load, dismiss, steps in a thread of their own, the end. */
static void a_dismissed_team_is_let_go_after_another_thread_had_one(void **state)
{
    (void)state;
    cpu_set_t before, after;
    pthread_t thread;
    sched_getaffinity(0, sizeof before, &before);
    fm_threads *t = made("auto", 0);
    assert_int_equal(fm_threads_pin(t), fm_threads_count(t));
    fm_threads_dismiss();
    assert_int_equal(pthread_create(&thread, NULL, run_team, NULL), 0);
    pthread_join(thread, NULL);
    fm_threads_destroy(t);
    sched_getaffinity(0, sizeof after, &after);
    assert_true(CPU_EQUAL(&before, &after));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(team_fills_the_cores_and_is_let_go),
        cmocka_unit_test(the_maker_may_roam_and_pin_again),
        cmocka_unit_test(larger_and_smaller_teams_are_left_alone),
        cmocka_unit_test(a_narrow_process_is_not_widened),
        cmocka_unit_test(bad_lists_say_so),
        cmocka_unit_test(one_place_per_core_over_nodes),
        cmocka_unit_test(a_quota_limits_the_default),
        cmocka_unit_test(processes_divide_the_cores),
        cmocka_unit_test(spread_memory_can_be_used),
        cmocka_unit_test(a_dismissed_team_is_gone_and_a_new_one_works),
        cmocka_unit_test(a_dismissed_team_is_let_go_after_another_thread_had_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
