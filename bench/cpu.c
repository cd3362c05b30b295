/* SPDX-License-Identifier: Apache-2.0 */
/* How close the CPU engine is to what the machine can do: first the machine's
 * own limits, then products, experts, attention, and the whole model.
 *
 *     bench_cpu [--quick] [--json FILE] [--svg FILE] [--markdown FILE] */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cpu_measure.h"
#include "bench/output.h"
#include "bench/plot.h"
#include "device/host_threads.h"

enum { MAX_ROWS = 2048, MAX_KEYS = 65536 };

typedef struct {
    const char *model, *json, *svg, *markdown, *commit, *only, *bind;
    int         threads, quick;
} arguments;

static const struct argp_option options[] = {
    {"model", 'm', "SHAPE", 0, "built-in shape (r1-mini)", 0},
    {"threads", 't', "N", 0, "threads (the cores of this process)", 0},
    {"cpu-bind", 'b', "HOW", 0, "auto, none, or a list of CPUs (auto)", 0},
    {"quick", 'q', NULL, 0, "fewer shapes, shorter measurements", 0},
    {"only", 'o', "GROUPS", 0, "of gemm,experts,attention,parts,model,context,offline", 0},
    {"json", 'j', "FILE", 0, "everything as JSON", 0},
    {"svg", 's', "FILE", 0, "a plot", 0},
    {"markdown", 'd', "FILE", 0, "tables as in docs/performance.md", 0},
    {"commit", 'c', "ID", 0, "what to call this build in the results", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    arguments *a = state->input;
    switch (key) {
    case 'm': a->model = arg; return 0;
    case 't': a->threads = atoi(arg); return 0;
    case 'b': a->bind = arg; return 0;
    case 'q': a->quick = 1; return 0;
    case 'o': a->only = arg; return 0;
    case 'j': a->json = arg; return 0;
    case 's': a->svg = arg; return 0;
    case 'd': a->markdown = arg; return 0;
    case 'c': a->commit = arg; return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static fm_status measure_parts_of_model(const fm_measuring *m)
{
    static const char *const group[] = {"gemm", "experts", "attention", "parts"};
    fm_stand                 s       = {0};
    int                      any     = 0;
    for (int i = 0; i < 4; i++) any |= fm_wanted(m, group[i]);
    if (!any) return FM_OK;
    FM_TRY(fm_stand_open(&s, m->model, MAX_ROWS, MAX_KEYS, m->report->limits.n_thread));
    const fm_status rc = fm_measure_gemm(m, &s);
    if (rc == FM_OK) {
        fm_measure_experts(m, &s);
        fm_measure_attention(m, &s);
        fm_measure_parts(m, &s);
    }
    fm_stand_close(&s);
    return rc;
}

static fm_status write_files(const fm_report *r, const arguments *a)
{
    fm_str    svg = {0}, tables = {0};
    fm_status rc  = FM_OK;
    fm_plot_report(r, &svg);
    fm_report_markdown(r, &tables);
    if (a->json) FM_GO(fm_report_json(r, a->json));
    if (a->svg) FM_GO(fm_write_text(a->svg, &svg));
    if (a->markdown) FM_GO(fm_write_text(a->markdown, &tables));
out:
    fm_str_fini(&svg);
    fm_str_fini(&tables);
    return rc;
}

static fm_status measure_all(const arguments *a)
{
    fm_threads  *team   = NULL;
    fm_report    report = {.commit = a->commit, .model = a->model};
    fm_measuring m = {.report = &report, .model = a->model, .only = a->only, .quick = a->quick};
    FM_TRY(fm_threads_create(&team, a->bind, a->threads));
    const int n_thread = fm_threads_count(team);
    fm_status rc       = FM_OK;
    report.pinned      = fm_threads_pin(team) == n_thread;
    FM_GO(fm_limits_measure(&report.limits, n_thread));
    m.roof = fm_roof_of(&report.limits);
    fm_report_head(&report);
    if (report.limits.fed > 0)
        fm_report_fact(&report, "bf16 peak with operands from L1", report.limits.fed * 1e-9,
                       "GFLOP/s");
    FM_GO(measure_parts_of_model(&m));
    FM_GO(fm_measure_model(&m));
    FM_GO(write_files(&report, a));
out:
    fm_report_fini(&report);
    fm_threads_destroy(team);
    return rc;
}

int main(int argc, char **argv)
{
    static const struct argp syntax = {options, parse, NULL,
                                       "Measures the CPU engine against this machine's limits.",
                                       NULL, NULL, NULL};
    arguments a = {.model = "r1-mini", .commit = "unknown", .bind = "auto"};
    argp_parse(&syntax, argc, argv, 0, NULL, &a);
    if (measure_all(&a) == FM_OK) return 0;
    fprintf(stderr, "bench_cpu: %s\n", fm_why());
    return 2;
}
