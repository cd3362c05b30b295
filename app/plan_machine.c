/* SPDX-License-Identifier: Apache-2.0 */
/* The machine a plan is for: its table of costs, found or measured. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "device/host.h"
#include "llm/planner/calibrate.h"
#include "llm/op/backend.h"
#include "machine.h"
#include "output_file.h"
#include "plan.h"
#include "probe/facts.h"
#include "probe/peak.h"
#include "probe/read_bandwidth.h"
#include "start.h"

enum { MOST_RANKS_HERE = 8 };

static const char shipped_cpu[] = "cpu-amx"; /* of a machine that was never measured */

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
    for (int i = 0; i < 2; i++)
        if (!strncmp(where, before[i], strlen(before[i]))) where += strlen(before[i]);
    snprintf(out, size, "%.60s", where);
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

/* A CPU without a table is taken for the one that ships, and said to be. */
static fm_status find_table(fm_plan_command *c)
{
    if (c->options.machine) return load_table(c, c->options.machine);
    const fm_status rc = load_table(c, c->cluster.device);
    if (rc == FM_OK || !c->is_here || c->strict || fm_cpu_isa() != FM_ISA_AMX ||
        load_table(c, shipped_cpu) != FM_OK)
        return rc;
    const double more = (double)fm_usable_cpus() / c->tuned.n_thread;
    c->tuned.read *= more;
    c->tuned.peak_f32 *= more;
    c->tuned.peak_bf16 *= more;
    c->tuned.peak_fp8 *= more;
    c->tuned.n_thread = fm_usable_cpus();
    c->tuned.spread   = 0.3;
    fprintf(stderr,
            "fathom plan: this machine was not measured: taken for the CPU of %s.  "
            "fathom plan --calibrate measures it in two minutes\n",
            c->table.text);
    return FM_OK;
}

fm_status fm_plan_find_machine(fm_plan_command *c)
{
    if (c->options.cluster)
        FM_TRY(fm_cluster_read(&c->cluster, c->options.cluster));
    else
        FM_TRY(describe_here(c));
    FM_TRY(find_table(c));
    fm_cluster_fill_links(&c->cluster, &c->tuned);
    return FM_OK;
}

/* --- measuring it ------------------------------------------------------------- */

static fm_status measure_limits(fm_tuned *t)
{
    const size_t bytes = (size_t)512 << 20;
    char        *arena = NULL;
    const int    n     = fm_usable_cpus();
    FM_TRY(fm_host_alloc((void **)&arena, bytes, "memory to read"));
#pragma omp parallel for num_threads(n) schedule(static)
    for (size_t i = 0; i < bytes; i += 4096) arena[i] = 1;
    t->n_thread  = n;
    t->memory    = (double)fm_host_total();
    t->read      = fm_read_bandwidth(arena, bytes, n);
    t->peak_bf16 = fm_peak_of_team(fm_cpu_isa(), FM_FACTOR_BF16, n);
    t->peak_f32  = fm_peak_of_team(fm_cpu_isa(), FM_FACTOR_F32, n);
    if (!(t->peak_f32 > 0)) t->peak_f32 = t->peak_bf16 / 8;
    if (!(t->peak_bf16 > 0)) t->peak_bf16 = t->peak_f32;
    t->peak_fp8 = t->peak_bf16;
    fm_host_free(arena, bytes);
    return FM_OK;
}

static void tell(const char *line) { fprintf(stderr, "measuring %-40s\r", line); }

/* A GPU's ops are not seen one by one: it has a table already, and gets this model's steps. */
static fm_status begin_table(fm_plan_command *c)
{
    const char *name = c->options.machine ? c->options.machine : c->cluster.device;
    int         gpus = 0;
    FM_TRY(fm_usable_gpus(&gpus, &c->given));
    if (gpus || c->options.machine) FM_TRY(load_table(c, name));
    if (gpus) return FM_OK;
    FM_TRY(measure_limits(&c->tuned));
    c->tuned.is_gpu = 0;
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
    fm_str         path = {0}, text = {0};
    fm_output_file o  = {0};
    fm_status      rc = FM_OK;
    if (c->options.write_table)
        fm_str_puts(&path, c->options.write_table);
    else
        rc = fm_tuned_home(&path, c->tuned.name);
    fm_tuned_print(&c->tuned, &text);
    if (rc == FM_OK) rc = fm_output_create(&o, "write-table", path.text);
    if (rc == FM_OK) {
        fwrite(text.text, 1, text.len, o.to);
        rc = fm_output_close(&o);
    }
    if (rc == FM_OK) printf("table of costs: %s\n", path.text);
    fm_str_fini(&path);
    fm_str_fini(&text);
    return rc;
}

static fm_status measure(fm_plan_command *c, fm_engine *e)
{
    const char          *model = fm_plan_model_name(c->engine);
    const double         began = fm_now();
    const fm_calibration how   = {.options = c->engine,
                                  .model   = model,
                                  .seconds = c->options.calibrate_seconds,
                                  .tell    = c->engine->quiet ? NULL : tell};
    FM_TRY(fm_calibrate(&c->tuned, e, &how));
    describe_measurement(&c->tuned, model);
    printf(
        "measured %s with %s in %.0f s: reads %.1f GB/s, multiplies %.2f TFLOP/s, spread %.1f %%\n",
        c->tuned.name, model, fm_now() - began, c->tuned.read * 1e-9, c->tuned.peak_bf16 * 1e-12,
        100 * c->tuned.spread);
    return write_table(c);
}

fm_status fm_plan_calibrate(fm_plan_command *c)
{
    fm_engine *e = NULL;
    if (c->options.cluster)
        return fm_fail(FM_E_ARG, "--calibrate measures this machine: leave out --cluster");
    FM_TRY(fm_output_check("write-table", c->options.write_table));
    FM_TRY(describe_here(c));
    FM_TRY(begin_table(c));
    FM_TRY(fm_start_engine(&e, c->engine, &c->args));
    const fm_status rc = fm_engine_is_leader(e) ? measure(c, e) : fm_engine_follow(e);
    fm_engine_close(e);
    return rc;
}
