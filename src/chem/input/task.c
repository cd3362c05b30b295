/* SPDX-License-Identifier: Apache-2.0 */
/* task scf|dft [energy] [ignore]: what the deck has said so far becomes a job. */
#include <math.h>
#include <string.h>

#include "chem/input/state.h"

enum { TASK_MAX = 10000 };

static fm_status read_theory(fm__words *w, fm_deck_task *t)
{
    const char *word;
    FM_TRY(fm__need_word(w, &word, "a theory"));
    if (fm__same(word, "scf"))
        t->theory = FM_THEORY_SCF;
    else if (fm__same(word, "dft"))
        t->theory = FM_THEORY_DFT;
    else
        return fm__bad(w, "task \"%s\" is not supported (scf, dft)", word);
    return FM_OK;
}

static fm_status read_operation(fm__words *w, fm_deck_task *t)
{
    const char *word = fm__peek(w);
    if (word && !fm__take(w, "energy") && !fm__same(word, "ignore")) {
        fm__next(w);
        return fm__bad(w, "task %s \"%s\" is not supported (energy)",
                       t->theory == FM_THEORY_SCF ? "scf" : "dft", word);
    }
    t->goes_on = fm__take(w, "ignore");
    return fm__need_end(w);
}

static void take_method(fm_deck_task *t, const fm__method *m)
{
    t->is_direct        = m->is_direct;
    t->cache_bytes      = m->cache_bytes;
    t->vectors_from     = m->vectors_from;
    t->quiet            = m->quiet;
    t->without_symmetry = m->without_symmetry;
    t->vectors_out_line = m->vectors_out_line;
    memcpy(t->vectors_in, m->vectors_in, sizeof t->vectors_in);
    memcpy(t->vectors_out, m->vectors_out, sizeof t->vectors_out);
}

/* Electrons of each spin for n_open more alphas than betas. */
static fm_status set_spins(const fm__words *w, fm_deck_task *t, int n_open)
{
    const int n = fm_molecule_electrons(t->molecule);
    if (n < 1) return fm__bad(w, "charge %d leaves no electrons", t->molecule->charge);
    if (n_open > n || (n - n_open) % 2)
        return fm__bad(w, "%d electrons cannot have multiplicity %d", n, n_open + 1);
    t->n_beta  = (n - n_open) / 2;
    t->n_alpha = t->n_beta + n_open;
    if (t->n_alpha > t->basis->n_function)
        return fm__bad(w, "%d electrons of one spin do not fit into %d basis functions", t->n_alpha,
                       t->basis->n_function);
    return FM_OK;
}

static fm_status take_scf(const fm__state *s, fm_deck_task *t)
{
    const fm__scf *c = &s->scf;
    take_method(t, &c->method);
    t->thresh         = c->thresh;
    t->tol2e          = c->tol2e > 0 ? c->tol2e : fmin(1e-7, c->thresh * 1e-2);
    t->max_iterations = c->max_iterations;
    t->spin           = c->is_uhf   ? FM_SPIN_UNRESTRICTED
                        : c->n_open ? FM_SPIN_RESTRICTED_OPEN
                                    : FM_SPIN_RESTRICTED;
    return set_spins(&s->words, t, c->n_open);
}

/* NWChem's radial cutoffs keep the accuracy of a deck's first dft task, whatever grids later
 * ones name. */
static void keep_first_level(fm__dft *d)
{
    if (!d->has_first_level) d->first_level = d->level;
    d->has_first_level = 1;
}

/* NWChem's dft leaves its kind of orbitals to scf tasks that do not name theirs. */
static fm_status take_dft(fm__state *s, fm_deck_task *t)
{
    const fm__dft *d = &s->dft;
    take_method(t, &d->method);
    t->tol_energy     = d->tol_energy;
    t->tol_density    = d->tol_density;
    t->tol_gradient   = d->tol_gradient;
    t->tol2e          = pow(10, -d->acc_coul);
    t->max_iterations = d->max_iterations;
    t->level_shift    = d->level_shift;
    t->spin       = d->multiplicity > 1 || d->is_odft ? FM_SPIN_UNRESTRICTED : FM_SPIN_RESTRICTED;
    s->scf.is_uhf = t->spin == FM_SPIN_UNRESTRICTED;
    keep_first_level(&s->dft);
    t->xc = (fm_xc_options){.mix              = d->mix,
                            .level            = d->level,
                            .cutoff_level     = d->first_level,
                            .has_cutoff_level = 1,
                            .tol_rho          = d->tol_rho,
                            .tol_ao           = fmax(d->acc_ao, nearbyint(-log(d->tol_energy))),
                            .is_polarised     = t->spin == FM_SPIN_UNRESTRICTED,
                            .without_images   = d->method.without_symmetry};
    return set_spins(&s->words, t, d->multiplicity - 1);
}

fm_status fm__read_task(fm__state *s)
{
    fm__words   *w = &s->words;
    fm_deck_task t = {.line = fm__line(w), .lindep = s->lindep};
    FM_TRY(read_theory(w, &t));
    FM_TRY(read_operation(w, &t));
    if (s->deck->n_task == TASK_MAX) return fm__bad(w, "more than %d tasks", TASK_MAX);
    memcpy(t.title, s->title, sizeof t.title);

    const fm__model *model;
    FM_TRY(fm__take_model(s, &model));
    t.molecule = &model->molecule;
    t.basis    = &model->basis;
    FM_TRY(t.theory == FM_THEORY_SCF ? take_scf(s, &t) : take_dft(s, &t));
    s->deck->task                    = fm__grow(s->deck->task, s->deck->n_task, sizeof t);
    s->deck->task[s->deck->n_task++] = t;
    return FM_OK;
}
