/* SPDX-License-Identifier: Apache-2.0 */
/* fathom scf DECK: the Hartree-Fock and DFT energies an NWChem deck asks for. */
#define _GNU_SOURCE
#include "scf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/resource.h>

#include "args.h"
#include "base/clock.h"
#include "base/mapped_file.h"
#include "chem/job.h"
#include "chem/report/report.h"
#include "commands.h"
#include "device/host.h"
#include "device/host_threads.h"
#include "fathom/fathom.h"
#include "scf_trace.h"

#define K(KIND, field, ...) FM_KNOB(fm_scf_command_options, KIND, field, __VA_ARGS__)

static const fm_knob knobs[] = {
    K(INT, threads, "threads", "0", 0, 4096, "N",
      "threads of a rank; 0: the cores of the host, divided by its ranks"),
    K(FLAG, json, "json", NULL, 0, 0, NULL, "print the result as JSON and nothing else"),
    K(FLAG, quiet, "quiet", NULL, 0, 0, NULL, "print energies and errors only"),
    K(WORD, trace, "trace", NULL, 0, 0, "FILE",
      "record where time goes; fathom trace FILE explains it; of several ranks, FILE.rankN"),
    K(FLAG, no_diis, "no-diis", NULL, 0, 0, NULL,
      "minimise the energy directly from the start, where DIIS leads nowhere"),
    K(FLAG, deterministic, "deterministic", NULL, 0, 0, NULL,
      "the same bits whatever the ranks and threads: always so, accepted for scripts"),
};
enum { N_KNOB = sizeof knobs / sizeof knobs[0] };

static const char about[] =
    "Reads an NWChem input deck as it is and computes the energies its tasks ask for: RHF, ROHF, "
    "UHF, and DFT on NWChem's grids.  mpirun -np N fathom scf DECK divides the work over N ranks; "
    "a rank uses all its cores.\v"
    "Exits 0 if every task converged, 1 if one did not (and its task line does not say ignore), 2 "
    "if the deck cannot be used.";

typedef struct {
    fm_scf_command_options opt;
    fm_world_options       world_options;
    fm_args                args;
    const char            *path; /* of the deck; borrowed from the command line */
    fm_world              *world;
    fm_comm               *comm;
    fm_threads            *threads;
    fm_deck                deck;
    json_t                *json, *steps; /* steps: borrowed, of the present task */
    fm_scf_times           times;        /* of all tasks */
    double                 cpu_before;   /* seconds before the present task */
    fm_scf_trace           trace;
    int                    n_ignored;
} command;

/* The printout, by rank 0, unless JSON or brevity was asked for. */
static int reports(const command *c) { return c->comm->rank == 0 && !c->opt.json && !c->opt.quiet; }

/* --- command line ---------------------------------------------------------- */

static fm_status read_command_line(command *c, int argc, char **argv)
{
    FM_TRY(fm_knobs_init(knobs, N_KNOB, &c->opt));
    FM_TRY(fm_knobs_init(fm_world_knobs, fm_n_world_knob, &c->world_options));
    const fm_arg_table tables[] = {
        {"The calculation:", knobs, N_KNOB, &c->opt},
        {"Its ranks:", fm_world_knobs, fm_n_world_knob, &c->world_options},
    };
    c->args = (fm_args){.command = "scf", .usage = "DECK", .n_word = 1, .about = about,
                        .table = tables, .n_table = 2};
    FM_TRY(fm_args_parse(&c->args, argc, argv));
    c->path = c->args.given[0];
    return FM_OK;
}

/* Where all ranks are on one host, Open MPI starts sooner if it does not look for networks:
 * what the user has chosen stays. */
static void skip_networks(void)
{
    const char *all = getenv("OMPI_COMM_WORLD_SIZE"), *here = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    if (!all || !here || strcmp(all, here) != 0) return;
    setenv("OMPI_MCA_pml", "ob1", 0);
    setenv("OMPI_MCA_btl", "self,vader,tcp", 0);
}

static fm_status open_world(command *c)
{
    int index = 0;
    skip_networks();
    FM_TRY(fm_world_open(&c->world, &c->world_options));
    c->comm     = fm_world_comm(c->world);
    const int n = fm_world_on_cpus(c->world, &index);
    return fm_threads_create_part(&c->threads, "none", (int)c->opt.threads, index, n);
}

