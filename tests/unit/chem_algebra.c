/* SPDX-License-Identifier: Apache-2.0 */
/* Orthogonaliser, eigenproblem and DIIS on matrices whose answers are known. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "chem/diis/diis.h"
#include "chem/eigen/dense.h"
#include "chem/eigen/eigen.h"

enum { N = 37 };

static double S[N * N], F[N * N], X[N * N], C[N * N], A[N * N], B[N * N], work[N * N], eps[N];

static double draw(uint64_t key, uint64_t i) { return (double)fm_rng_u32(key, i) / 0x1p31 - 1; }

/* Symmetric F; positive definite S with a last function that nearly repeats the first. */
static void fresh(double nearness)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j <= i; j++) {
            F[i * N + j] = F[j * N + i] = draw(1, (uint64_t)(i * N + j));
            A[i * N + j] = A[j * N + i] = i == j ? 1 : 0.3 * draw(2, (uint64_t)(i * N + j)) / N;
        }
    for (int j = 0; j < N; j++) A[(N - 1) * N + j] = A[j] + (j == N - 1 ? nearness : 0);
    fm_dense_nt(S, A, A, N, N, N);
}

static void assert_identity(const double *G, int m, double tol)
{
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++) assert_true(fabs(G[i * m + j] - (i == j)) < tol);
}

static void the_overlap_becomes_one(void **state)
{
    (void)state;
    fm_orthogonal_info info;
    fresh(1);
    assert_int_equal(fm_orthogonal(X, &info, S, N, 1e-5), FM_OK);
    assert_int_equal(info.n_kept, N);
    fm_dense_congruence(B, X, S, N, N, work);
    assert_identity(B, N, 1e-12);
}

static void dependent_functions_are_dropped(void **state)
{
    (void)state;
    fm_orthogonal_info info;
    fresh(1e-4); /* squares: an eigenvalue of about 1e-8 */
    assert_int_equal(fm_orthogonal(X, &info, S, N, 1e-5), FM_OK);
    assert_int_equal(info.n_kept, N - 1);
    assert_true(info.smallest < 1e-5 && info.smallest > 0);
    fm_dense_congruence(B, X, S, N, N - 1, work);
    assert_identity(B, N - 1, 1e-10);
}

static void eigenvectors_solve_the_problem(void **state)
{
    (void)state;
    fm_orthogonal_info info;
    fresh(1);
    assert_int_equal(fm_orthogonal(X, &info, S, N, 1e-5), FM_OK);
    assert_int_equal(fm_eigen(eps, C, F, X, N, N), FM_OK);
    fm_dense_nn(A, F, C, N, N, N);
    fm_dense_nn(B, S, C, N, N, N);
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++) assert_true(fabs(A[i * N + k] - B[i * N + k] * eps[k]) < 1e-10);
    for (int k = 1; k < N; k++) assert_true(eps[k] >= eps[k - 1]);
    fm_dense_congruence(A, C, S, N, N, work);
    assert_identity(A, N, 1e-12);
}

static void columns_become_orthonormal(void **state)
{
    (void)state;
    enum { K = 9 };
    double G[K * K], Q[N * K];
    fresh(1);
    for (int i = 0; i < N * K; i++) Q[i] = draw(3, (uint64_t)i);
    assert_int_equal(fm_orthonormalise(Q, S, N, K), FM_OK);
    fm_dense_congruence(G, Q, S, N, K, work);
    assert_identity(G, K, 1e-12);
    for (int i = 0; i < N; i++) Q[i * K + 3] = 2 * Q[i * K + 1];
    assert_int_equal(fm_orthonormalise(Q, S, N, K), FM_E_FORMAT);
}

/* F(x) linear with residual M (x - x*): DIIS must find x* once it has seen as many
 * directions as there are. */
static void diis_solves_a_linear_problem(void **state)
{
    (void)state;
    enum { M = 6 };
    double   x[M] = {0}, r[M], target[M];
    fm_diis *d    = NULL;
    for (int i = 0; i < M; i++) target[i] = draw(7, (uint64_t)i);
    assert_int_equal(fm_diis_create(&d, 10, M, M), FM_OK);
    double size = 1;
    for (int step = 0; step < M + 3 && size > 1e-12; step++) {
        size = 0;
        for (int i = 0; i < M; i++) {
            r[i] = (0.3 + 0.2 * i) * (target[i] - x[i]);
            size += r[i] * r[i];
        }
        for (int i = 0; i < M; i++) x[i] += r[i];
        fm_diis_mix(d, x, r);
    }
    for (int i = 0; i < M; i++) assert_true(fabs(x[i] - target[i]) < 1e-6);
    fm_diis_clear(d);
    fm_diis_destroy(d);
    fm_diis_destroy(NULL);
}

static void diis_survives_what_is_singular(void **state)
{
    (void)state;
    fm_diis     *d       = NULL;
    double       f[4]    = {1, 2, 3, 4};
    const double same[4] = {1e-3, 0, 0, 0}, none[4] = {0};
    assert_int_equal(fm_diis_create(&d, 4, 4, 4), FM_OK);
    for (int i = 0; i < 12; i++) {
        fm_diis_mix(d, f, same);
        for (int k = 0; k < 4; k++) assert_true(isfinite(f[k]));
    }
    fm_diis_mix(d, f, none);
    for (int k = 0; k < 4; k++) assert_true(isfinite(f[k]));
    fm_diis_destroy(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_overlap_becomes_one),
        cmocka_unit_test(dependent_functions_are_dropped),
        cmocka_unit_test(eigenvectors_solve_the_problem),
        cmocka_unit_test(columns_become_orthonormal),
        cmocka_unit_test(diis_solves_a_linear_problem),
        cmocka_unit_test(diis_survives_what_is_singular),
    };
    if (fm_dense_one_thread() != FM_OK) return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
