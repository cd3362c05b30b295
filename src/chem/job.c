/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "chem/job.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <sys/stat.h>
#include <unistd.h>

#include "chem/vectors/vectors.h"

typedef struct {
    const fm_deck        *deck;
    const fm_job_options *o;
    fm_comm              *comm;
    fm_scf_times         *times;
    char                  last[2][PATH_MAX]; /* by theory: vectors of the last converged task */
} job;

/* --- vectors files --------------------------------------------------------- */

static void in_dir(char out[PATH_MAX], const job *j, const char *name)
{
    const char *dir = j->o->dir ? j->o->dir : j->deck->permanent_dir;
    if (name[0] == '/' || !dir[0] || !strcmp(dir, "."))
        snprintf(out, PATH_MAX, "%s", name);
    else
        snprintf(out, PATH_MAX, "%s/%s", dir, name);
}

static void output_path(char out[PATH_MAX], const job *j, const fm_deck_task *t)
{
    char name[sizeof j->deck->name + 8];
    snprintf(name, sizeof name, "%s.movecs", j->deck->name);
    in_dir(out, j, t->vectors_out[0] ? t->vectors_out : name);
}

static int is_written_before(const job *j, int task, const char *path)
{
    char out[PATH_MAX];
    for (int i = 0; i < task; i++) {
        output_path(out, j, &j->deck->task[i]);
        if (!strcmp(out, path)) return 1;
    }
    return 0;
}

/* errno's number, 0 if a file can be written beside `path` and renamed to it. */
static int why_not_writable(const char *path)
{
    char        dir[PATH_MAX];
    struct stat info;
    const char *slash = strrchr(path, '/');
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) return EISDIR;
    const int n = slash ? (int)(slash - path) + 1 : 0;
    snprintf(dir, sizeof dir, "%.*s", n ? n : 1, n ? path : ".");
    return access(dir, W_OK | X_OK) == 0 ? 0 : errno;
}

/* The sentence blames the line that chose the place: of the file, the directory or the task. */
static fm_status check_output(const job *j, const fm_deck_task *t)
{
    char path[PATH_MAX];
    output_path(path, j, t);
    const int why = why_not_writable(path);
    if (why == 0) return FM_OK;
    const char *dir = j->o->dir || t->vectors_out[0] == '/' ? "" : j->deck->permanent_dir;
    if (dir[0] && access(dir, W_OK | X_OK) != 0)
        return fm_fail(FM_E_IO, "%s:%d: permanent_dir \"%s\" cannot take the vectors file %s: %s",
                       j->o->path, j->deck->permanent_dir_line, dir, path, strerror(why));
    return fm_fail(FM_E_IO, "%s:%d: the vectors file %s cannot be written: %s", j->o->path,
                   t->vectors_out[0] ? t->vectors_out_line : t->line, path, strerror(why));
}

static fm_status check_task(const job *j, int i)
{
    char                path[PATH_MAX];
    const fm_deck_task *t = &j->deck->task[i];
    FM_TRY(check_output(j, t));
    if (t->vectors_from != FM_VECTORS_FILE) return FM_OK;
    in_dir(path, j, t->vectors_in);
    if (is_written_before(j, i, path) || access(path, R_OK) == 0) return FM_OK;
    return fm_fail(FM_E_IO, "%s:%d: there is no vectors file %s, and no earlier task writes it",
                   j->o->path, t->line, path);
}

/* Rank 0 checks its file system and broadcasts the result. */
fm_status fm_job_check(const fm_deck *d, const fm_job_options *o)
{
    const job j  = {.deck = d, .o = o, .comm = fm_world_comm(o->world)};
    int       rc = FM_OK;
    for (int i = 0; i < d->n_task && rc == FM_OK && j.comm->rank == 0; i++) rc = check_task(&j, i);
    FM_TRY(fm_broadcast(j.comm, &rc, sizeof rc, 0));
    return (fm_status)rc;
}

/* Empty: nowhere. */
static void usual_start(const job *j, const fm_deck_task *t, char path[PATH_MAX])
{
    if (j->last[t->theory][0])
        snprintf(path, PATH_MAX, "%s", j->last[t->theory]);
    else if (j->deck->is_restart)
        output_path(path, j, t);
}

