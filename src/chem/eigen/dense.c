/* SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE
#include "chem/eigen/dense.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cblas.h>

#define MIB ((size_t)1 << 20)
enum { BUFFER_MIB = 129 }; /* OpenBLAS takes 128 and a page with its first call */

fm_status fm_dense_one_thread(void)
{
    static int has_buffer;
    if (has_buffer) return FM_OK;
    void *room =
        mmap(NULL, BUFFER_MIB * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        return fm_fail(FM_E_OOM, "OpenBLAS takes %d MiB of addresses, more than are left (ulimit -v)",
                       BUFFER_MIB);
    munmap(room, BUFFER_MIB * MIB);
    openblas_set_num_threads(1);
    has_buffer = 1;
    return FM_OK;
}

double *fm_dense_new(size_t count) { return calloc(count ? count : 1, sizeof(double)); }

void fm_dense_nn(double *C, const double *A, const double *B, int n, int m, int k)
{
    if (n == 0 || m == 0) return;
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, m, k, 1, A, k > 0 ? k : 1, B, m, 0, C,
                m);
}

void fm_dense_tn(double *C, const double *A, const double *B, int n, int m, int k)
{
    if (n == 0 || m == 0) return;
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, n, m, k, 1, A, n, B, m, 0, C, m);
}

void fm_dense_nt(double *C, const double *A, const double *B, int n, int m, int k)
{
    if (n == 0 || m == 0) return;
    const int ld = k > 0 ? k : 1;
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, m, k, 1, A, ld, B, ld, 0, C, m);
}

void fm_dense_congruence(double *out, const double *X, const double *A, int n, int m, double *work)
{
    fm_dense_nn(work, A, X, n, m, n);
    fm_dense_tn(out, X, work, m, m, n);
}

double fm_dense_dot(const double *a, const double *b, size_t n)
{
    return cblas_ddot((int)n, a, 1, b, 1);
}

double fm_dense_norm(const double *a, size_t n) { return sqrt(fm_dense_dot(a, a, n)); }

double fm_dense_largest(const double *a, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++) most = fmax(most, fabs(a[i]));
    return most;
}

void fm_dense_axpy(double *y, double f, const double *x, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] += f * x[i];
}

void fm_dense_symmetrise(double *A, int n)
{
    for (size_t i = 0; i < (size_t)n; i++)
        for (size_t j = 0; j < i; j++) {
            const double mean    = 0.5 * (A[i * (size_t)n + j] + A[j * (size_t)n + i]);
            A[i * (size_t)n + j] = A[j * (size_t)n + i] = mean;
        }
}

void fm_dense_columns(double *out, const double *A, int n, int m, int first, int count)
{
    for (int i = 0; i < n; i++)
        memcpy(out + (size_t)i * (size_t)count, A + (size_t)i * (size_t)m + first,
               (size_t)count * sizeof *out);
}
