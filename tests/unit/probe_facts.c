/* SPDX-License-Identifier: Apache-2.0 */
/* What a machine says about itself, read from made-up /proc and /sys folders. */
#define _GNU_SOURCE
#include "probe/facts.h"
#include "fake_root.h"

static void nothing_is_known_of_an_empty_system(void **state)
{
    (void)state;
    fm_facts f;
    fm_facts_read(&f, root);
    assert_string_equal(f.cpu, "");
    assert_string_equal(f.governor, "");
    assert_string_equal(f.huge_pages, "");
    assert_true(f.mhz_most == -1 && f.load == -1 && f.steal_s == -1 && f.quota == 0);
    assert_int_equal(f.throttled, -1);
    assert_int_equal(f.corrected, -1);
    assert_int_equal(f.uncorrected, -1);
    assert_int_equal(f.memory_limit, -1);
    assert_int_equal(f.quota_stops, -1);
}

static void files_are_read(void **state)
{
    (void)state;
    fm_facts f;
    put("/proc/cpuinfo", "processor\t: 0\nmodel name\t: A CPU @ 2.00GHz\nmodel name\t: other\n");
    put("/proc/self/status", "Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t0-3,8\n");
    put("/proc/sys/kernel/osrelease", "6.1.0-13\n");
    put("/proc/loadavg", "1.25 0.5 0.1 1/90 77\n");
    put("/proc/stat", "cpu  100 0 50 800 0 0 0 50 0 0\ncpu0 1 1 1 1 1 1 1 1\n");
    put("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
    put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "2100000\n");
    put("/sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "3400000\n");
    put("/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "3\n");
    put("/sys/devices/system/cpu/cpu10/thermal_throttle/core_throttle_count", "4\n");
    put("/sys/devices/system/edac/mc/mc0/ce_count", "12\n");
    put("/sys/devices/system/edac/mc/mc1/ce_count", "1\n");
    put("/sys/devices/system/edac/mc/mc0/ue_count", "0\n");
    put("/proc/self/cgroup", "0::/job\n");
    put("/proc/self/mountinfo",
        "30 25 0:26 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
    put("/sys/fs/cgroup/job/cpu.max", "50000 100000\n");
    put("/sys/fs/cgroup/job/cpu.stat", "usage_usec 1\nnr_throttled 9\n");
    put("/sys/fs/cgroup/job/memory.max", "4096000\n");
    fm_facts_read(&f, root);
    assert_string_equal(f.cpu, "A CPU @ 2.00GHz");
    assert_string_equal(f.cpus, "0-3,8");
    assert_string_equal(f.kernel, "6.1.0-13");
    assert_string_equal(f.huge_pages, "madvise");
    assert_string_equal(f.governor, "performance");
    assert_true(f.mhz_least == 2100 && f.mhz_most == 3400 && f.load == 1.25 && f.quota == 0.5);
    assert_int_equal(f.throttled, 7);
    assert_int_equal(f.corrected, 13);
    assert_int_equal(f.uncorrected, 0);
    assert_int_equal(f.quota_stops, 9);
    assert_int_equal(f.memory_limit, 4096000);
    put("/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n");
    fm_facts_read(&f, root);
    assert_string_equal(f.governor, "several");
}

static void counters_become_differences(void **state)
{
    (void)state;
    fm_facts before, after;
    put("/proc/stat", "cpu  100 0 50 800 0 0 0 50 0 0\n");
    put("/proc/loadavg", "0.25 0 0\n");
    put("/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "3\n");
    fm_facts_read(&before, root);
    put("/proc/stat", "cpu  200 0 50 1600 0 0 0 150 0 0\n");
    put("/proc/loadavg", "9 0 0\n");
    put("/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "5\n");
    fm_facts_read(&after, root);
    fm_facts_since(&after, &before);
    assert_int_equal(after.throttled, 2);
    assert_int_equal(after.quota_stops, -1);
    assert_true(after.load == 0.25); /* what it was before the measurement */
    assert_true(after.steal_s > 0 && after.steal_s * 9.9 < after.cpu_s &&
                after.steal_s * 10.1 > after.cpu_s);
}

static void variables_without_secrets(void **state)
{
    (void)state;
    fm_facts f;
    setenv("NCCL_ALGO", "Tree", 1);
    setenv("FM_API_KEY", "hush", 1);
    setenv("OMPI_MCA_orte_ess_vpid", "3", 1);
    setenv("OMPI_MCA_btl", "tcp,self", 1);
    setenv("HOMELY", "x", 1);
    fm_facts_read(&f, root);
    assert_non_null(strstr(f.variables, "NCCL_ALGO=Tree\n"));
    assert_non_null(strstr(f.variables, "OMPI_MCA_btl=tcp,self\n"));
    assert_null(strstr(f.variables, "hush"));
    assert_null(strstr(f.variables, "vpid"));
    assert_null(strstr(f.variables, "HOMELY"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_is_known_of_an_empty_system, make_root,
                                        remove_root),
        cmocka_unit_test_setup_teardown(files_are_read, make_root, remove_root),
        cmocka_unit_test_setup_teardown(counters_become_differences, make_root, remove_root),
        cmocka_unit_test_setup_teardown(variables_without_secrets, make_root, remove_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