/* What rank 0 finds, all ranks do. */
static fm_status choose_start(const job *j, const fm_deck_task *t, fm_scf_options *s,
                              char path[PATH_MAX])
{
    int from = t->vectors_from;
    if (from == FM_VECTORS_FILE) in_dir(path, j, t->vectors_in);
    if (from == FM_VECTORS_USUAL) {
        usual_start(j, t, path);
        const int fits = path[0] && fm_vectors_fit(path, t->basis, t->n_alpha);
        from           = fits ? FM_VECTORS_FILE : FM_VECTORS_ATOMIC;
    }
    FM_TRY(fm_broadcast(j->comm, &from, sizeof from, 0));
    s->vectors_from = (fm_vectors_from)from;
    return FM_OK;
}

/* --- tasks ----------------------------------------------------------------- */

static void add_times(fm_scf_times *sum, const fm_scf_times *t)
{
    sum->guess += t->guess, sum->one_electron += t->one_electron;
    sum->fock += t->fock, sum->xc += t->xc, sum->eigen += t->eigen, sum->mix += t->mix;
    sum->vectors += t->vectors, sum->total += t->total;
    sum->fock_busy += t->fock_busy, sum->fock_wait += t->fock_wait;
    sum->comm_wait += t->comm_wait;
    sum->n_fock += t->n_fock, sum->n_full += t->n_full, sum->n_quartet += t->n_quartet;
}

static fm_status show_end(const job *j, const fm_scf *s)
{
    fm_props p = {0};
    if (!j->o->on_end || j->comm->rank != 0) return FM_OK;
    FM_TRY(fm_props_find(&p, s->D, s->n_spin, s->n_occ, s->S, s->task->basis, s->task->molecule));
    j->o->on_end(j->o->ctx, s, &p);
    fm_props_fini(&p);
    return FM_OK;
}

/* A failure only this rank knows of would leave the others waiting for it. */
static fm_status run_opened(job *j, fm_scf *s)
{
    const fm_status rc = fm_scf_run(s);
    if (rc != FM_OK && !s->all_know && j->comm->n_rank > 1)
        fm_world_abort(j->o->world, "%s", fm_why());
    add_times(j->times, &s->times);
    if (rc == FM_OK) snprintf(j->last[s->task->theory], PATH_MAX, "%s", s->opt.vectors_out);
    if (rc == FM_OK) return show_end(j, s);
    if (rc != FM_E_NOCONV) return rc;
    char why[400];
    snprintf(why, sizeof why, "%s", fm_why());
    FM_TRY(show_end(j, s));
    return fm_fail(rc, "%s", why);
}

static fm_status run_task(job *j, const fm_deck_task *t)
{
    char           in[PATH_MAX] = "", out[PATH_MAX];
    fm_scf        *s            = NULL;
    fm_scf_options opt          = {.world        = j->o->world,
                                   .n_thread     = j->o->n_thread,
                                   .memory_bytes = j->o->memory_bytes,
                                   .without_diis = j->o->without_diis,
                                   .vectors_in   = in,
                                   .vectors_out  = out,
                                   .on_start     = j->o->on_start,
                                   .on_step      = j->o->on_step,
                                   .ctx          = j->o->ctx};
    output_path(out, j, t);
    FM_TRY(choose_start(j, t, &opt, in));
    FM_TRY(fm_scf_open(&s, t, &opt));
    const fm_status rc = run_opened(j, s);
    fm_scf_close(s);
    return rc;
}

fm_status fm_job_run(const fm_deck *d, const fm_job_options *o, fm_scf_times *times)
{
    job j = {.deck = d, .o = o, .comm = fm_world_comm(o->world), .times = times};
    for (int i = 0; i < d->n_task; i++) {
        if (o->on_task) o->on_task(o->ctx, &d->task[i]);
        const fm_status rc = run_task(&j, &d->task[i]);
        if (rc == FM_OK) continue;
        if (!d->task[i].goes_on) return rc;
        if (o->on_ignored) o->on_ignored(o->ctx, fm_why());
    }
    return FM_OK;
}
