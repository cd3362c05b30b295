/* SPDX-License-Identifier: Apache-2.0 */
/* The machine a plan is for: its table of costs, found or measured. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/environment.h"
#include "device/host.h"
#include "llm/planner/calibrate.h"
#include "llm/op/backend.h"
#include "machine.h"
#include "output_file.h"
#include "plan.h"
#include "probe/facts.h"
#include "probe/others.h"
#include "probe/peak.h"
#include "probe/read_bandwidth.h"
#include "start.h"

enum { MOST_RANKS_HERE = 8 };

/* For a CPU and for a GPU that were never measured. */
static const char shipped_cpu[] = "cpu-amx", shipped_gpu[] = "H200";

const char *fm_plan_model_name(const fm_options *o)
{
    const char *path = o->model_path ? o->model_path : "r1-mini", *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* --- this machine ------------------------------------------------------------- */

/* "on NVIDIA H200" -> "H200" */
static void name_gpu(char *out, size_t size, const char *where)
{
    static const char *const before[] = {"on ", "NVIDIA "};
    const char              *kind     = fm_gpu_kind(where);
    for (int i = 0; i < 2; i++)
        if (!strncmp(where, before[i], strlen(before[i]))) where += strlen(before[i]);
    snprintf(out, size, "%.60s", kind ? kind : where);
}

static void name_cpu(char *out, size_t size)
{
    fm_facts facts;
    fm_facts_read(&facts, "");
    snprintf(out, size, "%.50s x%d", *facts.cpu ? facts.cpu : "cpu", fm_usable_cpus());
}

static fm_status describe_here(fm_plan_command *c)
{
    int               gpus   = 0;
    fm_backend_memory memory = {0};
    FM_TRY(fm_usable_gpus(&gpus, &c->given));
    c->is_here = 1;
    c->cluster = (fm_cluster){.n_node = 1};
    if (gpus) {
        FM_TRY(fm_backend_cuda()->open(&(fm_backend_options){.n_rank = 1}, &memory));
        c->cluster.per_node = gpus;
        c->has_gpu          = 1;
        c->gpu_memory       = (double)memory.total;
        name_gpu(c->cluster.device, sizeof c->cluster.device, memory.where);
        return FM_OK;
    }
    const int cpus      = fm_usable_cpus();
    c->cluster.per_node = cpus < MOST_RANKS_HERE ? cpus : MOST_RANKS_HERE;
    name_cpu(c->cluster.device, sizeof c->cluster.device);
    return FM_OK;
}

/* --- its table ---------------------------------------------------------------- */

static int is_file(const char *name)
{
    const size_t n = strlen(name);
    return n > 5 && !strcmp(name + n - 5, ".json");
}

static fm_status load_table(fm_plan_command *c, const char *name)
{
    if (!is_file(name)) return fm_tuned_find(&c->tuned, name, &c->table);
    fm_str_clear(&c->table);
    fm_str_puts(&c->table, name);
    return fm_tuned_load(&c->tuned, name);
}

static fm_status measure_limits(fm_cpu_limits *l)
{
    const size_t bytes = (size_t)512 << 20;
    char        *arena = NULL;
    const int    n     = fm_usable_cpus();
    FM_TRY(fm_host_alloc((void **)&arena, bytes, "memory to read"));
#pragma omp parallel for num_threads(n) schedule(static)
    for (size_t i = 0; i < bytes; i += 4096) arena[i] = 1;
    *l = (fm_cpu_limits){.n_thread  = n,
                         .memory    = (double)fm_host_total(),
                         .read      = fm_read_bandwidth(arena, bytes, n),
                         .read_one  = fm_read_bandwidth(arena, bytes, 1),
                         .peak_bf16 = fm_peak_of_team(fm_cpu_isa(), FM_FACTOR_BF16, n),
                         .peak_f32  = fm_peak_of_team(fm_cpu_isa(), FM_FACTOR_F32, n)};
    if (!(l->peak_f32 > 0)) l->peak_f32 = l->peak_bf16 / 8;
    if (!(l->peak_bf16 > 0)) l->peak_bf16 = l->peak_f32;
    fm_host_free(arena, bytes);
    return FM_OK;
}

/* What doctor kept of this host, with as many threads as there are now. */
static int remembered(fm_cluster *kept, const char *device)
{
    fm_str path = {0};
    fm_environment_cache_path(&path, "rates.json");
    const int known = path.len && access(path.text, R_OK) == 0 &&
                      fm_cluster_read(kept, path.text) == FM_OK && !strcmp(kept->device, device);
    fm_str_fini(&path);
    return known;
}

static int remembered_limits(fm_cpu_limits *l)
{
    fm_cluster kept = {0};
    char       here[sizeof kept.device];
    name_cpu(here, sizeof here);
    const int known = remembered(&kept, here) && kept.cpu.n_thread;
    if (known) *l = kept.cpu;
    return known;
}

/* A CPU without a table takes the shares of the one that ships, and its own limits. */
static fm_status scale_cpu(fm_plan_command *c)
{
    const char   *from = "rates of fathom doctor";
    fm_cpu_limits l    = c->cluster.cpu;
    FM_TRY(load_table(c, shipped_cpu));
    if (c->is_here && !remembered_limits(&l)) {
        from = "a short measurement";
        FM_TRY(measure_limits(&l));
    }
    fm_scale_cpu(&c->tuned, &l);
    fprintf(stderr,
            "fathom plan: there is no table of costs for %s: scaled from %s by %s, with wide error "
            "bars.  fathom plan --calibrate on that machine sharpens it in two minutes\n",
            c->cluster.device, shipped_cpu, from);
    return FM_OK;
}

static fm_status scale_gpu(fm_plan_command *c)
{
    FM_TRY(load_table(c, fm_scaled_from(c->cluster.device)));
    fm_scale_gpu(&c->tuned, c->cluster.device);
    fprintf(stderr,
            "fathom plan: %s was not measured: scaled from %s by published memory bandwidth and "
            "peaks, with wider error bars\n",
            c->cluster.device, fm_scaled_from(c->cluster.device));
    return FM_OK;
}

static int is_cpu(const fm_plan_command *c)
{
    return c->cluster.cpu.n_thread > 0 || (c->is_here && !c->has_gpu);
}

/* A device without a table gets one that is scaled, and is said to. */
static fm_status find_table(fm_plan_command *c)
{
    if (c->options.machine) return load_table(c, c->options.machine);
    const fm_status rc = load_table(c, c->cluster.device);
    if (rc != FM_E_IO || c->strict) return rc;
    if (fm_scaled_from(c->cluster.device)) return scale_gpu(c);
    return is_cpu(c) ? scale_cpu(c) : rc;
}

fm_status fm_plan_find_cluster(fm_plan_command *c)
{
    if (c->options.cluster) return fm_cluster_read(&c->cluster, c->options.cluster);
    return describe_here(c);
}

fm_status fm_plan_find_table(fm_plan_command *c)
{
    fm_cluster kept = {0};
    if (c->is_here && remembered(&kept, c->cluster.device)) c->cluster.tiers = kept.tiers;
    FM_TRY(find_table(c));
    fm_cluster_fill_links(&c->cluster, &c->tuned);
    return FM_OK;
}

/* --- measuring it ------------------------------------------------------------- */

static void tell(const char *line) { fprintf(stderr, "measuring %-40s\r", line); }

/* A GPU's ops are not seen one by one: shares of the limits are those of its table, of the one it
 * is scaled from, or of the one that ships, and what is left is in this model's steps. */
static fm_status begin_gpu_table(fm_plan_command *c)
{
    const fm_status rc = find_table(c);
    if (rc != FM_E_IO || c->options.machine) return rc;
    FM_TRY(load_table(c, shipped_gpu));
    c->tuned.memory = c->gpu_memory;
    c->tuned.near = c->tuned.far = (fm_link){0};
    c->tuned.n_step              = 0;
    snprintf(c->tuned.name, sizeof c->tuned.name, "%s", c->cluster.device);
    return FM_OK;
}

static fm_status begin_cpu_table(fm_plan_command *c)
{
    fm_cpu_limits l;
    if (c->options.machine) FM_TRY(load_table(c, c->options.machine));
    FM_TRY(measure_limits(&l));
    fm_scale_cpu(&c->tuned, &l);
    c->tuned.is_gpu = 0;
    c->tuned.spread = 0; /* it is measured, too */
    snprintf(c->tuned.name, sizeof c->tuned.name, "%s", c->cluster.device);
    return FM_OK;
}

static void describe_measurement(fm_tuned *t, const char *model)
{
    const time_t now = time(NULL);
    struct tm    utc;
    char         day[16];
    gmtime_r(&now, &utc);
    strftime(day, sizeof day, "%Y-%m-%d", &utc);
    snprintf(t->about, sizeof t->about, "measured with %.30s on %.12s by fathom " FM_VERSION, model,
             day);
}

static fm_status write_table(fm_plan_command *c)
{
    fm_str    path = {0}, text = {0};
    fm_status rc = FM_OK;
    if (c->options.write_table)
        fm_str_puts(&path, c->options.write_table);
    else
        rc = fm_tuned_home(&path, c->tuned.name);
    fm_tuned_print(&c->tuned, &text);
    if (rc == FM_OK) rc = fm_output_write("write-table", path.text, &text);
    if (rc == FM_OK) printf("table of costs: %s\n", path.text);
    fm_str_fini(&path);
    fm_str_fini(&text);
    return rc;
}

/* A GPU's steps wait for the host only between them. */
static void warn_of_others(const fm_plan_command *c, double share)
{
    if (c->tuned.is_gpu || share < 0.05) return;
    fprintf(stderr,
            "fathom plan: others took %.0f %% of the CPUs meanwhile: the table is that of a busy "
            "machine.  Measure again when it is idle\n",
            100 * share);
}

static fm_status measure(fm_plan_command *c, fm_engine *e)
{
    const char          *model = fm_plan_model_name(c->engine);
    const double         began = fm_now();
    fm_others            others;
    const fm_calibration how = {.options = c->engine,
                                .model   = model,
                                .seconds = c->options.calibrate_seconds,
                                .tell    = c->engine->quiet ? NULL : tell};
    fm_others_begin(&others, "");
    FM_TRY(fm_calibrate(&c->tuned, e, &how));
    const double share = fm_others_share(&others, "");
    describe_measurement(&c->tuned, model);
    printf(
        "measured %s with %s in %.0f s: reads %.1f GB/s, multiplies %.2f TFLOP/s, spread %.1f %%\n",
        c->tuned.name, model, fm_now() - began, c->tuned.read * 1e-9, c->tuned.peak_bf16 * 1e-12,
        100 * c->tuned.spread);
    warn_of_others(c, share);
    return write_table(c);
}

fm_status fm_plan_calibrate(fm_plan_command *c)
{
    fm_engine *e = NULL;
    if (c->options.cluster)
        return fm_fail(FM_E_ARG, "--calibrate measures this machine: leave out --cluster");
    FM_TRY(fm_output_check("write-table", c->options.write_table));
    FM_TRY(describe_here(c));
    FM_TRY(c->has_gpu ? begin_gpu_table(c) : begin_cpu_table(c));
    FM_TRY(fm_start_engine(&e, c->engine, &c->args));
    const fm_status rc = fm_engine_is_leader(e) ? measure(c, e) : fm_engine_follow(e);
    fm_engine_close(e);
    return rc;
}
