/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "device/host.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/number.h"

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

/* A control group's number; -1 when absent or "max". */
static long long group_number(const char *file)
{
    FILE     *f = fopen(file, "r");
    long long n = -1;
    if (!f) return -1;
    if (fscanf(f, "%lld", &n) != 1) n = -1;
    fclose(f);
    return n;
}

static size_t group_limit(void)
{
    const long long v2 = group_number("/sys/fs/cgroup/memory.max");
    if (v2 > 0) return (size_t)v2;
    const long long v1 = group_number("/sys/fs/cgroup/memory/memory.limit_in_bytes");
    return v1 > 0 ? (size_t)v1 : SIZE_MAX;
}

static size_t group_usage(void)
{
    const long long v2 = group_number("/sys/fs/cgroup/memory.current");
    if (v2 > 0) return (size_t)v2;
    const long long v1 = group_number("/sys/fs/cgroup/memory/memory.usage_in_bytes");
    return v1 > 0 ? (size_t)v1 : 0;
}

size_t fm_host_available(void)
{
    const size_t free_bytes = meminfo("MemAvailable"), limit = group_limit();
    if (limit == SIZE_MAX) return free_bytes;
    const size_t used = group_usage(), left = limit > used ? limit - used : 0;
    return left < free_bytes ? left : free_bytes;
}

size_t fm_host_total(void)
{
    const size_t all = meminfo("MemTotal"), limit = group_limit();
    return limit < all ? limit : all;
}

size_t fm_host_resident(void)
{
    FILE              *f = fopen("/proc/self/statm", "r");
    unsigned long long pages = 0;
    if (!f) return 0;
    if (fscanf(f, "%*u %llu", &pages) != 1) pages = 0;
    fclose(f);
    return (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
}
