/* SPDX-License-Identifier: Apache-2.0 */
/* How much a process may take: control groups in made-up /proc and /sys
 * folders, the shell's limits by setting them in a child. */
#define _GNU_SOURCE
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/host.h"
#include "device/host_group.h"
#include "fake_root.h"

#define MIB ((size_t)1 << 20)

static void expect(size_t memory, size_t left, int cpus)
{
    const fm_host_group g = fm_host_group_read(root);
    assert_int_equal(g.memory, memory);
    assert_int_equal(g.memory_left, left);
    assert_int_equal(g.cpus, cpus);
}

static const char unified[] =
    "25 30 0:23 / /sys rw,nosuid - sysfs sysfs rw\n"
    "30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";

static void mount_v1(void)
{
    put("/proc/self/mountinfo",
        "31 25 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
        "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:7 - cgroup cgroup rw,cpu,cpuacct\n"
        "33 31 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
        "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
}

static void nothing_there_limits_nothing(void **state)
{
    (void)state;
    expect(SIZE_MAX, SIZE_MAX, 0);
    put("/proc/self/cgroup", "0::/job\n");
    expect(SIZE_MAX, SIZE_MAX, 0);
    put("/proc/self/mountinfo", "no mount\n - \n1 2 3 - cgroup2\n");
    expect(SIZE_MAX, SIZE_MAX, 0);
    put("/proc/self/cgroup", "\n:\nno group\n");
    put("/proc/self/mountinfo", unified);
    expect(SIZE_MAX, SIZE_MAX, 0);
}

static void own_group_and_those_above_count(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "0::/slice/job/step\n");
    put("/proc/self/mountinfo", unified);
    put("/sys/fs/cgroup/slice/job/step/memory.max", "max\n");
    put("/sys/fs/cgroup/slice/job/step/memory.current", "1048576\n");
    expect(SIZE_MAX, SIZE_MAX, 0);
    put("/sys/fs/cgroup/slice/job/memory.max", "1048576000\n");
    put("/sys/fs/cgroup/slice/job/memory.current", "104857600\n");
    expect(1000 * MIB, 900 * MIB, 0);
    put("/sys/fs/cgroup/slice/memory.max", "2097152000\n");
    put("/sys/fs/cgroup/slice/memory.current", "1572864000\n"); /* a neighbour's, mostly */
    expect(1000 * MIB, 500 * MIB, 0);
    assert_non_null(strstr(fm_host_group_read(root).nearest, "/sys/fs/cgroup/slice"));
    put("/sys/fs/cgroup/slice/job/step/memory.max", "1048576\n");
    expect(MIB, 0, 0);
    assert_non_null(strstr(fm_host_group_read(root).nearest, "/sys/fs/cgroup/slice/job/step"));
    put("/sys/fs/cgroup/other/memory.max", "0\n"); /* not a group of this process */
    expect(MIB, 0, 0);
}

static void version_1_groups_count(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "9:name=systemd:/memory\n5:cpu,cpuacct:/job\n"
                             "4:memory:/pbs/17.node\n3:cpuset:/pbs\n0::/\n");
    mount_v1();
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "4194304000\n");
    put("/sys/fs/cgroup/memory/pbs/17.node/memory.limit_in_bytes", "1572864000\n");
    put("/sys/fs/cgroup/memory/pbs/17.node/memory.usage_in_bytes", "524288000\n");
    expect(1500 * MIB, 1000 * MIB, 0);
    put("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
    expect(1500 * MIB, 1000 * MIB, 0);
    assert_int_equal(fm_host_group_read(root).n_stopped, -1);
    put("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "350000\n");
    put("/sys/fs/cgroup/cpu,cpuacct/job/cpu.stat",
        "nr_periods 9\nnr_throttled 7\nthrottled_time 5\n");
    expect(1500 * MIB, 1000 * MIB, 4);
    assert_true(fm_host_group_read(root).quota == 3.5);
    assert_int_equal(fm_host_group_read(root).n_stopped, 7);
}

/* A container: it sees its own group as the root, or the path of another view
 * of the hierarchy. */
static void what_is_mounted_is_the_own_group(void **state)
{
    (void)state;
    static const char *const path[] = {"0::/\n", "0::/docker/4f2a\n", "0::/../../job\n",
                                       "0::/docker\n"};
    put("/sys/fs/cgroup/memory.max", "4194304000\n");
    put("/sys/fs/cgroup/memory.current", "1048576\n");
    put("/sys/fs/job/memory.max", "1\n"); /* outside of what is mounted */
    for (size_t i = 0; i < sizeof path / sizeof path[0]; i++) {
        put("/proc/self/cgroup", path[i]);
        put("/proc/self/mountinfo", unified);
        expect(4000 * MIB, 3999 * MIB, 0);
        put("/proc/self/mountinfo",
            "30 25 0:26 /docker/4f2a /sys/fs/cgroup ro - cgroup2 cgroup rw,nsdelegate\n");
        expect(4000 * MIB, 3999 * MIB, 0);
    }
    put("/proc/self/cgroup", "0::/docker/4f2a/inner\n");
    put("/sys/fs/cgroup/inner/memory.max", "1048576000\n");
    put("/sys/fs/cgroup/inner/memory.current", "0\n");
    expect(1000 * MIB, 1000 * MIB, 0);
}

static void file_cache_can_be_given_back(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "0::/\n");
    put("/proc/self/mountinfo", unified);
    put("/sys/fs/cgroup/memory.max", "4194304000\n");
    put("/sys/fs/cgroup/memory.current", "3145728000\n");
    put("/sys/fs/cgroup/memory.stat", "anon 524288000\nfile 2621440000\nold_inactive_file 7\n"
                                      "inactive_anon 5\ninactive_file 1048576000\n"
                                      "active_file 1572864000\n");
    expect(4000 * MIB, 3500 * MIB, 0);
    put("/sys/fs/cgroup/memory.stat", "inactive_file 4194304000\n"); /* counted a moment later */
    expect(4000 * MIB, 4000 * MIB, 0);

    put("/proc/self/cgroup", "4:memory:/\n");
    mount_v1();
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "2097152000\n");
    put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "1048576000\n");
    put("/sys/fs/cgroup/memory/memory.stat", "inactive_file 1\nactive_file 1\n"
                                             "total_inactive_file 104857600\n"
                                             "total_active_file 419430400\n");
    expect(2000 * MIB, 1500 * MIB, 0);
}

