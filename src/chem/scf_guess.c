/* SPDX-License-Identifier: Apache-2.0 */
/* Where the iterations begin: superposed atoms, the eigenvectors of H, or a
 * vectors file.  Rank 0 makes the columns of the density, the others get them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "chem/eigen/dense.h"
#include "chem/eigen/eigen.h"
#include "chem/guess/guess.h"
#include "chem/scf_internal.h"

/* Electrons of column set i: both spins share a restricted set. */
static int electrons(const fm_scf *s, int i)
{
    return s->n_spin == 1 ? s->n_occ[0] + s->n_occ[1] : s->n_occ[i];
}

static fm_status new_columns(fm_scf *s, int i, int n_column)
{
    fm__scf_parts *p = s->parts;
    free(p->column[i]);
    p->n_column[i] = n_column;
    p->column[i]   = fm_dense_new((size_t)s->n * (size_t)n_column);
    return p->column[i] ? FM_OK : fm_fail(FM_E_OOM, "%d orbitals", n_column);
}

/* The atoms' electrons are scaled to the molecule's number: an ion has more or
 * fewer, and each spin its own. */
static fm_status from_atoms(fm_scf *s)
{
    fm_guess g = {0};
    FM_TRY(fm_guess_atomic(&g, s->task->molecule, s->task->basis));
    fm_status rc    = FM_OK;
    s->atoms_energy = g.atoms_energy;
    for (int i = 0; i < s->n_spin && rc == FM_OK; i++) {
        if ((rc = new_columns(s, i, g.n_column)) != FM_OK) break;
        const double each  = s->n_spin == 1 ? 1 : 2; /* D of one spin is c c^T, not 2 c c^T */
        const double scale = g.electrons > 0 ? sqrt(each * electrons(s, i) / g.electrons) : 0;
        for (size_t k = 0; k < (size_t)s->n * (size_t)g.n_column; k++)
            s->parts->column[i][k] = scale * g.column[k];
    }
    fm_guess_fini(&g);
    return rc;
}

static fm_status first_columns(fm_scf *s)
{
    for (int i = 0; i < s->n_spin; i++) {
        const double *C = s->C[i < s->n_set ? i : 0];
        FM_TRY(new_columns(s, i, s->n_occ[i]));
        fm_dense_columns(s->parts->column[i], C, s->n, s->m, 0, s->n_occ[i]);
    }
    return FM_OK;
}

static fm_status from_core(fm_scf *s)
{
    for (int i = 0; i < s->n_set; i++) FM_TRY(fm_eigen(s->eps[i], s->C[i], s->H, s->X, s->n, s->m));
    return first_columns(s);
}

/* The occupied orbitals of the file, orthonormal in this geometry's overlap. */
static fm_status from_vectors(fm_scf *s, const fm_vectors *v)
{
    for (int i = 0; i < s->n_spin; i++) {
        if (s->n_occ[i] > v->n_orbital)
            return fm_fail(FM_E_FORMAT, "%s: %d orbitals, this task occupies %d", s->opt.vectors_in,
                           v->n_orbital, s->n_occ[i]);
        const int set = s->n_set == 2 && i < v->n_set ? i : 0; /* ROHF: alpha orbitals for both */
        FM_TRY(new_columns(s, i, s->n_occ[i]));
        fm_dense_columns(s->parts->column[i], v->C[set], s->n, v->n_orbital, 0, s->n_occ[i]);
        FM_TRY(fm_orthonormalise(s->parts->column[i], s->S, s->n, s->n_occ[i]));
    }
    return FM_OK;
}

static fm_status from_file(fm_scf *s)
{
    fm_vectors v = {0};
    FM_TRY(fm_vectors_read(&v, s->opt.vectors_in, s->task->basis));
    const fm_status rc = from_vectors(s, &v);
    fm_vectors_fini(&v);
    return rc;
}

static fm_status make(fm_scf *s)
{
    fm_status rc = FM_OK;
    switch (s->opt.vectors_from) {
    case FM_VECTORS_USUAL:
    case FM_VECTORS_ATOMIC: rc = from_atoms(s); break;
    case FM_VECTORS_CORE: rc = from_core(s); break;
    case FM_VECTORS_FILE: rc = from_file(s); break;
    }
    for (int i = 0; i < s->n_spin && rc == FM_OK; i++) {
        fm__scf_density_of(s, s->D + (size_t)i * fm__nn(s), s->parts->column[i],
                           s->parts->n_column[i]);
        rc = fm__scf_average_density(s, i);
    }
    return rc;
}

fm_status fm__scf_guess(fm_scf *s)
{
    const double began = fm_now();
    fm_world_doing(s->opt.world, "%s: guess", fm_scf_name(s));
    FM_TRY(fm__scf_share(s, s->comm->rank == 0 ? make(s) : FM_OK));
    s->times.guess = fm_now() - began;
    if (s->opt.on_start) s->opt.on_start(s->opt.ctx, s);
    return FM_OK;
}
