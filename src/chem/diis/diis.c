/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/diis/diis.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <lapacke.h>

#include "chem/eigen/dense.h"

enum { MAX_DEPTH = 20 };

struct fm_diis {
    int     depth, n; /* room; matrices held, oldest first */
    size_t  n_fock, n_residual;
    double *F[MAX_DEPTH], *R[MAX_DEPTH];
    double  B[MAX_DEPTH][MAX_DEPTH]; /* R_i . R_j */
};

fm_status fm_diis_create(fm_diis **out, int depth, size_t n_fock, size_t n_residual)
{
    FM_BUG_UNLESS(depth > 0 && depth <= MAX_DEPTH);
    fm_diis *d = calloc(1, sizeof *d);
    if (!d) return fm_fail(FM_E_OOM, "DIIS");
    d->depth = depth, d->n_fock = n_fock, d->n_residual = n_residual;
    for (int i = 0; i < depth; i++) {
        d->F[i] = fm_dense_new(n_fock);
        d->R[i] = fm_dense_new(n_residual);
        if (d->F[i] && d->R[i]) continue;
        fm_diis_destroy(d);
        return fm_fail(FM_E_OOM, "DIIS: %d matrices of %zu numbers", depth, n_fock);
    }
    *out = d;
    return FM_OK;
}

void fm_diis_destroy(fm_diis *d)
{
    if (!d) return;
    for (int i = 0; i < d->depth; i++) {
        free(d->F[i]);
        free(d->R[i]);
    }
    free(d);
}

void fm_diis_clear(fm_diis *d) { d->n = 0; }

static void drop_oldest(fm_diis *d)
{
    double *F = d->F[0], *R = d->R[0];
    for (int i = 1; i < d->n; i++) {
        d->F[i - 1] = d->F[i];
        d->R[i - 1] = d->R[i];
        for (int j = 1; j < d->n; j++) d->B[i - 1][j - 1] = d->B[i][j];
    }
    d->n--;
    d->F[d->n] = F;
    d->R[d->n] = R;
}

static void remember(fm_diis *d, const double *F, const double *R)
{
    if (d->n == d->depth) drop_oldest(d);
    const int k = d->n++;
    memcpy(d->F[k], F, d->n_fock * sizeof *F);
    memcpy(d->R[k], R, d->n_residual * sizeof *R);
    for (int i = 0; i <= k; i++) d->B[i][k] = d->B[k][i] = fm_dense_dot(d->R[i], R, d->n_residual);
}

/* Minimise c^T B c with sum c = 1.  B is scaled by its diagonal first: residuals
 * shrink by many orders within one run.  0: the equations are singular. */
static int solve(const fm_diis *d, double *c)
{
    const int n = d->n, ld                                           = n + 1;
    double    A[(MAX_DEPTH + 1) * (MAX_DEPTH + 1)], b[MAX_DEPTH + 1] = {0}, scale[MAX_DEPTH];
    double    rcond = 0;
    int       pivot[MAX_DEPTH + 1];
    for (int i = 0; i < n; i++) {
        if (!(d->B[i][i] > 0)) return 0;
        scale[i] = 1 / sqrt(d->B[i][i]);
    }
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) A[i * ld + j] = d->B[i][j] * scale[i] * scale[j];
        A[i * ld + n] = A[n * ld + i] = scale[i] / scale[n - 1];
    }
    A[n * ld + n]     = 0;
    b[n]              = 1;
    const double norm = LAPACKE_dlange(LAPACK_ROW_MAJOR, '1', ld, ld, A, ld);
    if (LAPACKE_dgetrf(LAPACK_ROW_MAJOR, ld, ld, A, ld, pivot) != 0) return 0;
    LAPACKE_dgecon(LAPACK_ROW_MAJOR, '1', ld, A, ld, norm, &rcond);
    if (rcond < 1e-14) return 0;
    LAPACKE_dgetrs(LAPACK_ROW_MAJOR, 'N', ld, 1, A, ld, pivot, b, 1);
    double sum = 0;
    for (int i = 0; i < n; i++) sum += c[i] = b[i] * scale[i];
    for (int i = 0; i < n; i++) c[i] /= sum;
    return isfinite(sum) && sum != 0;
}

void fm_diis_mix(fm_diis *d, double *F, const double *R)
{
    double c[MAX_DEPTH];
    remember(d, F, R);
    while (d->n > 1 && !solve(d, c)) drop_oldest(d);
    if (d->n == 1) return;
    memset(F, 0, d->n_fock * sizeof *F);
    for (int i = 0; i < d->n; i++) fm_dense_axpy(F, c[i], d->F[i], d->n_fock);
}
