/* SPDX-License-Identifier: Apache-2.0 */
/* Densities and Fock matrices are totally symmetric under the molecule's point group, as in
 * NWChem: an electron or hole in one of several degenerate orbitals is spread over all of
 * them (NO, O2+, Jahn-Teller cases), at a higher energy than without symmetry. */
#include <math.h>
#include <stdlib.h>

#include "chem/eigen/dense.h"
#include "chem/eigen/eigen.h"
#include "chem/scf_internal.h"

/* Elements of a density that move less keep the orbitals it is made of. */
static const double noise = 1e-9;
/* Natural orbitals with fewer electrons are left out. */
static const double empty = 1e-12;

fm_status fm__scf_open_symmetry(fm_scf *s)
{
    const fm_molecule *m = s->task->molecule;
    if (s->comm->rank != 0 || m->n_op < 2 || s->task->without_symmetry) return FM_OK;
    const fm_status rc = fm_images_create(&s->parts->images, m, s->task->basis);
    return rc == FM_E_ARG ? FM_OK : rc; /* coordinates that just met the tolerance */
}

/* room [n][m], [m][m], [m], [n][m]: D = sum occupation orbital orbital^T. */
static fm_status natural_orbitals(fm_scf *s, int i, const double *D, double *room)
{
    fm__scf_parts *p  = s->parts;
    const size_t   nm = (size_t)s->n * (size_t)s->m, mm = (size_t)s->m * (size_t)s->m;
    double        *SX = room, *A = SX + nm, *occupation = A + mm, *work = occupation + s->m;
    int            first = 0;
    fm_dense_nn(SX, s->S, s->X, s->n, s->m, s->n);
    fm_dense_congruence(A, SX, D, s->n, s->m, work);
    fm_dense_symmetrise(A, s->m);
    FM_TRY(fm_eigen_symmetric(occupation, A, s->m));
    while (first < s->m && occupation[first] < empty) first++;
    free(p->natural[i]);
    p->n_natural[i] = s->m - first;
    p->natural[i]   = fm_dense_new((size_t)s->n * (size_t)p->n_natural[i]);
    if (!p->natural[i]) return fm_fail(FM_E_OOM, "%d natural orbitals", p->n_natural[i]);
    fm_dense_nt(work, s->X, A, s->n, s->m, s->m);
    fm_dense_columns(p->natural[i], work, s->n, s->m, first, p->n_natural[i]);
    for (int k = 0; k < p->n_natural[i]; k++) {
        const double f = sqrt(occupation[first + k] / (s->n_spin == 1 ? 2 : 1));
        for (int r = 0; r < s->n; r++) p->natural[i][r * p->n_natural[i] + k] *= f;
    }
    return FM_OK;
}

fm_status fm__scf_average_density(fm_scf *s, int i)
{
    fm__scf_parts *p     = s->parts;
    double        *D     = s->D + (size_t)i * fm__nn(s);
    double         moved = 0;
    p->n_natural[i]      = 0;
    if (!p->images) return FM_OK;
    FM_TRY(fm_images_average_density(p->images, D, &moved));
    if (moved < noise) return FM_OK;
    double *room = fm_dense_new((size_t)s->m * (2 * (size_t)s->n + (size_t)s->m + 1));
    if (!room) return fm_fail(FM_E_OOM, "natural orbitals");
    const fm_status rc = natural_orbitals(s, i, D, room);
    free(room);
    return rc;
}

fm_status fm__scf_average_fock(fm_scf *s)
{
    double moved;
    for (int i = 0; i < s->n_spin && s->parts->images; i++)
        FM_TRY(fm_images_average_operator(s->parts->images, s->F + (size_t)i * fm__nn(s), &moved));
    return FM_OK;
}