/* --- the deck -------------------------------------------------------------- */

/* Rank 0 reads the file; the others need not see it. */
static fm_status share_deck(command *c, char **text, size_t *bytes)
{
    fm_mapped_file file = {0};
    long long      n    = -1;
    fm_status      rc   = FM_OK;
    if (c->comm->rank == 0 && (rc = fm_mapped_file_open(&file, c->path)) == FM_OK)
        n = (long long)file.size;
    FM_TRY(fm_broadcast(c->comm, &n, sizeof n, 0));
    if (n < 0) return rc != FM_OK ? rc : FM_E_IO;
    *bytes = (size_t)n;
    *text  = malloc(*bytes + 1);
    if (!*text) return fm_fail(FM_E_OOM, "deck of %lld bytes", n);
    if (*bytes && c->comm->rank == 0) memcpy(*text, file.data, *bytes);
    (*text)[*bytes] = 0;
    fm_mapped_file_close(&file);
    return fm_broadcast(c->comm, *text, *bytes, 0);
}

static fm_status read_deck(command *c)
{
    char     *text  = NULL;
    size_t    bytes = 0;
    fm_status rc    = share_deck(c, &text, &bytes);
    if (rc == FM_OK) rc = fm_deck_parse(&c->deck, c->path, text, bytes);
    if (rc == FM_OK && c->deck.echo && reports(c))
        printf(
            "============================== echo of input deck ===============================\n"
            "%s%s"
            "=================================================================================\n",
            text, bytes && text[bytes - 1] != '\n' ? "\n" : "");
    free(text);
    return rc;
}

/* --- progress -------------------------------------------------------------- */

static double cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static void on_task(void *ctx, const fm_deck_task *t)
{
    command *c = ctx;
    (void)t;
    fm_scf_trace_task(&c->trace);
    c->cpu_before = cpu_seconds();
    if (!c->json) return;
    c->steps = json_array();
    json_array_append_new(json_object_get(c->json, "tasks"),
                          json_pack("{s:o}", "iterations", c->steps));
}

static void on_start(void *ctx, const fm_scf *s)
{
    if (!reports(ctx)) return;
    fm_report_task(stdout, s);
    fm_report_guess(stdout, s);
}

static void on_step(void *ctx, const fm_scf *s, const fm_scf_step *step)
{
    command *c = ctx;
    fm_scf_trace_step(&c->trace, s);
    if (c->steps) fm_scf_json_step(c->steps, step);
    if (reports(c)) fm_report_step(stdout, s, step);
}

static void on_end(void *ctx, const fm_scf *s, const fm_props *p)
{
    command *c = ctx;
    if (c->json) fm_scf_json_task(c->json, s, p);
    if (reports(c)) {
        fm_report_result(stdout, s, p);
        fm_report_task_times(stdout, cpu_seconds() - c->cpu_before, s->times.total);
    } else if (!c->opt.json)
        printf("         Total %s energy = %21.12f\n", s->is_dft ? "DFT" : "SCF", s->energy.total);
}

static void on_ignored(void *ctx, const char *why)
{
    command *c = ctx;
    c->n_ignored++;
    if (c->comm->rank != 0) return;
    fflush(stdout);
    fprintf(stderr, "fathom scf: %s; going on, as the task line asks (ignore)\n", why);
}

/* --- the end --------------------------------------------------------------- */

