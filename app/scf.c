/* SPDX-License-Identifier: Apache-2.0 */
/* fathom scf DECK: the Hartree-Fock and DFT energies an NWChem deck asks for. */
#define _GNU_SOURCE
#include "scf.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/resource.h>
#include <unistd.h>

#include "args.h"
#include "base/clock.h"
#include "base/mapped_file.h"
#include "chem/report/report.h"
#include "commands.h"
#include "device/host_threads.h"
#include "fathom/fathom.h"

#define K(KIND, field, ...) FM_KNOB(fm_scf_command_options, KIND, field, __VA_ARGS__)

static const fm_knob knobs[] = {
    K(INT, threads, "threads", "0", 0, 4096, "N",
      "threads of a rank; 0: the cores of the host, divided by its ranks"),
    K(FLAG, json, "json", NULL, 0, 0, NULL, "print the result as JSON and nothing else"),
    K(FLAG, quiet, "quiet", NULL, 0, 0, NULL, "print energies and errors only"),
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
    char                  *path; /* of the deck */
    fm_world              *world;
    fm_comm               *comm;
    fm_threads            *threads;
    fm_deck                deck;
    json_t                *json, *steps; /* steps: borrowed, of the present task */
    fm_scf_times           times;        /* of all tasks */
    int                    n_failed;
    char                   last[2][PATH_MAX]; /* by theory: vectors of the last converged task */
} command;

static int speaks(const command *c) { return c->comm->rank == 0; }

static int prints(const command *c) { return speaks(c) && !c->opt.json; }

/* --- command line ---------------------------------------------------------- */

static fm_status take_word(void *ctx, const char *after, const char *word)
{
    command *c = ctx;
    (void)after;
    if (c->path) return fm_fail(FM_E_ARG, "one deck at a time: \"%s\" and \"%s\"", c->path, word);
    c->path = strdup(word);
    return c->path ? FM_OK : fm_fail(FM_E_OOM, "command line");
}

static fm_status read_command_line(command *c, int argc, char **argv)
{
    FM_TRY(fm_knobs_init(knobs, N_KNOB, &c->opt));
    FM_TRY(fm_knobs_init(fm_world_knobs, fm_n_world_knob, &c->world_options));
    const fm_arg_table tables[] = {
        {"The calculation:", knobs, N_KNOB, &c->opt},
        {"Its ranks:", fm_world_knobs, fm_n_world_knob, &c->world_options},
    };
    c->args            = (fm_args){.command = "scf",
                                   .usage   = "DECK",
                                   .about   = about,
                                   .table   = tables,
                                   .n_table = 2,
                                   .word    = take_word,
                                   .ctx     = c};
    const fm_status rc = fm_args_parse(&c->args, argc, argv);
    c->args.table      = NULL;
    FM_TRY(rc);
    return c->path ? FM_OK : fm_fail(FM_E_ARG, "which deck? fathom scf DECK");
}

static fm_status open_world(command *c)
{
    int index = 0;
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
    if (rc == FM_OK && c->deck.echo && prints(c) && !c->opt.quiet)
        printf(
            "============================== echo of input deck ===============================\n"
            "%s%s"
            "=================================================================================\n",
            text, bytes && text[bytes - 1] != '\n' ? "\n" : "");
    free(text);
    return rc;
}

/* --- vectors --------------------------------------------------------------- */

static void in_dir(char out[PATH_MAX], const command *c, const char *name)
{
    const char *dir = c->deck.permanent_dir;
    if (name[0] == '/' || !dir[0] || !strcmp(dir, "."))
        snprintf(out, PATH_MAX, "%s", name);
    else
        snprintf(out, PATH_MAX, "%s/%s", dir, name);
}

static void output_path(char out[PATH_MAX], const command *c, const fm_deck_task *t)
{
    char name[128];
    snprintf(name, sizeof name, "%s.movecs", c->deck.name[0] ? c->deck.name : "fathom");
    in_dir(out, c, t->vectors_out[0] ? t->vectors_out : name);
}

