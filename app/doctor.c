/* SPDX-License-Identifier: Apache-2.0 */
/* fathom doctor: what the hosts of a job can do, and which of them is slow. */
#define _POSIX_C_SOURCE 200809L
#include "doctor.h"

#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "args.h"
#include "base/environment.h"
#include "commands.h"
#include "output_file.h"
#include "probe/report.h"
#include "self_launch.h"

#ifdef FM_HAVE_CUDA
#define GPU_PRODUCT fm_doctor_gpu_product
#else
#define GPU_PRODUCT NULL
#endif

typedef struct {
    char  *rates, *directory, *against;
    double seconds;
    int    json, no_gpu;
} doctor_options;

#define K(KIND, field, ...) FM_KNOB(doctor_options, KIND, field, __VA_ARGS__)

static const fm_knob knobs[] = {
    K(FLAG, json, "json", NULL, 0, 0, NULL, "print one JSON object and nothing else"),
    K(WORD, rates, "rates", NULL, 0, 0, "FILE",
      "write the measured rates here; none: nowhere; default ~/.cache/fathom/rates.json"),
    K(WORD, directory, "directory", NULL, 0, 0, "DIR",
      "measure how fast files here are read; default: the model's directory"),
    K(WORD, against, "against", NULL, 0, 0, "FILE",
      "compare with rates of a good day as well, which --rates has written"),
    K(REAL, seconds, "seconds", "20", 0.1, 600, "S",
      "time for cores and memory of one machine, all its ranks together"),
    K(FLAG, no_gpu, "no-gpu", NULL, 0, 0, NULL, "leave GPUs alone"),
};
enum { N_KNOB = sizeof knobs / sizeof knobs[0] };

static const char about[] =
    "Measures what this machine can do, and under mpirun or srun what every host of the job can "
    "do and how fast they reach each other.  Hosts, ranks and links that are slower than the "
    "others of their kind are named, with what to do and with host lists for the next job.  With "
    "--model-path it also says whether a model fits (options of the engine count) and how long "
    "it takes to load.\v"
    "Exits 0 if nothing is slow, 1 if something is, 2 if it cannot run or the model does not fit, "
    "3 if a rank was lost.";

typedef struct {
    doctor_options  opt;
    fm_options      engine;
    fm_args         args;
    fm_world       *world;
    fm_comm        *comm;
    fm_threads     *threads;
    fm_doctor_model model;
    fm_checkup      checkup;
    fm_findings     findings;
    fm_rates        before; /* of --against */
} command;

/* --- command line ---------------------------------------------------------- */

/* The default --comm-timeout of 300 s is lowered to 60 s; a value that was given is kept. */
static void be_impatient(fm_world_options *o)
{
    const double usual = 300, ours = 60;
    if (o->comm_timeout == usual) o->comm_timeout = ours;
}

static fm_status read_command_line(command *c, int argc, char **argv)
{
    fm_world_options *w = &c->engine.world;
    FM_TRY(fm_knobs_init(knobs, N_KNOB, &c->opt));
    FM_TRY(fm_knobs_init(fm_engine_knobs, fm_n_engine_knob, &c->engine));
    FM_TRY(fm_knobs_init(fm_world_knobs, fm_n_world_knob, w));
    be_impatient(w);
    const fm_arg_table tables[] = {
        {"The checkup:", knobs, N_KNOB, &c->opt},
        {"Its ranks:", fm_world_knobs, fm_n_world_knob, w},
        {"The model:", fm_engine_knobs, fm_n_engine_knob, &c->engine},
    };
    c->args = (fm_args){.command = "doctor", .about = about, .table = tables, .n_table = 3};
    return fm_args_parse(&c->args, argc, argv);
}

static fm_status open_world(command *c)
{
    int index = 0;
    FM_TRY(fm_world_open(&c->world, &c->engine.world));
    c->comm          = fm_world_comm(c->world);
    const int   n    = fm_world_on_cpus(c->world, &index);
    const char *bind = c->engine.cpu_bind ? c->engine.cpu_bind : "auto";
    return fm_threads_create_part(&c->threads, bind, (int)c->engine.threads, index, n);
}

/* --- the file of rates --------------------------------------------------------- */