static void a_quota_is_cpus_rounded_up(void **state)
{
    (void)state;
    static const struct {
        const char *above, *own;
        int         cpus;
    } quota[] = {{"max 100000\n", "max 100000\n", 0}, {"max 100000\n", "50000 100000\n", 1},
                 {"max 100000\n", "150000 100000\n", 2}, {"max 100000\n", "400000 100000\n", 4},
                 {"300000 100000\n", "max 100000\n", 3}, {"300000 100000\n", "10 2\n", 3},
                 {"300000 100000\n", "20000 10000\n", 2}, {"0 0\n", "-1 100000\n", 0},
                 {"", "100000\n", 0}, {"", "9223372036854775807 1\n", 0}};
    put("/proc/self/cgroup", "0::/job\n");
    put("/proc/self/mountinfo", unified);
    for (size_t i = 0; i < sizeof quota / sizeof quota[0]; i++) {
        put("/sys/fs/cgroup/cpu.max", quota[i].above);
        put("/sys/fs/cgroup/job/cpu.max", quota[i].own);
        expect(SIZE_MAX, SIZE_MAX, quota[i].cpus);
    }
}

/* Bytes the limit counts now, by /proc/self/statm. */
static size_t counted(int resource)
{
    unsigned long long mapped = 0, data = 0;
    FILE              *f      = fopen("/proc/self/statm", "r");
    if (!f) return 0;
    if (fscanf(f, "%llu %*u %*u %*u %*u %llu", &mapped, &data) != 2) mapped = data = 0;
    fclose(f);
    return (size_t)(resource == RLIMIT_AS ? mapped : data) * (size_t)sysconf(_SC_PAGESIZE);
}

/* 0: as it should be. */
static int within_ulimit(int resource)
{
    const size_t        spare = 512 * MIB, block = 256 * MIB, limit = counted(resource) + spare;
    const struct rlimit r     = {limit, limit};
    void               *p     = NULL;
    if (setrlimit(resource, &r) != 0) return 1;
    const size_t before = fm_host_available();
    if (before > spare || before < spare - 64 * MIB) return 2;
    if (fm_host_total() > limit) return 3;
    if (fm_host_alloc(&p, block, "a block") != FM_OK) return 4;
    if (fm_host_available() > spare - block) return 5;
    fm_host_free(p, block);
    return 0;
}

static void ulimits_count(void **state)
{
    (void)state;
    static const int resource[] = {RLIMIT_AS, RLIMIT_DATA};
    for (size_t i = 0; i < sizeof resource / sizeof resource[0]; i++) {
        const pid_t child = fork();
        if (!child) _exit(within_ulimit(resource[i]));
        int how = -1;
        assert_int_equal(waitpid(child, &how, 0), child);
        assert_true(WIFEXITED(how));
        assert_int_equal(WEXITSTATUS(how), 0);
    }
}

static void this_system_has_memory(void **state)
{
    (void)state;
    assert_true(fm_host_total() > 0);
    assert_true(fm_host_available() <= fm_host_total());
    assert_true(fm_host_resident() > 0);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_root, remove_root)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(nothing_there_limits_nothing),
        IN_FOLDER(own_group_and_those_above_count),
        IN_FOLDER(version_1_groups_count),
        IN_FOLDER(what_is_mounted_is_the_own_group),
        IN_FOLDER(file_cache_can_be_given_back),
        IN_FOLDER(a_quota_is_cpus_rounded_up),
        cmocka_unit_test(ulimits_count),
        cmocka_unit_test(this_system_has_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