static int is_written_before(const command *c, int task, const char *path)
{
    char out[PATH_MAX];
    for (int i = 0; i < task; i++) {
        output_path(out, c, &c->deck.task[i]);
        if (!strcmp(out, path)) return 1;
    }
    return 0;
}

/* A file that no earlier task writes must be there before anything is computed. */
static fm_status check_vectors(const command *c)
{
    char path[PATH_MAX];
    for (int i = 0; i < c->deck.n_task && c->comm->rank == 0; i++) {
        const fm_deck_task *t = &c->deck.task[i];
        if (t->vectors_from != FM_VECTORS_FILE) continue;
        in_dir(path, c, t->vectors_in);
        if (!is_written_before(c, i, path) && access(path, R_OK))
            return fm_fail(FM_E_IO,
                           "%s:%d: there is no vectors file %s, and no earlier task writes it",
                           c->path, t->line, path);
    }
    return FM_OK;
}

/* Where a task begins if its deck does not say. */
static void usual_start(const command *c, const fm_deck_task *t, fm_scf_options *o,
                        char path[PATH_MAX])
{
    if (c->last[t->theory][0])
        snprintf(path, PATH_MAX, "%s", c->last[t->theory]);
    else if (c->deck.is_restart)
        output_path(path, c, t);
    else
        return;
    if (c->comm->rank == 0 && access(path, R_OK)) return; /* the rank that reads it */
    o->vectors_from = FM_VECTORS_FILE;
}

/* --- tasks ----------------------------------------------------------------- */

static void on_start(void *ctx, const fm_scf *s)
{
    command *c = ctx;
    if (!prints(c) || c->opt.quiet) return;
    fm_report_task(stdout, s);
    fm_report_guess(stdout, s);
}

static void on_step(void *ctx, const fm_scf *s, const fm_scf_step *step)
{
    command *c = ctx;
    if (c->steps) fm_scf_json_step(c->steps, step);
    if (prints(c) && !c->opt.quiet) fm_report_step(stdout, s, step);
}

static void add_times(fm_scf_times *sum, const fm_scf_times *t)
{
    sum->guess += t->guess, sum->one_electron += t->one_electron;
    sum->fock += t->fock, sum->xc += t->xc, sum->eigen += t->eigen, sum->mix += t->mix;
    sum->vectors += t->vectors, sum->total += t->total;
    sum->fock_busy += t->fock_busy, sum->fock_wait += t->fock_wait;
    sum->comm_wait += t->comm_wait;
    sum->n_fock += t->n_fock, sum->n_full += t->n_full, sum->n_quartet += t->n_quartet;
}

static void begin_json_task(command *c)
{
    if (!c->json) return;
    c->steps     = json_array();
    json_t *task = json_pack("{s:o}", "iterations", c->steps);
    json_array_append_new(json_object_get(c->json, "tasks"), task);
}

static fm_status show_result(command *c, const fm_scf *s)
{
    fm_props p = {0};
    FM_TRY(fm_props_find(&p, s->D, s->n_spin, s->n_occ, s->S, s->task->basis, s->task->molecule));
    if (c->json) fm_scf_json_task(c->json, s, &p);
    if (prints(c) && c->opt.quiet)
        printf("         Total %s energy = %21.12f\n", s->is_dft ? "DFT" : "SCF", s->energy.total);
    else if (prints(c))
        fm_report_result(stdout, s, &p);
    fm_props_fini(&p);
    return FM_OK;
}

static void note_failure(command *c, const char *why)
{
    c->n_failed++;
    if (!speaks(c)) return;
    fflush(stdout);
    fprintf(stderr, "fathom scf: %s; going on, as the task line asks (ignore)\n", why);
}

