/* SPDX-License-Identifier: Apache-2.0 */
/* How close the GPU engine is to what the GPU can do: first its own limits, then
 * every family of kernels, then whole models on dummy weights.
 *
 *     bench_cuda [--only SECTIONS] [--seconds N] [--json FILE] [--markdown FILE]
 *
 * 0: all sections ended well; 1: some did not; 2: no usable GPU, or a bad option. */
#define _GNU_SOURCE /* argp */
#include <argp.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/cuda/report.h"
#include "bench/cuda/sections.h"
#include "bench/cuda/stand.h"

enum {
    GRACE_S = 20, /* for what a section does between two looks at the clock */
    ALWAYS  = 2,  /* the first sections: which GPU it is, and what it can do at best */
};

typedef struct {
    const char *name;
    void (*run)(void);
    double seconds;
} section;

static const section sections[] = {
    {"device", section_device, 5},      {"ceilings", section_ceilings, 15},
    {"launches", section_launches, 10}, {"v2-lite", section_v2_lite, 40},
    {"r1-bf16", section_r1_bf16, 40},   {"r1-fp8", section_r1_fp8, 40},
    {"experts", section_experts, 30},   {"attention", section_attention, 35},
    {"linear", section_linear, 40},     {"rows", section_rows, 15},
    {"e4m3", section_e4m3, 40},
};

typedef struct {
    const char *only, *json, *markdown, *commit;
    double      seconds; /* 0: each section's own */
} arguments;

static const struct argp_option options[] = {
    {"only", 'o', "SECTIONS", 0, "of those --list names, with commas between", 0},
    {"seconds", 's', "N", 0, "time for each section", 0},
    {"json", 'j', "FILE", 0, "everything as JSON", 0},
    {"markdown", 'd', "FILE", 0, "tables as in docs/performance-gpu.md", 0},
    {"commit", 'c', "ID", 0, "what to call this build in the results", 0},
    {"list", 'l', NULL, 0, "name the sections", 0},
    {0},
};

static int is_named(const char *list, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = list; (at = strstr(at, name)); at += n)
        if ((at == list || at[-1] == ',') && (at[n] == ',' || !at[n])) return 1;
    return 0;
}

static void list_sections(void)
{
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        printf("%-10s %3.0f s\n", sections[i].name, sections[i].seconds);
}

/* Every name of the list must be a section's. */
static void check_only(const char *only, struct argp_state *state)
{
    for (const char *at = only; *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ',')) {
        const size_t n  = strcspn(at, ",");
        int          ok = 0;
        for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
            ok |= strlen(sections[i].name) == n && !strncmp(sections[i].name, at, n);
        if (!ok) argp_error(state, "--only: there is no section %.*s", (int)n, at);
    }
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    arguments *a   = state->input;
    char      *end = NULL;
    switch (key) {
    case 'o':
        check_only(arg, state);
        a->only = arg;
        return 0;
    case 's':
        a->seconds = strtod(arg, &end);
        if (end == arg || *end || !(a->seconds > 0 && a->seconds <= 3600))
            argp_error(state, "--seconds: a number up to 3600 is expected, not %s", arg);
        return 0;
    case 'j': a->json = arg; return 0;
    case 'd': a->markdown = arg; return 0;
    case 'c': a->commit = arg; return 0;
    case 'l': list_sections(); exit(0);
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* One whole result, or 0 at the end of the pipe or of the time. */
static int receive(int fd, double deadline, fm_gpu_result *x)
{
    char  *to  = (char *)x;
    size_t got = 0;
    while (got < sizeof *x) {
        struct pollfd p    = {.fd = fd, .events = POLLIN};
        const double  left = deadline - fm_now();
        const int     n    = left > 0 ? poll(&p, 1, (int)(left * 1e3) + 1) : 0;
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return 0;
        const ssize_t k = read(fd, to + got, sizeof *x - got);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return 0;
        got += (size_t)k;
    }
    return 1;
}

static void measure_in_child(const section *s, double seconds, const fm_gpu_report *r, int fd)
{
    stand_open(s->name, seconds, &r->ceilings, fd);
    s->run();
    fflush(stdout);
    _exit(0);
}

/* 0, or STAND_NO_GPU; other ends of a section are faults in the report. */
static int measure(const section *s, double seconds, fm_gpu_report *r)
{
    const double  deadline = fm_now() + seconds + GRACE_S;
    fm_gpu_result x;
    int           fd[2], status = 0;
    if (pipe(fd) != 0) {
        fm_gpu_report_fault(r, s->name, strerror(errno));
        return 0;
    }
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        close(fd[0]);
        measure_in_child(s, seconds, r, fd[1]);
    }
    close(fd[1]);
    while (child > 0 && receive(fd[0], deadline, &x)) fm_gpu_report_add(r, &x);
    close(fd[0]);
    const int is_late = fm_now() >= deadline;
    if (child > 0 && is_late) kill(child, SIGKILL);
    if (child < 0 || waitpid(child, &status, 0) < 0)
        fm_gpu_report_fault(r, s->name, strerror(errno));
    else if (is_late)
        fm_gpu_report_fault(r, s->name, "took too long");
    else if (WIFEXITED(status) && WEXITSTATUS(status) == STAND_NO_GPU)
        return STAND_NO_GPU;
    else if (status != 0)
        fm_gpu_report_fault(r, s->name, "ended early");
    return 0;
}

/* After every section: whatever happens later, this much is there. */
static fm_status write_files(const arguments *a, const fm_gpu_report *r)
{
    if (a->json) FM_TRY(fm_gpu_report_json(r, a->json));
    return a->markdown ? fm_gpu_report_markdown(r, a->markdown) : FM_OK;
}

static int measure_all(const arguments *a)
{
    fm_gpu_report r  = {.commit = a->commit, .ceilings = fm_roof_h200};
    int           rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof sections / sizeof *sections; i++) {
        const section *s = &sections[i];
        if (i >= ALWAYS && a->only && !is_named(a->only, s->name)) continue;
        if (measure(s, a->seconds > 0 ? a->seconds : s->seconds, &r))
            rc = 2;
        else if (write_files(a, &r) != FM_OK)
            rc = 1;
    }
    if (rc == 1) fprintf(stderr, "bench_cuda: %s\n", fm_why());
    if (rc == 0 && r.fault[0]) rc = 1;
    if (rc != 2 && r.fault[0]) printf("\nnot measured: %s\n", r.fault);
    fm_gpu_report_fini(&r);
    return rc;
}

int main(int argc, char **argv)
{
    static const struct argp syntax = {
        options, parse, NULL, "Measures the GPU engine against this GPU's limits.",
        NULL,    NULL,  NULL};
    arguments a          = {.commit = "unknown"};
    argp_err_exit_status = 2;
    argp_parse(&syntax, argc, argv, 0, NULL, &a);
    return measure_all(&a);
}
