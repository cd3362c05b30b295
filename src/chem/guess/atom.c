/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/guess/atom.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chem/diis/diis.h"
#include "chem/eigen/dense.h"
#include "chem/eigen/eigen.h"
#include "chem/fock/fock.h"
#include "chem/guess/guess.h"
#include "chem/integral/one_electron.h"

enum { MAX_CYCLE = 40 };

static const double lindep = 1e-6, tol_integral = 1e-10, tol_residual = 1e-5;

typedef struct {
    const fm_basis *b;
    int             n, m, n_column;
    int             electrons[4];                            /* by l */
    double         *S, *H, *X, *D, *F, *J, *K, *R, *C, *eps; /* one block */
    double         *W, *V;                                   /* work [n][n] each */
    double         *column;
    fm_diis        *diis;
    fm_fock        *fock;
    double          energy;
} atom;

static fm_status allocate(atom *a, const fm_molecule *mol)
{
    const size_t n = (size_t)a->n, nn = n * n;
    double      *p = fm_dense_new(11 * nn + n);
    if (!p) return fm_fail(FM_E_OOM, "atomic guess of %d functions", a->n);
    double **part[] = {&a->S, &a->H, &a->X, &a->D, &a->F, &a->J, &a->K, &a->R, &a->C, &a->W, &a->V};
    for (unsigned i = 0; i < sizeof part / sizeof *part; i++, p += nn) *part[i] = p;
    a->eps = p;
    fm_overlap(a->S, a->b);
    fm_kinetic(a->H, a->b);
    fm_attraction(a->W, a->b, mol);
    fm_dense_axpy(a->H, 1, a->W, nn);
    return FM_OK;
}

/* The l of orbital i: that of the shells which hold most of its population. */
static int orbital_l(const atom *a, int i)
{
    double share[FM_L_MAX + 1] = {0};
    int    best                = 0;
    for (int s = 0; s < a->b->n_shell; s++) {
        const fm_shell *sh = &a->b->shell[s];
        for (int f = sh->first; f < sh->first + fm_shell_functions(sh); f++) {
            double overlap = 0;
            for (int g = 0; g < a->n; g++)
                overlap += a->S[(size_t)f * (size_t)a->n + (size_t)g] *
                           a->C[(size_t)g * (size_t)a->m + (size_t)i];
            share[sh->l] += a->C[(size_t)f * (size_t)a->m + (size_t)i] * overlap;
        }
    }
    for (int l = 1; l <= FM_L_MAX; l++)
        if (share[l] > share[best]) best = l;
    return best;
}

/* Lowest orbitals of each l first, the last shell of an l evenly. */
static void occupy(atom *a)
{
    int left[4], n = 0;
    memcpy(left, a->electrons, sizeof left);
    int    in_shell[4] = {0}; /* orbitals of the shell being filled that are still to come */
    double share[4]    = {0};
    for (int i = 0; i < a->m; i++) {
        const int l = orbital_l(a, i);
        if (l > 3) continue;
        if (in_shell[l] == 0) {
            const int room = 2 * (2 * l + 1), here = left[l] < room ? left[l] : room;
            if (here == 0) continue;
            left[l] -= here;
            in_shell[l] = 2 * l + 1;
            share[l]    = (double)here / room;
        }
        in_shell[l]--;
        for (int f = 0; f < a->n; f++)
            a->column[(size_t)f * (size_t)a->n_column + (size_t)n] =
                sqrt(share[l]) * a->C[(size_t)f * (size_t)a->m + (size_t)i];
        if (++n == a->n_column) return;
    }
    for (; n < a->n_column; n++) /* a basis too small for the atom */
        for (int f = 0; f < a->n; f++) a->column[(size_t)f * (size_t)a->n_column + (size_t)n] = 0;
}

static void density(atom *a)
{
    const size_t nn = (size_t)a->n * (size_t)a->n;
    occupy(a);
    fm_dense_nt(a->D, a->column, a->column, a->n, a->n, a->n_column);
    for (size_t i = 0; i < nn; i++) a->D[i] *= 2;
}

