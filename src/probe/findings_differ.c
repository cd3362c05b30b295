/* SPDX-License-Identifier: Apache-2.0 */
/* Settings that a few hosts have otherwise than the rest. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe/findings_internal.h"

/* A setting of a rank as text; "" where it has none. */
typedef const char *setting(const fm_checkup_rank *r, char *room, size_t size);

static const char *get_cpu(const fm_checkup_rank *r, char *room, size_t size)
{
    (void)room, (void)size;
    return r->rates.cpu;
}

static const char *get_isa(const fm_checkup_rank *r, char *room, size_t size)
{
    (void)room, (void)size;
    return r->rates.isa;
}

static const char *get_kernel(const fm_checkup_rank *r, char *room, size_t size)
{
    (void)room, (void)size;
    return r->facts.kernel;
}

static const char *get_governor(const fm_checkup_rank *r, char *room, size_t size)
{
    (void)room, (void)size;
    return r->facts.governor;
}

static const char *get_huge_pages(const fm_checkup_rank *r, char *room, size_t size)
{
    (void)room, (void)size;
    return r->facts.huge_pages;
}

static const char *get_gpu(const fm_checkup_rank *r, char *room, size_t size)
{
    (void)room, (void)size;
    return r->gpu.name;
}

static const char *get_driver(const fm_checkup_rank *r, char *room, size_t size)
{
    (void)room, (void)size;
    return r->gpu.driver;
}

static const char *get_runtime(const fm_checkup_rank *r, char *room, size_t size)
{
    (void)room, (void)size;
    return r->gpu.runtime;
}

static const char *get_threads(const fm_checkup_rank *r, char *room, size_t size)
{
    snprintf(room, size, "%d", r->rates.n_thread);
    return room;
}

static const char *get_memory(const fm_checkup_rank *r, char *room, size_t size)
{
    snprintf(room, size, "%.0f GB", 1e-9 * (double)r->rates.memory);
    return room;
}

static const struct {
    const char *name;
    setting    *get;
} settings[] = {
    {"CPU", get_cpu},           {"instruction set", get_isa},   {"kernel", get_kernel},
    {"governor", get_governor}, {"huge pages", get_huge_pages}, {"GPU", get_gpu},
    {"GPU driver", get_driver}, {"CUDA runtime", get_runtime},  {"threads", get_threads},
    {"memory", get_memory},
};

/* --- the usual value ------------------------------------------------------------- */

typedef struct {
    char text[128];
} word;

/* How many of the n have the same text as the i-th. */
static int count_same(const word *all, int n, int i)
{
    int same = 0;
    for (int j = 0; j < n; j++) same += !strcmp(all[j].text, all[i].text);
    return same;
}

/* The index of the text that more than half of them have; -1: there is none. */
static int usual(const word *all, int n)
{
    for (int i = 0; i < n; i++)
        if (2 * count_same(all, n, i) > n) return i;
    return -1;
}

static const char *or_nothing(const char *text) { return *text ? text : "not set"; }

/* Every rank that has another value than most, unless it is the next of a host already named. */
static void name_others(fm_findings *f, const fm_checkup *c, const char *name, const word *all)
{
    const int most = usual(all, c->n_rank);
    if (most < 0) return;
    const int same = count_same(all, c->n_rank, most);
    for (int i = 0, said = -1; i < c->n_rank; i++) {
        const int h = c->host_of[i];
        if (!strcmp(all[i].text, all[most].text) || h == said) continue;
        fm__finding_add(f, FM_FINDING_NOTE, h, i, "%s: %s, with the other %d: %s", name,
                        or_nothing(all[i].text), same, or_nothing(all[most].text));
        said = h;
    }
}

/* --- libraries and variables ------------------------------------------------------- */

/* The value of a name in "NAME=value\n..." lists; "" if it has none. */
static void value_of(word *out, const char *list, const char *name, size_t len)
{
    out->text[0] = 0;
    for (const char *line = list; *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (!strncmp(line, name, len) && line[len] == '=') {
            snprintf(out->text, sizeof out->text, "%.*s", (int)strcspn(line + len + 1, "\n"),
                     line + len + 1);
            return;
        }
}

static int is_in_list(const char *list, const char *name, size_t len)
{
    word w;
    value_of(&w, list, name, len);
    return w.text[0] != 0;
}

typedef const char *list_of(const fm_checkup_rank *r);

static const char *variables_of(const fm_checkup_rank *r) { return r->facts.variables; }

static const char *libraries_of(const fm_checkup_rank *r) { return r->facts.libraries; }

/* What rank `of` has in its list and no lower rank has. */
static void compare_lists_of(fm_findings *f, const fm_checkup *c, word *all, int of, list_of *list)
{
    const char *line = list(&c->rank[of]);
    for (; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const size_t len = strcspn(line, "=");
        char         name[64];
        int          is_known = 0;
        for (int i = 0; i < of && !is_known; i++)
            is_known = is_in_list(list(&c->rank[i]), line, len);
        if (is_known) continue;
        for (int i = 0; i < c->n_rank; i++) value_of(&all[i], list(&c->rank[i]), line, len);
        snprintf(name, sizeof name, "%.*s", (int)len, line);
        name_others(f, c, name, all);
    }
}

/* Variables that are often set without need. */
static void look_at_nccl(fm_findings *f, const fm_checkup *c)
{
    static const char *const name[] = {"NCCL_ALGO",          "NCCL_PROTO",    "NCCL_MIN_NCHANNELS",
                                       "NCCL_MAX_NCHANNELS", "NCCL_BUFFSIZE", "NCCL_NTHREADS"};
    for (size_t i = 0; i < sizeof name / sizeof name[0]; i++) {
        if (!is_in_list(c->rank[0].facts.variables, name[i], strlen(name[i]))) continue;
        fm_finding *new = fm__finding_add(f, FM_FINDING_NOTE, -1, -1, "%s is set by hand", name[i]);
        snprintf(new->todo, sizeof new->todo,
                 "NCCL's own choice is often faster: measure with and without it");
    }
}

void fm__findings_differ(fm_findings *f, const fm_checkup *c)
{
    word *all = calloc((size_t)c->n_rank, sizeof *all);
    FM_BUG_UNLESS(all != NULL);
    for (size_t s = 0; s < sizeof settings / sizeof settings[0]; s++) {
        char room[64];
        for (int i = 0; i < c->n_rank; i++)
            snprintf(all[i].text, sizeof all[i].text, "%.127s",
                     settings[s].get(&c->rank[i], room, sizeof room));
        name_others(f, c, settings[s].name, all);
    }
    for (int i = 0; i < c->n_rank; i++) compare_lists_of(f, c, all, i, libraries_of);
    for (int i = 0; i < c->n_rank; i++) compare_lists_of(f, c, all, i, variables_of);
    look_at_nccl(f, c);
    free(all);
}
