/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "device/host_group.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 4096, TEXT_BYTES = 8192 };

/* A folder of a hierarchy; its first n_mount bytes are where that is mounted. */
typedef struct {
    char   folder[3 * PATH_BYTES];
    size_t n_mount;
} place;

/* --- files of a group ------------------------------------------------------ */

/* The beginning of a file, "" if it cannot be read. */
static void read_text(char text[TEXT_BYTES], const char *folder, const char *name)
{
    char path[3 * PATH_BYTES + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE        *f = fopen(path, "r");
    const size_t n = f ? fread(text, 1, TEXT_BYTES - 1, f) : 0;
    text[n]        = 0;
    if (f) fclose(f);
}

/* -1 when absent or "max". */
static long long read_number(const char *folder, const char *name)
{
    char      text[TEXT_BYTES];
    long long n = -1;
    read_text(text, folder, name);
    return sscanf(text, "%lld", &n) == 1 ? n : -1;
}

/* Of the line "key 123"; 0 if there is none. */
static long long number_of(const char *text, const char *key)
{
    const size_t len = strlen(key);
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (!strncmp(line, key, len) && line[len] == ' ') return atoll(line + len);
    return 0;
}

/* --- limits ---------------------------------------------------------------- */

typedef struct {
    const char *limit, *used;
    const char *file_cache[2]; /* lines of memory.stat, groups below included */
} memory_files;

static const memory_files memory_v1 = {"memory.limit_in_bytes",
                                       "memory.usage_in_bytes",
                                       {"total_inactive_file", "total_active_file"}};
static const memory_files memory_v2 = {
    "memory.max", "memory.current", {"inactive_file", "active_file"}};

/* A group at its limit gives its file cache back before anything fails. */
static void look_memory(fm_host_group *g, const char *folder, const memory_files *m)
{
    char            stat[TEXT_BYTES];
    const long long limit = read_number(folder, m->limit);
    if (limit < 0) return;
    read_text(stat, folder, "memory.stat");
    const long long cache = number_of(stat, m->file_cache[0]) + number_of(stat, m->file_cache[1]);
    const long long all = read_number(folder, m->used), used = all > cache ? all - cache : 0;
    const size_t    left = limit > used ? (size_t)(limit - used) : 0;
    if ((size_t)limit < g->memory) g->memory = (size_t)limit;
    if (left >= g->memory_left) return;
    g->memory_left = left;
    snprintf(g->nearest, sizeof g->nearest, "%.255s", folder);
}

static void take_quota(fm_host_group *g, long long quota, long long period)
{
    if (quota <= 0 || period <= 0) return;
    const double share = (double)quota / (double)period;
    if (g->quota == 0 || share < g->quota) g->quota = share;
    const long long cpus = quota / period + (quota % period > 0);
    if (cpus <= INT_MAX && (!g->cpus || cpus < g->cpus)) g->cpus = (int)cpus;
}

static void count_stops(fm_host_group *g, const char *folder)
{
    char text[TEXT_BYTES];
    read_text(text, folder, "cpu.stat");
    if (!strstr(text, "nr_throttled ")) return;
    g->n_stopped = (g->n_stopped < 0 ? 0 : g->n_stopped) + number_of(text, "nr_throttled");
}

static void look_v1_memory(fm_host_group *g, const char *folder)
{
    look_memory(g, folder, &memory_v1);
}

static void look_v1_cpu(fm_host_group *g, const char *folder)
{
    const long long quota = read_number(folder, "cpu.cfs_quota_us");
    take_quota(g, quota, read_number(folder, "cpu.cfs_period_us"));
    count_stops(g, folder);
}

static void look_v2(fm_host_group *g, const char *folder)
{
    char      text[TEXT_BYTES];
    long long quota, period;
    look_memory(g, folder, &memory_v2);
    read_text(text, folder, "cpu.max");
    if (sscanf(text, "%lld %lld", &quota, &period) == 2) take_quota(g, quota, period);
    count_stops(g, folder);
}

/* --- where the group is ---------------------------------------------------- */

/* Is the word among "cpu,cpuacct"?  "" is only in "". */
static int has_word(const char *list, const char *word)
{
    const size_t len = strlen(word);
    for (const char *s = list;; s++) {
        const size_t n = strcspn(s, ",");
        if (n == len && !strncmp(s, word, n)) return 1;
        s += n;
        if (!*s) return 0;
    }
}

/* What /proc says about one hierarchy. */
typedef struct {
    char path[PATH_BYTES];    /* the process's group */
    char mounted[PATH_BYTES]; /* the group that can be seen */
    char at[PATH_BYTES];      /* in this folder */
} words;

/* A line of /proc/self/cgroup: "4:memory:/job", or "0::/job" for version 2. */
static int read_path(const char *line, const char *controller, words *w)
{
    char        list[PATH_BYTES];
    const char *begin = strchr(line, ':'), *end = begin ? strchr(begin + 1, ':') : NULL;
    if (!end) return 0;
    snprintf(list, sizeof list, "%.*s", (int)(end - begin - 1), begin + 1);
    snprintf(w->path, sizeof w->path, "%.*s", (int)strcspn(end + 1, "\n"), end + 1);
    return has_word(list, controller);
}

/* A line of /proc/self/mountinfo:
 * "32 31 0:29 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory". */
static int read_mount(const char *line, const char *controller, words *w)
{
    char        type[32], options[PATH_BYTES];
    const char *rest = strstr(line, " - ");
    if (!rest || sscanf(rest, " - %31s %*s %4095s", type, options) != 2) return 0;
    if (strcmp(type, *controller ? "cgroup" : "cgroup2") != 0) return 0;
    if (*controller && !has_word(options, controller)) return 0;
    return sscanf(line, "%*s %*s %*s %4095s %4095s", w->mounted, w->at) == 2;
}

/* Reads the first line that is about the controller. */
static int find_line(const char *root, const char *name, const char *controller, words *w,
                     int (*reads)(const char *line, const char *controller, words *w))
{
    char   path[2 * PATH_BYTES], *line = NULL;
    size_t size  = 0;
    int    found = 0;
    snprintf(path, sizeof path, "%s/proc/self/%s", root, name);
    FILE *f = fopen(path, "r");
    while (f && !found && getline(&line, &size, f) > 0) found = reads(line, controller, w);
    free(line);
    if (f) fclose(f);
    return found;
}

/* What of the group's path lies below the mount; nothing where they begin
 * differently: then only what is mounted can be seen. */
static const char *below(const words *w)
{
    const size_t n = strcmp(w->mounted, "/") != 0 ? strlen(w->mounted) : 0;
    if (strncmp(w->path, w->mounted, n) != 0 || w->path[n] != '/') return "";
    return w->path[n + 1] && !strstr(w->path, "/..") ? w->path + n : "";
}

static int find_group(place *p, const char *root, const char *controller)
{
    words w;
    if (!find_line(root, "cgroup", controller, &w, read_path)) return 0;
    if (!find_line(root, "mountinfo", controller, &w, read_mount)) return 0;
    p->n_mount  = strlen(root) + strlen(w.at);
    const int n = snprintf(p->folder, sizeof p->folder, "%s%s%s", root, w.at, below(&w));
    return n > 0 && (size_t)n < sizeof p->folder;
}

static void climb(place *p, fm_host_group *g, void (*look)(fm_host_group *g, const char *folder))
{
    look(g, p->folder);
    while (strlen(p->folder) > p->n_mount) {
        *strrchr(p->folder, '/') = 0;
        look(g, p->folder);
    }
}

fm_host_group fm_host_group_read(const char *root)
{
    static const struct {
        const char *controller; /* "": version 2 has all of them in one hierarchy */
        void (*look)(fm_host_group *g, const char *folder);
    } hierarchy[] = {{"", look_v2}, {"memory", look_v1_memory}, {"cpu", look_v1_cpu}};
    fm_host_group g = {.memory = SIZE_MAX, .memory_left = SIZE_MAX, .n_stopped = -1};
    place         p;
    for (size_t i = 0; i < sizeof hierarchy / sizeof hierarchy[0]; i++)
        if (find_group(&p, root, hierarchy[i].controller)) climb(&p, &g, hierarchy[i].look);
    return g;
}
