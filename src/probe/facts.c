/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "probe/facts.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/environment.h"
#include "base/str.h"
#include "device/host_group.h"
#include "probe/libraries.h"

/* --- files ------------------------------------------------------------------ */

/* The first line of a file without its newline, "" if it cannot be read. */
static void read_line(char *out, size_t size, const char *path)
{
    FILE *f = fopen(path, "r");
    if (!f || !fgets(out, (int)size, f)) *out = 0;
    if (f) fclose(f);
    out[strcspn(out, "\n")] = 0;
}

static void read_below(char *out, size_t size, const char *root, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s%s", root, name);
    read_line(out, size, path);
}

/* What follows ": " in the first line of the file that begins with `key`. */
static void read_value(char *out, size_t size, const char *root, const char *name, const char *key)
{
    char path[512], line[2048];
    *out = 0;
    snprintf(path, sizeof path, "%s%s", root, name);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, key, strlen(key)) != 0 || !colon) continue;
        colon += 1 + strspn(colon + 1, " \t");
        snprintf(out, size, "%.*s", (int)strcspn(colon, "\n"), colon);
        break;
    }
    if (f) fclose(f);
}

/* Calls `take` with the first line of every file of the pattern. */
static void each_line(const char *root, const char                   *pattern,
                      void (*take)(void *to, const char *line), void *to)
{
    char   path[512], line[256];
    glob_t found;
    snprintf(path, sizeof path, "%s%s", root, pattern);
    if (glob(path, 0, NULL, &found) != 0) return;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        read_line(line, sizeof line, found.gl_pathv[i]);
        if (*line) take(to, line);
    }
    globfree(&found);
}

static void add_count(void *to, const char *line)
{
    int64_t *sum = to;
    if (*sum < 0) *sum = 0;
    *sum += atoll(line);
}

/* -1: there are no such files. */
static int64_t sum_of(const char *root, const char *pattern)
{
    int64_t sum = -1;
    each_line(root, pattern, add_count, &sum);
    return sum;
}

/* --- what there is ----------------------------------------------------------- */

static void take_governor(void *to, const char *line)
{
    fm_facts *f = to;
    if (!f->governor[0])
        snprintf(f->governor, sizeof f->governor, "%.23s", line);
    else if (strcmp(f->governor, line) != 0)
        strcpy(f->governor, "several");
}

static void take_clock(void *to, const char *line)
{
    fm_facts    *f   = to;
    const double mhz = 1e-3 * atof(line); /* the file has kHz */
    if (f->mhz_least < 0 || mhz < f->mhz_least) f->mhz_least = mhz;
    if (mhz > f->mhz_most) f->mhz_most = mhz;
}

/* "always [madvise] never": the word in brackets. */
static void read_huge_pages(fm_facts *f, const char *root)
{
    char line[64];
    read_below(line, sizeof line, root, "/sys/kernel/mm/transparent_hugepage/enabled");
    const char *from = strchr(line, '[');
    if (from)
        snprintf(f->huge_pages, sizeof f->huge_pages, "%.*s", (int)strcspn(from + 1, "]"),
                 from + 1);
}

static void read_limits(fm_facts *f, const char *root)
{
    const fm_host_group g = fm_host_group_read(root);
    f->quota              = g.quota;
    f->memory_limit       = g.memory > (size_t)1 << 60 ? -1 : (int64_t)g.memory;
    f->quota_stops        = g.n_stopped;
}

/* "cpu  user nice system idle iowait irq softirq steal ...", in ticks. */
static void read_steal(fm_facts *f, const char *root)
{
    char      line[256];
    long long t[8] = {0};
    read_below(line, sizeof line, root, "/proc/stat");
    const int n = sscanf(line, "cpu %lld %lld %lld %lld %lld %lld %lld %lld", &t[0], &t[1], &t[2],
                         &t[3], &t[4], &t[5], &t[6], &t[7]);
    if (n < 8) return;
    const double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
    f->steal_s        = tick * (double)t[7];
    f->cpu_s          = 0;
    for (int i = 0; i < 8; i++) f->cpu_s += tick * (double)t[i];
}

static void read_load(fm_facts *f, const char *root)
{
    char line[128];
    read_below(line, sizeof line, root, "/proc/loadavg");
    if (sscanf(line, "%lf", &f->load) != 1) f->load = -1;
}

static void read_variables(fm_facts *f)
{
    static const char *const prefix[]   = {"NCCL_",        "UCX_", "OMPI_MCA_",    "OMP_",
                                           "GOMP_",        "KMP_", "CUDA_VISIBLE", "CUDA_LAUNCH",
                                           "CUDA_DEVICE_", "FI_",  "FM_",          NULL};
    static const char *const launcher[] = {"OMPI_MCA_orte_",
                                           "OMPI_MCA_ess",
                                           "OMPI_MCA_pmix",
                                           "OMPI_MCA_ras_",
                                           "OMPI_MCA_init",
                                           "OMPI_MCA_shmem_RUN",
                                           "OMPI_MCA_mpi_oversubscribe",
                                           NULL};
    fm_str                   all        = {0};
    fm_environment_list(&all, prefix, launcher);
    snprintf(f->variables, sizeof f->variables, "%s", all.text ? all.text : "");
    fm_str_fini(&all);
}

void fm_facts_read(fm_facts *out, const char *root)
{
    *out = (fm_facts){.mhz_least = -1, .mhz_most = -1, .steal_s = -1, .cpu_s = -1};
    read_value(out->cpu, sizeof out->cpu, root, "/proc/cpuinfo", "model name");
    read_value(out->cpus, sizeof out->cpus, root, "/proc/self/status", "Cpus_allowed_list");
    read_below(out->kernel, sizeof out->kernel, root, "/proc/sys/kernel/osrelease");
    each_line(root, "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor", take_governor,
              out);
    each_line(root, "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_cur_freq", take_clock, out);
    read_huge_pages(out, root);
    read_limits(out, root);
    read_load(out, root);
    read_steal(out, root);
    out->throttled =
        sum_of(root, "/sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/core_throttle_count");
    out->corrected   = sum_of(root, "/sys/devices/system/edac/mc/mc[0-9]*/ce_count");
    out->uncorrected = sum_of(root, "/sys/devices/system/edac/mc/mc[0-9]*/ue_count");
    out->n_cpu       = (int)sysconf(_SC_NPROCESSORS_ONLN);
    fm_libraries_list(out->libraries, sizeof out->libraries);
    read_variables(out);
}

static int64_t difference(int64_t now, int64_t before)
{
    return now < 0 || before < 0 ? -1 : now - before;
}

void fm_facts_since(fm_facts *now, const fm_facts *before)
{
    now->throttled   = difference(now->throttled, before->throttled);
    now->quota_stops = difference(now->quota_stops, before->quota_stops);
    now->load        = before->load; /* keep the earlier load: measuring raised it */
    if (now->cpu_s < 0 || before->cpu_s < 0) return;
    now->steal_s -= before->steal_s;
    now->cpu_s -= before->cpu_s;
}