/* Collective: every rank's times and memory come to rank 0. */
static fm_status sum_up(command *c)
{
    const int     n     = c->comm->n_rank;
    fm_scf_times *all   = calloc((size_t)n, sizeof *all);
    double       *peak  = calloc((size_t)n, sizeof *peak);
    size_t       *bytes = calloc((size_t)n, sizeof *bytes);
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    const double mine = 1024.0 * (double)used.ru_maxrss;
    fm_status    rc   = all && peak && bytes ? FM_OK : fm_fail(FM_E_OOM, "table of times");
    for (int i = 0; rc == FM_OK && i < n; i++) bytes[i] = sizeof *all;
    if (rc == FM_OK) rc = fm_all_gather(c->comm, all, &c->times, bytes);
    for (int i = 0; rc == FM_OK && i < n; i++) bytes[i] = sizeof *peak;
    if (rc == FM_OK) rc = fm_all_gather(c->comm, peak, &mine, bytes);
    double most = 0;
    for (int i = 0; rc == FM_OK && i < n; i++) most = peak[i] > most ? peak[i] : most;
    const double wall = fm_now() - fm_start_time();
    if (rc == FM_OK && c->json) {
        fm_scf_json_times(c->json, all, n, c->world);
        json_object_set_new(c->json, "wall_s", json_real(wall));
        json_object_set_new(c->json, "cpu_s", json_real(cpu_seconds()));
        json_object_set_new(c->json, "peak_bytes", json_integer((json_int_t)most));
    }
    if (rc == FM_OK && reports(c)) {
        fm_report_times(stdout, all, n, c->world);
        fm_report_end(stdout, cpu_seconds(), wall, most);
    }
    free(all);
    free(peak);
    free(bytes);
    return rc;
}

static void print_json(const command *c, fm_status rc)
{
    json_object_set_new(c->json, "converged", json_boolean(rc == FM_OK && c->n_ignored == 0));
    if (rc != FM_OK) json_object_set_new(c->json, "error", json_string(fm_why()));
    json_dumpf(c->json, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
    putchar('\n');
}

/* Free memory of the host, divided by its ranks. */
static size_t memory_of_rank(const command *c)
{
    int index = 0;
    return fm_host_available() / (size_t)fm_world_on_host(c->world, &index);
}

static fm_status compute(command *c)
{
    const int            n_thread = fm_threads_count(c->threads);
    const fm_report_job  job      = {c->path, FM_VERSION, c->comm->n_rank, n_thread};
    const fm_job_options o        = {.world        = c->world,
                                     .n_thread     = n_thread,
                                     .memory_bytes = memory_of_rank(c),
                                     .without_diis = c->opt.no_diis,
                                     .path         = c->path,
                                     .on_task      = on_task,
                                     .on_start     = on_start,
                                     .on_step      = on_step,
                                     .on_end       = on_end,
                                     .on_ignored   = on_ignored,
                                     .ctx          = c};
    FM_TRY(fm_job_check(&c->deck, &o));
    FM_TRY(fm_scf_trace_begin(&c->trace, c->world, c->opt.trace, c->path));
    if (reports(c)) fm_report_begin(stdout, &c->deck, &job);
    const fm_status rc = fm_job_run(&c->deck, &o, &c->times);
    fm_scf_trace_end(&c->trace);
    if (rc != FM_OK && rc != FM_E_NOCONV) return rc;
    char why[400];
    snprintf(why, sizeof why, "%s", fm_why());
    FM_TRY(sum_up(c));
    return rc == FM_OK ? rc : fm_fail(rc, "%s", why);
}

static fm_status run(command *c, int argc, char **argv)
{
    FM_TRY(read_command_line(c, argc, argv));
    FM_TRY(open_world(c));
    if (c->opt.json && c->comm->rank == 0)
        c->json = fm_scf_json_job(c->path, c->comm->n_rank, fm_threads_count(c->threads));
    fm_status rc = read_deck(c);
    if (rc == FM_OK) rc = compute(c);
    if (c->json) print_json(c, rc);
    return rc;
}

static void close_all(command *c)
{
    json_decref(c->json);
    fm_deck_fini(&c->deck);
    fm_threads_destroy(c->threads);
    fm_world_close(c->world);
    fm_args_fini(&c->args);
    fm_knobs_fini(knobs, N_KNOB, &c->opt);
    fm_knobs_fini(fm_world_knobs, fm_n_world_knob, &c->world_options);
}

int fm_cmd_scf(int argc, char **argv)
{
    command         c      = {0};
    const fm_status rc     = run(&c, argc, argv);
    const int       is_me  = !c.comm || c.comm->rank == 0; /* rank 0 says it for all */
    const int       status = rc == FM_OK || !is_me ? FM_EXIT_OK : fm_complain("scf", rc);
    close_all(&c);
    return status;
}
