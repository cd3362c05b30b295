/* SPDX-License-Identifier: Apache-2.0 */
/* Products of dense matrices over BLAS.  Everything is row-major and packed;
 * a name A[n][m] says its shape.  BLAS runs on one thread here, so the bits do
 * not depend on how many threads a rank has. */
#ifndef FM_CHEM_EIGEN_DENSE_H
#define FM_CHEM_EIGEN_DENSE_H

#include <stddef.h>

#include "base/status.h"

/* To be called first: from here on every BLAS and LAPACK call uses one thread.  FM_E_OOM: `ulimit -v`
 * has no room for OpenBLAS's buffer, for which its calls would wait without end. */
fm_status fm_dense_one_thread(void);

double *fm_dense_new(size_t count); /* zeroed, freed with free(); NULL: out of memory */

/* C[n][m] = A[n][k] B[k][m];  with A or B transposed: tn: A[k][n], nt: B[m][k]. */
void fm_dense_nn(double *C, const double *A, const double *B, int n, int m, int k);
void fm_dense_tn(double *C, const double *A, const double *B, int n, int m, int k);
void fm_dense_nt(double *C, const double *A, const double *B, int n, int m, int k);

/* out[m][m] = X^T A X, with X[n][m], A[n][n]; work[n][m]. */
void fm_dense_congruence(double *out, const double *X, const double *A, int n, int m, double *work);

double fm_dense_dot(const double *a, const double *b, size_t n); /* tr(A B) of symmetric ones */
double fm_dense_norm(const double *a, size_t n);
double fm_dense_largest(const double *a, size_t n); /* max |a_i| */

void fm_dense_axpy(double *y, double f, const double *x, size_t n); /* y += f x */
void fm_dense_symmetrise(double *A, int n);                         /* A = (A + A^T) / 2 */

/* out[n][count]: columns first .. first+count-1 of A[n][m]. */
void fm_dense_columns(double *out, const double *A, int n, int m, int first, int count);

#endif
