/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "chem_run.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static fm_world *world;
static char      dir[] = "/tmp/fathom-chem-XXXXXX";

void chem_open(void)
{
    if (!mkdtemp(dir) || fm_world_open(&world, NULL) != FM_OK) {
        fprintf(stderr, "%s: %s\n", dir, fm_why());
        exit(1);
    }
}

void chem_close(void)
{
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[600];
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (e->d_name[0] != '.') unlink(path);
    }
    if (d) closedir(d);
    rmdir(dir);
    fm_world_close(world);
}

static void on_step(void *ctx, const fm_scf *s, const fm_scf_step *step)
{
    chem_result *r = ctx;
    (void)s;
    if (r->n_task < CHEM_TASKS) r->task[r->n_task].n_descent += !strcmp(step->method, "descent");
}

static void on_end(void *ctx, const fm_scf *s, const fm_props *p)
{
    chem_result *r = ctx;
    (void)p;
    if (r->n_task == CHEM_TASKS) return;
    snprintf(r->task[r->n_task].method, sizeof r->task[0].method, "%s", fm_scf_name(s));
    r->task[r->n_task].energy       = s->energy.total;
    r->task[r->n_task].electrons    = s->energy.electrons;
    r->task[r->n_task].gradient     = s->step.gradient;
    r->task[r->n_task].is_converged = s->is_converged;
    r->task[r->n_task].n_iteration  = s->step.iteration;
    r->n_task++;
}

static void run(chem_result *r, fm_deck *d, const char *path, int n_thread, int without_diis)
{
    fm_scf_times         times = {0};
    const fm_job_options o     = {.world        = world,
                                  .n_thread     = n_thread,
                                  .without_diis = without_diis,
                                  .path         = path,
                                  .dir          = dir,
                                  .on_step      = on_step,
                                  .on_end       = on_end,
                                  .ctx          = r};
    if (r->rc == FM_OK) r->rc = fm_job_check(d, &o);
    if (r->rc == FM_OK) r->rc = fm_job_run(d, &o, &times);
    if (r->rc != FM_OK) snprintf(r->why, sizeof r->why, "%s", fm_why());
    fm_deck_fini(d);
}

chem_result chem_run_file(const char *path, int n_thread)
{
    fm_deck     d = {0};
    chem_result r = {.rc = fm_deck_read(&d, path)};
    run(&r, &d, path, n_thread, 0);
    return r;
}

chem_result chem_run_text(const char *text, int n_thread)
{
    fm_deck     d = {0};
    chem_result r = {.rc = fm_deck_parse(&d, "deck", text, strlen(text))};
    run(&r, &d, "deck", n_thread, 0);
    return r;
}

chem_result chem_run_without_diis(const char *text)
{
    fm_deck     d = {0};
    chem_result r = {.rc = fm_deck_parse(&d, "deck", text, strlen(text))};
    run(&r, &d, "deck", 1, 1);
    return r;
}