/* A failure only this rank knows of would leave the others waiting. */
static fm_status end_task(command *c, fm_scf *s, fm_status rc)
{
    if (rc != FM_OK && !s->all_know && c->comm->n_rank > 1)
        fm_world_abort(c->world, "%s", fm_why());
    add_times(&c->times, &s->times);
    if (rc == FM_OK || rc == FM_E_NOCONV) {
        char why[400];
        snprintf(why, sizeof why, "%s", fm_why());
        if (speaks(c)) FM_TRY(show_result(c, s));
        if (rc == FM_E_NOCONV) rc = fm_fail(rc, "%s", why);
    }
    if (rc == FM_OK && s->opt.vectors_out)
        snprintf(c->last[s->task->theory], PATH_MAX, "%s", s->opt.vectors_out);
    return rc;
}

static fm_status run_task(command *c, const fm_deck_task *t)
{
    char           in[PATH_MAX] = "", out[PATH_MAX];
    fm_scf        *s            = NULL;
    fm_scf_options o            = {.world        = c->world,
                                   .n_thread     = fm_threads_count(c->threads),
                                   .vectors_from = t->vectors_from,
                                   .vectors_in   = in,
                                   .vectors_out  = out,
                                   .on_start     = on_start,
                                   .on_step      = on_step,
                                   .ctx          = c};
    output_path(out, c, t);
    if (t->vectors_from == FM_VECTORS_FILE) in_dir(in, c, t->vectors_in);
    if (t->vectors_from == FM_VECTORS_USUAL) usual_start(c, t, &o, in);
    begin_json_task(c);
    FM_TRY(fm_scf_open(&s, t, &o));
    const fm_status rc = end_task(c, s, fm_scf_run(s));
    fm_scf_close(s);
    return rc;
}

static fm_status run_all(command *c)
{
    for (int i = 0; i < c->deck.n_task; i++) {
        const fm_status rc = run_task(c, &c->deck.task[i]);
        if (rc == FM_OK) continue;
        if (!c->deck.task[i].goes_on) return rc;
        note_failure(c, fm_why());
    }
    return FM_OK;
}

/* --- the end --------------------------------------------------------------- */

static double cpu_seconds(const struct rusage *u)
{
    return (double)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) +
           1e-6 * (double)(u->ru_utime.tv_usec + u->ru_stime.tv_usec);
}

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
        json_object_set_new(c->json, "cpu_s", json_real(cpu_seconds(&used)));
        json_object_set_new(c->json, "peak_bytes", json_integer((json_int_t)most));
    }
    if (rc == FM_OK && prints(c) && !c->opt.quiet) {
        fm_report_times(stdout, all, n, c->world);
        fm_report_end(stdout, cpu_seconds(&used), wall, most);
    }
    free(all);
    free(peak);
    free(bytes);
    return rc;
}

static void print_json(const command *c, fm_status rc)
{
    json_object_set_new(c->json, "converged", json_boolean(rc == FM_OK && c->n_failed == 0));
    if (rc != FM_OK) json_object_set_new(c->json, "error", json_string(fm_why()));
    json_dumpf(c->json, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
    putchar('\n');
}

static fm_status compute(command *c)
{
    const fm_report_job job = {c->path, FM_VERSION, c->comm->n_rank, fm_threads_count(c->threads)};
    if (prints(c) && !c->opt.quiet) fm_report_begin(stdout, &c->deck, &job);
    const fm_status rc = run_all(c);
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
    if (c->opt.json && speaks(c))
        c->json = fm_scf_json_job(c->path, c->comm->n_rank, fm_threads_count(c->threads));
    fm_status rc = read_deck(c);
    if (rc == FM_OK) {
        rc        = check_vectors(c);
        int known = rc;
        FM_TRY(fm_broadcast(c->comm, &known, sizeof known, 0));
        rc = (fm_status)known;
    }
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
    fm_str_fini(&c->args.notes);
    fm_knobs_fini(knobs, N_KNOB, &c->opt);
    fm_knobs_fini(fm_world_knobs, fm_n_world_knob, &c->world_options);
    free(c->path);
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
