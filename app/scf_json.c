/* SPDX-License-Identifier: Apache-2.0 */
/* The result of `fathom scf` as JSON: energies in hartree, times in seconds. */
#include "scf.h"

#include "base/cpu.h"
#include "chem/report/report.h"
#include "fathom/fathom.h"

json_t *fm_scf_json_job(const char *deck, int n_rank, int n_thread)
{
    json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:[]}", "program", "fathom", "version",
                          FM_VERSION, "deck", deck, "isa", fm_isa_name(fm_cpu_isa()), "ranks",
                          n_rank, "threads", n_thread, "tasks");
    FM_BUG_UNLESS(o != NULL);
    return o;
}

static void set(json_t *to, const char *key, double x)
{
    json_object_set_new(to, key, json_real(x));
}

static void count(json_t *to, const char *key, long long n)
{
    json_object_set_new(to, key, json_integer(n));
}

static json_t *numbers(const double *x, int n)
{
    json_t *a = json_array();
    for (int i = 0; i < n; i++) json_array_append_new(a, json_real(x[i]));
    return a;
}

static json_t *energies(const fm_scf *s)
{
    json_t *e = json_object();
    set(e, "total", s->energy.total);
    set(e, "nuclear_repulsion", s->energy.repulsion);
    set(e, "one_electron", s->energy.one_electron);
    set(e, "two_electron", s->energy.two_electron);
    set(e, "coulomb", s->energy.coulomb);
    set(e, "exchange_correlation", s->energy.exchange_correlation);
    return e;
}

static json_t *charges(const fm_scf *s, const fm_props *p)
{
    json_t *a = json_array();
    for (int i = 0; i < s->task->molecule->n_atom; i++)
        json_array_append_new(a, json_real(s->task->molecule->atom[i].charge - p->population[i]));
    return a;
}

static json_t *orbitals(const fm_scf *s)
{
    json_t *a = json_array();
    for (int i = 0; i < s->n_set; i++) {
        const int n = s->n_occ[i];
        json_t   *o = json_object();
        count(o, "occupied", n);
        if (n > 0) set(o, "homo", s->eps[i][n - 1]);
        if (n < s->m) set(o, "lumo", s->eps[i][n]);
        json_object_set_new(o, "energies", numbers(s->eps[i], s->m));
        json_array_append_new(a, o);
    }
    return a;
}

static json_t *task_times(const fm_scf_times *t)
{
    json_t *o = json_object();
    set(o, "total", t->total);
    set(o, "guess", t->guess);
    set(o, "one_electron", t->one_electron);
    set(o, "fock", t->fock);
    set(o, "xc", t->xc);
    set(o, "mix", t->mix);
    set(o, "eigen", t->eigen);
    set(o, "vectors", t->vectors);
    count(o, "fock_builds", t->n_fock);
    count(o, "full_fock_builds", t->n_full);
    count(o, "quartets", t->n_quartet);
    return o;
}

static void add_props(json_t *o, const fm_scf *s, const fm_props *p)
{
    json_object_set_new(o, "dipole_au", numbers(p->dipole, 3));
    json_object_set_new(o, "mulliken_charges", charges(s, p));
    if (s->n_spin == 2) {
        json_object_set_new(o, "mulliken_spins", numbers(p->spin, s->task->molecule->n_atom));
        set(o, "s2", p->s2);
    }
}

/* The task that on_step has begun is the last of the list. */
void fm_scf_json_task(json_t *job, const fm_scf *s, const fm_props *p)
{
    json_t *tasks = json_object_get(job, "tasks");
    json_t *o     = json_array_get(tasks, json_array_size(tasks) - 1);
    json_object_set_new(o, "theory", json_string(s->is_dft ? "dft" : "scf"));
    json_object_set_new(o, "method", json_string(fm_scf_name(s)));
    count(o, "line", s->task->line);
    json_object_set_new(o, "converged", json_boolean(s->is_converged));
    set(o, "energy", s->energy.total);
    count(o, "n_iteration", s->step.iteration);
    count(o, "atoms", s->task->molecule->n_atom);
    count(o, "functions", s->n);
    count(o, "orbitals", s->m);
    count(o, "alpha", s->n_occ[0]);
    count(o, "beta", s->n_occ[1]);
    json_object_set_new(o, "energies", energies(s));
    if (s->is_dft) {
        set(o, "electrons_integrated", s->energy.electrons);
        count(o, "grid_points", s->n_grid_point);
    }
    add_props(o, s, p);
    json_object_set_new(o, "orbital_sets", orbitals(s));
    json_object_set_new(o, "seconds", task_times(&s->times));
}

void fm_scf_json_step(json_t *steps, const fm_scf_step *step)
{
    json_t *o = json_object();
    count(o, "iteration", step->iteration);
    set(o, "energy", step->energy);
    set(o, "change", step->change);
    set(o, "gradient", step->gradient);
    set(o, "rms_density", step->rms_density);
    set(o, "seconds", step->seconds);
    json_object_set_new(o, "method", json_string(step->method));
    json_array_append_new(steps, o);
}

void fm_scf_json_times(json_t *job, const fm_scf_times *of_rank, int n_rank, fm_world *w)
{
    json_t *a = json_array();
    for (int i = 0; i < n_rank; i++) {
        json_t *o = json_object();
        json_object_set_new(o, "host", json_string(fm_world_host(w, i)));
        set(o, "fock_busy", of_rank[i].fock_busy);
        set(o, "fock_wait", of_rank[i].fock_wait);
        set(o, "step_wait", of_rank[i].comm_wait);
        set(o, "total", of_rank[i].total);
        json_array_append_new(a, o);
    }
    json_object_set_new(job, "rank_seconds", a);
    set(job, "fock_imbalance", fm_report_imbalance(of_rank, n_rank));
}
