/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "device/host.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "device/host_group.h"

fm_status fm_host_alloc(void **out, size_t bytes, const char *what)
{
    void *p = mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return fm_fail(FM_E_OOM, "%s: cannot map %.2f GiB: %s", what, (double)bytes / 0x1p30,
                       strerror(errno));
    madvise(p, bytes, MADV_HUGEPAGE); /* a wish; small pages work too */
    *out = p;
    return FM_OK;
}

void fm_host_free(void *p, size_t bytes)
{
    if (p) munmap(p, bytes ? bytes : 1);
}

/* "Key:   123 kB" of /proc/meminfo in bytes, 0 if absent. */
static size_t meminfo(const char *key)
{
    FILE *f = fopen("/proc/meminfo", "r");
    if (!f) return 0;
    char               line[128];
    unsigned long long kb = 0;
    while (fgets(line, sizeof line, f))
        if (!strncmp(line, key, strlen(key)) && line[strlen(key)] == ':') {
            sscanf(line + strlen(key) + 1, "%llu", &kb);
            break;
        }
    fclose(f);
    return (size_t)kb << 10;
}

/* Bytes of this process: those it has addresses for, those it may write and
 * shares with no other process, and those it holds. */
typedef struct {
    size_t mapped, writable, resident;
} own_bytes;

static own_bytes read_own_bytes(void)
{
    FILE              *f = fopen("/proc/self/statm", "r");
    unsigned long long mapped = 0, resident = 0, writable = 0; /* pages */
    if (!f) return (own_bytes){0};
    if (fscanf(f, "%llu %llu %*u %*u %*u %llu", &mapped, &resident, &writable) != 3)
        mapped = resident = writable = 0;
    fclose(f);
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (own_bytes){(size_t)mapped * page, (size_t)writable * page, (size_t)resident * page};
}

/* The shell's limits on what a process may map. */
typedef struct {
    const char *name; /* of the one that leaves least */
    size_t      limit, left;
} ulimits;

static void take_ulimit(ulimits *u, int resource, size_t used, const char *name)
{
    struct rlimit r;
    if (getrlimit(resource, &r) != 0 || r.rlim_cur == RLIM_INFINITY) return;
    const size_t limit = (size_t)r.rlim_cur, left = limit > used ? limit - used : 0;
    if (limit < u->limit) u->limit = limit;
    if (left < u->left) {
        u->left = left;
        u->name = name;
    }
}

static ulimits read_ulimits(void)
{
    const own_bytes own = read_own_bytes();
    ulimits         u   = {.name = "", .limit = SIZE_MAX, .left = SIZE_MAX};
    take_ulimit(&u, RLIMIT_AS, own.mapped, "ulimit -v");
    take_ulimit(&u, RLIMIT_DATA, own.writable, "ulimit -d");
    return u;
}

static size_t lesser(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Logs once which limit makes the plan smaller than the free memory. */
static void say_limits(size_t free_bytes, size_t group, const ulimits *u)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    if (lesser(group, u->left) >= free_bytes || atomic_flag_test_and_set(&said)) return;
    if (u->left < group)
        FM_WARN("device", "%s leaves this process %.2f of the %.2f GiB that are free", u->name,
                (double)u->left / 0x1p30, (double)free_bytes / 0x1p30);
    else
        FM_INFO("device", "control groups leave this process %.2f of the %.2f GiB that are free",
                (double)group / 0x1p30, (double)free_bytes / 0x1p30);
}

size_t fm_host_available(void)
{
    const size_t  free_bytes = meminfo("MemAvailable"), group = fm_host_group_read("").memory_left;
    const ulimits u          = read_ulimits();
    say_limits(free_bytes, group, &u);
    return lesser(free_bytes, lesser(group, u.left));
}

size_t fm_host_total(void)
{
    const size_t limit = lesser(fm_host_group_read("").memory, read_ulimits().limit);
    return lesser(meminfo("MemTotal"), limit);
}

void fm_host_limit_words(char *out, size_t size)
{
    const fm_host_group g = fm_host_group_read("");
    if (size) *out = 0;
    if (g.memory_left < lesser(meminfo("MemAvailable"), read_ulimits().left))
        snprintf(out, size, "; the control group %s allows %.2f GiB", g.nearest,
                 (double)g.memory / 0x1p30);
}

size_t fm_host_resident(void)
{
    return read_own_bytes().resident;
}