/* F = H + J - K/2, its energy and the residual X^T (FDS - SDF) X in R. */
static fm_status build(atom *a, double *residual)
{
    const size_t  nn = (size_t)a->n * (size_t)a->n;
    const double *D  = a->D;
    FM_TRY(fm_fock_build(a->fock, 1, &D, &a->J, &a->K, tol_integral));
    memcpy(a->F, a->H, nn * sizeof *a->F);
    fm_dense_axpy(a->F, 1, a->J, nn);
    fm_dense_axpy(a->F, -0.5, a->K, nn);
    a->energy = 0.5 * (fm_dense_dot(a->D, a->H, nn) + fm_dense_dot(a->D, a->F, nn));
    fm_dense_nn(a->W, a->F, a->D, a->n, a->n, a->n);
    fm_dense_nn(a->V, a->W, a->S, a->n, a->n, a->n);
    for (int i = 0; i < a->n; i++)
        for (int j = 0; j < a->n; j++) a->W[i * a->n + j] = a->V[i * a->n + j] - a->V[j * a->n + i];
    fm_dense_congruence(a->R, a->X, a->W, a->n, a->m, a->V);
    *residual = fm_dense_norm(a->R, (size_t)a->m * (size_t)a->m);
    return FM_OK;
}

static fm_status iterate(atom *a)
{
    FM_TRY(fm_eigen(a->eps, a->C, a->H, a->X, a->n, a->m));
    for (int cycle = 0; cycle < MAX_CYCLE; cycle++) {
        double residual = 0;
        density(a);
        FM_TRY(build(a, &residual));
        if (residual < tol_residual) return FM_OK;
        fm_diis_mix(a->diis, a->F, a->R);
        FM_TRY(fm_eigen(a->eps, a->C, a->F, a->X, a->n, a->m));
    }
    return FM_OK;
}

static int count_columns(const int electrons[4])
{
    int n = 0;
    for (int l = 0; l < 4; l++) {
        const int room = 2 * (2 * l + 1);
        n += (electrons[l] + room - 1) / room * (2 * l + 1);
    }
    return n;
}

static fm_status solve(atom *a, const fm_molecule *mol)
{
    fm_comm               self = fm_comm_self();
    fm_orthogonal_info    info;
    const fm_fock_options opt = {.n_thread = 1, .tol = tol_integral};
    FM_TRY(allocate(a, mol));
    FM_TRY(fm_orthogonal(a->X, &info, a->S, a->n, lindep));
    a->m      = info.n_kept;
    a->column = fm_dense_new((size_t)a->n * (size_t)a->n_column);
    if (!a->column) return fm_fail(FM_E_OOM, "atomic guess");
    FM_TRY(fm_diis_create(&a->diis, 8, (size_t)a->n * (size_t)a->n, (size_t)a->m * (size_t)a->m));
    FM_TRY(fm_fock_open(&a->fock, a->b, &opt, &self));
    return iterate(a);
}

fm_status fm__atom_solve(fm__atom *out, const fm_molecule *m, const fm_basis *b)
{
    atom a = {.b = b, .n = b->n_function};
    fm_guess_configuration(m->atom[0].z, a.electrons);
    a.n_column   = count_columns(a.electrons);
    fm_status rc = FM_OK;
    if (a.n > 0 && a.n_column > 0)
        rc = solve(&a, m);
    else
        a.n_column = 0;
    if (rc == FM_OK) {
        *out     = (fm__atom){a.n, a.n_column, a.column, a.energy};
        a.column = NULL;
    }
    fm_fock_close(a.fock);
    fm_diis_destroy(a.diis);
    free(a.column);
    free(a.S);
    return rc;
}

void fm__atom_fini(fm__atom *a)
{
    free(a->column);
    *a = (fm__atom){0};
}
