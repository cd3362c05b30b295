/* SPDX-License-Identifier: Apache-2.0 */
/* The generalised eigenproblem of SCF, F C = S C eps, over LAPACK.
 *
 *     S ─fm_orthogonal─> X, X^T S X = 1        F ─fm_eigen─> eps ascending, C = X U
 *
 * Errors: FM_E_OOM, or FM_E_NOCONV where LAPACK gives up. */
#ifndef FM_CHEM_EIGEN_EIGEN_H
#define FM_CHEM_EIGEN_EIGEN_H

#include "base/status.h"

typedef struct {
    int    n_kept;   /* columns of X */
    double smallest; /* eigenvalue of S, kept or not */
} fm_orthogonal_info;

/* Canonical orthogonalisation.  X has room for [n][n] and is written [n][n_kept]:
 * eigenvectors of S below `lindep` are left out. */
fm_status fm_orthogonal(double *X, fm_orthogonal_info *info, const double *S, int n, double lindep);

/* eps[m] ascending, C[n][m]; F[n][n] symmetric, X[n][m]. */
fm_status fm_eigen(double *eps, double *C, const double *F, const double *X, int n, int m);

/* A[n][n] symmetric: overwritten by its eigenvectors, one a row; eps ascending. */
fm_status fm_eigen_symmetric(double *eps, double *A, int n);

/* C[n][k]: orthonormal columns in the metric S that span what C spans.
 * FM_E_FORMAT: they are linearly dependent. */
fm_status fm_orthonormalise(double *C, const double *S, int n, int k);

#endif
