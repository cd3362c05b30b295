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
    const char *model, *json, *svg, *markdown, *commit, *only, *bind, *weights;
    int         threads, quick, passes;
} arguments;

static const struct argp_option options[] = {
    {"model", 'm', "SHAPE", 0, "built-in shape (r1-mini)", 0},
    {"threads", 't', "N", 0, "threads (the cores of this process)", 0},
    {"cpu-bind", 'b', "HOW", 0, "auto, none, or a list of CPUs (auto)", 0},
    {"quick", 'q', NULL, 0, "fewer shapes, shorter measurements", 0},
    {"only", 'o', "GROUPS", 0, "of gemm,experts,attention,parts,model,context,offline", 0},
    {"weights", 'w', "TYPES", 0, "of bf16,fp8,w8a8,int4 (all but w8a8); most groups are of the first", 0},
    {"passes", 'p', "N", 0, "forward passes whose parts are timed, the fastest counts (5, with --quick 2)", 0},
    {"json", 'j', "FILE", 0, "everything as JSON", 0},
    {"svg", 's', "FILE", 0, "a plot", 0},
    {"markdown", 'd', "FILE", 0, "tables as in docs/performance-cpu.md", 0},
    {"commit", 'c', "ID", 0, "what to call this build in the results", 0},
    {0},
};

const fm_weights_kind fm_weights_kinds[FM_N_WEIGHTS] = {
    {"bf16", NULL, "prefill", "decode", "experts"},
    {"fp8",
     "{\"quantization_config\": {\"quant_method\": \"fp8\", \"weight_block_size\": [128, 128]}}",
     "prefill, FP8", "decode, FP8", "experts, FP8"},
    {"w8a8",
     "{\"quantization_config\": {\"quant_method\": \"fp8\", \"weight_block_size\": [128, 128], "
     "\"activation_scheme\": \"dynamic\"}}",
     "prefill, W8A8", "decode, W8A8", "experts, W8A8"},
    {"int4",
     "{\"quantization_config\": {\"quant_method\": \"compressed-tensors\", \"format\": "
     "\"pack-quantized\", \"config_groups\": {\"all\": {\"targets\": [\"Linear\"], \"weights\": "
     "{\"num_bits\": 4, \"type\": \"int\", \"symmetric\": true, \"strategy\": \"group\", "
     "\"group_size\": 32}}}}}",
     "prefill, INT4", "decode, INT4", "experts, INT4"},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    arguments *a = state->input;
    switch (key) {
    case 'm': a->model = arg; return 0;
    case 't': a->threads = atoi(arg); return 0;
    case 'b': a->bind = arg; return 0;
    case 'q': a->quick = 1; return 0;
    case 'p': return (a->passes = atoi(arg)) > 0 ? 0 : ARGP_ERR_UNKNOWN;
    case 'o': a->only = arg; return 0;
    case 'w': a->weights = arg; return 0;
    case 'j': a->json = arg; return 0;
    case 's': a->svg = arg; return 0;
    case 'd': a->markdown = arg; return 0;
    case 'c': a->commit = arg; return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* Products, attention and parts of the first type; experts of every type. */
static fm_status measure_on_stand(const fm_measuring *m, const fm_weights_kind *kind, int is_first)
{
    static const char *const group[] = {"experts", "gemm", "attention", "parts"};
    fm_stand                 s       = {0};
    int                      any     = 0;
    for (int i = 0; i < (is_first ? 4 : 1); i++) any |= fm_wanted(m, group[i]);
    if (!any) return FM_OK;
    FM_TRY(fm_stand_open(&s, m->model, kind->overrides, MAX_ROWS, MAX_KEYS,
                         m->report->limits.n_thread));
    fm_status rc = is_first ? fm_measure_gemm(m, &s) : FM_OK;
    if (rc == FM_OK) {
        fm_measure_experts(m, &s, kind->experts);
        if (is_first) {
            fm_measure_attention(m, &s);
            fm_measure_parts(m, &s);
        }
    }
    fm_stand_close(&s);
    return rc;
}

static fm_status measure_parts_of_model(const fm_measuring *m)
{
    int is_first = 1;
    for (int t = 0; t < FM_N_WEIGHTS; t++) {
        if (!m->wanted[t]) continue;
        FM_TRY(measure_on_stand(m, &fm_weights_kinds[t], is_first));
        is_first = 0;
    }
    return FM_OK;
}

static fm_status write_files(const fm_report *r, const arguments *a)
{
    fm_str    svg = {0}, tables = {0};
    fm_status rc = FM_OK;
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
    m.n_pass       = a->passes ? a->passes : a->quick ? 2 : 5;
    for (int t = 0; t < FM_N_WEIGHTS; t++)
        m.wanted[t] = strstr(a->weights, fm_weights_kinds[t].name) != NULL;
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
    static const struct argp syntax = {
        options, parse, NULL, "Measures the CPU engine against this machine's limits.",
        NULL,    NULL,  NULL};
    arguments a = {
        .model = "r1-mini", .commit = "unknown", .bind = "auto", .weights = "bf16,fp8,int4"};
    argp_parse(&syntax, argc, argv, 0, NULL, &a);
    if (measure_all(&a) == FM_OK) return 0;
    fprintf(stderr, "bench_cpu: %s\n", fm_why());
    return 2;
}