static void make_folders(const char *path)
{
    char *folder = strdup(path);
    if (!folder) return;
    for (char *at = strchr(folder + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = 0;
        (void)mkdir(folder, 0777); /* what is missing shows when the file is opened */
        *at = '/';
    }
    free(folder);
}

static fm_status write_rates_to(const command *c, const char *path)
{
    fm_output_file o;
    fm_rates       r    = {0};
    fm_str         text = {0};
    FM_TRY(fm_output_create(&o, "rates", path));
    const fm_status rc = fm_checkup_rates(&r, &c->checkup);
    if (rc == FM_OK) {
        fm_rates_print(&r, &text);
        fputs(text.text, o.to);
    }
    fm_str_fini(&text);
    fm_rates_fini(&r);
    const fm_status closed = fm_output_close(&o);
    return rc == FM_OK ? closed : rc;
}

/* A file that was asked for must be written; the usual one is a convenience. */
static fm_status write_rates(const command *c)
{
    fm_str    usual = {0};
    fm_status rc    = FM_OK;
    if (c->opt.rates) return strcmp(c->opt.rates, "none") ? write_rates_to(c, c->opt.rates) : FM_OK;
    fm_environment_cache_path(&usual, "rates.json");
    if (usual.len) {
        make_folders(usual.text);
        if (write_rates_to(c, usual.text) != FM_OK)
            fprintf(stderr, "fathom doctor: the rates were not kept: %s\n", fm_why());
    }
    fm_str_fini(&usual);
    return rc;
}

/* --- the checkup ----------------------------------------------------------------- */

static const char *directory_of(const command *c)
{
    if (c->opt.directory) return *c->opt.directory ? c->opt.directory : NULL;
    const int has_files = c->model.is_asked && c->model.rc == FM_OK && c->model.planned.path.dir[0];
    return has_files ? c->model.planned.path.dir : NULL;
}

static fm_status examine(command *c)
{
    const fm_checkup_plan plan = {.threads     = c->threads,
                                  .directory   = directory_of(c),
                                  .seconds     = c->opt.seconds,
                                  .patience    = c->engine.world.comm_timeout,
                                  .no_gpu      = c->opt.no_gpu,
                                  .gpu_product = GPU_PRODUCT};
    FM_TRY(fm_checkup_run(&c->checkup, c->world, &plan));
    if (c->comm->rank != 0) return FM_OK;
    if (c->before.n_rank) FM_TRY(fm_checkup_remember(&c->checkup, &c->before));
    fm_findings_make(&c->findings, &c->checkup);
    fm_doctor_expect(&c->model, &c->checkup);
    return FM_OK;
}

static void print(const command *c)
{
    fm_str out = {0}, model = {0};
    if (c->opt.json) {
        fm_doctor_model_json(&model, &c->model);
        fm_report_json(&out, &c->checkup, &c->findings, model.text);
    } else {
        fm_report_tables(&out, &c->checkup);
        fm_doctor_print_model(&out, &c->model);
        fm_report_verdict(&out, &c->checkup, &c->findings);
    }
    fputs(out.text, stdout);
    fm_str_fini(&out);
    fm_str_fini(&model);
}

/* One rank that fails alone would leave the others waiting: it ends the job. */
static fm_status run(command *c, int argc, char **argv)
{
    FM_TRY(read_command_line(c, argc, argv));
    FM_TRY(fm_output_check("rates",
                           c->opt.rates && strcmp(c->opt.rates, "none") ? c->opt.rates : NULL));
    if (c->opt.against) FM_TRY(fm_rates_load(&c->before, c->opt.against));
    if (c->engine.model_path) FM_TRY(fm_self_launch(&c->engine, &c->args));
    FM_TRY(open_world(c));
    if (c->engine.model_path) fm_doctor_plan(&c->model, &c->engine, c->world);
    const fm_status rc = examine(c);
    if (rc != FM_OK && c->comm->n_rank > 1) fm_world_abort(c->world, "%s", fm_why());
    FM_TRY(rc);
    if (c->comm->rank != 0) return FM_OK;
    print(c);
    return write_rates(c);
}

static int verdict(const command *c)
{
    if (c->model.is_asked && c->model.rc != FM_OK) return FM_EXIT_INPUT;
    return fm_findings_faults(&c->findings) ? FM_EXIT_FAILED : FM_EXIT_OK;
}

static void close_all(command *c)
{
    fm_findings_fini(&c->findings);
    fm_rates_fini(&c->before);
    fm_checkup_fini(&c->checkup);
    fm_threads_destroy(c->threads);
    fm_world_close(c->world);
    fm_args_fini(&c->args);
    fm_knobs_fini(knobs, N_KNOB, &c->opt);
    fm_knobs_fini(fm_engine_knobs, fm_n_engine_knob, &c->engine);
    fm_knobs_fini(fm_world_knobs, fm_n_world_knob, &c->engine.world);
}

int fm_cmd_doctor(int argc, char **argv)
{
    command         c      = {0};
    const fm_status rc     = run(&c, argc, argv);
    const int       is_me  = !c.comm || c.comm->rank == 0; /* rank 0 says it for all */
    int             status = FM_EXIT_OK;
    if (is_me) status = rc == FM_OK ? verdict(&c) : fm_complain("doctor", rc);
    if (is_me && rc != FM_OK) status = FM_EXIT_INPUT;
    close_all(&c);
    return status;
}
