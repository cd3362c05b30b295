/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/eigen/eigen.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <lapacke.h>

#include "chem/eigen/dense.h"

/* A symmetric matrix is its own transpose: column-major LAPACK takes it as it is
 * and leaves eigenvector i in row i. */
fm_status fm_eigen_symmetric(double *eps, double *A, int n)
{
    if (n == 0) return FM_OK;
    const int info = LAPACKE_dsyevd(LAPACK_COL_MAJOR, 'V', 'U', n, A, n, eps);
    if (info == LAPACK_WORK_MEMORY_ERROR) return fm_fail(FM_E_OOM, "eigenvalues of %d rows", n);
    if (info != 0)
        return fm_fail(FM_E_NOCONV, "eigenvalues of a matrix of %d rows: LAPACK dsyevd gives %d", n,
                       info);
    return FM_OK;
}

static void scale_kept(double *X, const double *U, const double *eps, int n, int dropped)
{
    const int m = n - dropped;
    for (int j = 0; j < m; j++) {
        const double f = 1 / sqrt(eps[j + dropped]);
        for (int i = 0; i < n; i++)
            X[(size_t)i * (size_t)m + (size_t)j] =
                f * U[(size_t)(j + dropped) * (size_t)n + (size_t)i];
    }
}

fm_status fm_orthogonal(double *X, fm_orthogonal_info *info, const double *S, int n, double lindep)
{
    fm_status rc      = FM_OK;
    double   *U       = fm_dense_new((size_t)n * (size_t)n);
    double   *eps     = fm_dense_new((size_t)n);
    int       dropped = 0;
    if (!U || !eps) {
        rc = fm_fail(FM_E_OOM, "orthogonaliser of %d functions", n);
        goto out;
    }
    memcpy(U, S, (size_t)n * (size_t)n * sizeof *U);
    FM_GO(fm_eigen_symmetric(eps, U, n));
    while (dropped < n && eps[dropped] < lindep) dropped++;
    scale_kept(X, U, eps, n, dropped);
    *info = (fm_orthogonal_info){n - dropped, n ? eps[0] : 0};
out:
    free(U);
    free(eps);
    return rc;
}

fm_status fm_eigen(double *eps, double *C, const double *F, const double *X, int n, int m)
{
    fm_status rc   = FM_OK;
    double   *A    = fm_dense_new((size_t)m * (size_t)m);
    double   *work = fm_dense_new((size_t)n * (size_t)m);
    if (!A || !work) {
        rc = fm_fail(FM_E_OOM, "eigenproblem of %d functions", n);
        goto out;
    }
    fm_dense_congruence(A, X, F, n, m, work);
    fm_dense_symmetrise(A, m);
    FM_GO(fm_eigen_symmetric(eps, A, m));
    fm_dense_nt(C, X, A, n, m, m);
out:
    free(A);
    free(work);
    return rc;
}

/* C L^-T, with L L^T = C^T S C. */
fm_status fm_orthonormalise(double *C, const double *S, int n, int k)
{
    fm_status rc   = FM_OK;
    double   *G    = fm_dense_new((size_t)k * (size_t)k);
    double   *work = fm_dense_new((size_t)n * (size_t)k);
    if (k == 0) goto out;
    if (!G || !work) {
        rc = fm_fail(FM_E_OOM, "overlap of %d orbitals", k);
        goto out;
    }
    fm_dense_congruence(G, C, S, n, k, work);
    if (LAPACKE_dpotrf(LAPACK_ROW_MAJOR, 'L', k, G, k) != 0) {
        rc = fm_fail(FM_E_FORMAT, "the %d orbitals are linearly dependent in this basis", k);
        goto out;
    }
    LAPACKE_dtrtri(LAPACK_ROW_MAJOR, 'L', 'N', k, G, k);
    for (int i = 0; i < k; i++)
        for (int j = i + 1; j < k; j++) G[(size_t)i * (size_t)k + (size_t)j] = 0;
    fm_dense_nt(work, C, G, n, k, k);
    memcpy(C, work, (size_t)n * (size_t)k * sizeof *C);
out:
    free(G);
    free(work);
    return rc;
}
