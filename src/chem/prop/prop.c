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
