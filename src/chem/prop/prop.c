/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/prop/prop.h"

#include <stdlib.h>

#include "chem/eigen/dense.h"
#include "chem/integral/one_electron.h"

fm_status fm_prop_dipole(double mu[3], const double *D, const fm_basis *b, const fm_molecule *m)
{
    const size_t nn = (size_t)b->n_function * (size_t)b->n_function;
    double      *X  = fm_dense_new(3 * nn);
    if (!X) return fm_fail(FM_E_OOM, "dipole integrals of %d functions", b->n_function);
    fm_dipole(X, X + nn, X + 2 * nn, b);
    fm_molecule_dipole(m, mu);
    for (int k = 0; k < 3; k++) mu[k] -= fm_dense_dot(D, X + (size_t)k * nn, nn);
    free(X);
    return FM_OK;
}

void fm_prop_mulliken(double *population, double *by_shell, const double *D, const double *S,
                      const fm_basis *b, int n_atom)
{
    const size_t n = (size_t)b->n_function;
    for (int a = 0; a < n_atom; a++) population[a] = 0;
    for (int s = 0; s < b->n_shell; s++) {
        const fm_shell *sh    = &b->shell[s];
        const size_t    first = (size_t)sh->first, count = (size_t)fm_shell_functions(sh);
        const double    here = fm_dense_dot(D + first * n, S + first * n, count * n);
        population[sh->atom] += here;
        if (by_shell) by_shell[s] = here;
    }
}

/* <S^2> = Sz (Sz + 1) + n_beta - tr(Da S Db S). */
fm_status fm_prop_s2(double *s2, const double *Da, const double *Db, const double *S, int n,
                     int n_alpha, int n_beta)
{
    const size_t nn   = (size_t)n * (size_t)n;
    double      *work = fm_dense_new(2 * nn);
    if (!work) return fm_fail(FM_E_OOM, "<S^2>");
    const double sz = 0.5 * (n_alpha - n_beta);
    fm_dense_nn(work, S, Da, n, n, n);
    fm_dense_nn(work + nn, work, S, n, n, n); /* S Da S, symmetric */
    *s2 = sz * (sz + 1) + n_beta - fm_dense_dot(work + nn, Db, nn);
    free(work);
    return FM_OK;
}

static fm_status find_all(fm_props *p, const double *D, const double *total, const double *S,
                          const fm_basis *b, const fm_molecule *m)
{
    fm_prop_mulliken(p->population, p->by_shell, total, S, b, m->n_atom);
    if (D != total) { /* alpha twice less the total */
        fm_prop_mulliken(p->spin, NULL, D, S, b, m->n_atom);
        for (int a = 0; a < m->n_atom; a++) p->spin[a] = 2 * p->spin[a] - p->population[a];
    }
    return fm_prop_dipole(p->dipole, total, b, m);
}

fm_status fm_props_find(fm_props *out, const double *D, int n_spin, const int n_electron[2],
                        const double *S, const fm_basis *b, const fm_molecule *m)
{
    const size_t nn = (size_t)b->n_function * (size_t)b->n_function, atoms = (size_t)m->n_atom;
    double      *block = fm_dense_new(2 * atoms + (size_t)b->n_shell);
    double      *total = n_spin == 2 ? fm_dense_new(nn) : NULL;
    const double sz    = 0.5 * (n_electron[0] - n_electron[1]);
    fm_props     p     = {.population = block,
                          .spin       = block + atoms,
                          .by_shell   = block + 2 * atoms,
                          .s2         = sz * (sz + 1),
                          .s2_exact   = sz * (sz + 1)};
    fm_status    rc    = block && (total || n_spin == 1) ? FM_OK : fm_fail(FM_E_OOM, "properties");
    if (rc == FM_OK && n_spin == 2) {
        fm_dense_axpy(total, 1, D, nn);
        fm_dense_axpy(total, 1, D + nn, nn);
        rc = fm_prop_s2(&p.s2, D, D + nn, S, b->n_function, n_electron[0], n_electron[1]);
    }
    if (rc == FM_OK) rc = find_all(&p, D, total ? total : D, S, b, m);
    free(total);
    if (rc == FM_OK)
        *out = p;
    else
        free(block);
    return rc;
}

void fm_props_fini(fm_props *p)
{
    free(p->population); /* the block */
    *p = (fm_props){0};
}
