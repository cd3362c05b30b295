/* SPDX-License-Identifier: Apache-2.0 */
/* J and K of the Fock build against sums over every reference integral; the same bits
 * whatever the number of threads; several densities at once; looser tolerances. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "chem/fock/fixed_sum.h"
#include "chem/fock/fock.h"
#include "chem/integral/eri_ref.h"
#include "chem_integral_shells.h"

typedef struct {
    fm_atom     atom[SHELL_ATOMS];
    fm_molecule m;
    fm_basis    b;
    size_t      nn;
    double     *D[2], *J[2], *K[2], *want_J[2], *want_K[2];
} stand;

static double unit_random(unsigned *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed / 4294967296.0 - 0.5;
}

static void open_stand(stand *s, int is_pure)
{
    unsigned seed = 7;
    memset(s, 0, sizeof *s);
    assert_int_equal(shells_build(&s->b, &s->m, s->atom, is_pure, NULL, NULL), FM_OK);
    const int n = s->b.n_function;
    s->nn       = (size_t)n * (size_t)n;
    double *x   = calloc(10 * s->nn, sizeof *x);
    for (int d = 0; d < 2; d++) {
        s->D[d]      = x + (size_t)d * 5 * s->nn;
        s->J[d]      = s->D[d] + s->nn;
        s->K[d]      = s->J[d] + s->nn;
        s->want_J[d] = s->K[d] + s->nn;
        s->want_K[d] = s->want_J[d] + s->nn;
        for (int i = 0; i < n; i++)
            for (int j = 0; j <= i; j++)
                s->D[d][i * n + j] = s->D[d][j * n + i] = unit_random(&seed);
    }
}

static void close_stand(stand *s)
{
    free(s->D[0]);
    fm_basis_fini(&s->b);
}

/* What (ij|kl) adds to J and K of one density. */
static void add_integral(stand *s, int d, int i, int j, int k, int l, double eri)
{
    const int n = s->b.n_function;
    s->want_J[d][i * n + j] += eri * s->D[d][k * n + l];
    s->want_K[d][i * n + k] += eri * s->D[d][j * n + l];
}

/* A quartet of shells in each order that is another one. */
static void add_quartet(stand *s, const int at[4], const double *eri)
{
    const int two_bra = at[0] != at[1], two_ket = at[2] != at[3],
              two_pair = at[0] != at[2] || at[1] != at[3];
    int first[4], end[4];
    for (int x = 0; x < 4; x++) {
        first[x] = s->b.shell[at[x]].first;
        end[x]   = first[x] + fm_shell_functions(&s->b.shell[at[x]]);
    }
    for (int i = first[0]; i < end[0]; i++)
        for (int j = first[1]; j < end[1]; j++)
            for (int k = first[2]; k < end[2]; k++)
                for (int l = first[3]; l < end[3]; l++, eri++)
                    for (int x = 0; x < 8; x++) {
                        const int a = x & 1, b = x >> 1 & 1, c = x >> 2;
                        if (a > two_bra || b > two_ket || c > two_pair) continue;
                        const int o[4] = {a ? j : i, a ? i : j, b ? l : k, b ? k : l};
                        for (int d = 0; d < 2; d++)
                            add_integral(s, d, o[2 * c], o[2 * c + 1], o[2 - 2 * c], o[3 - 2 * c],
                                         *eri);
                    }
}

/* Straight from the definition: every integral by the reference, once. */
static void expect(stand *s)
{
    const int        n = s->b.n_shell, n_pair = n * (n + 1) / 2;
    fm_hermite_pair *h = calloc((size_t)n_pair, sizeof *h);
    int(*shell)[2]     = calloc((size_t)n_pair, sizeof *shell);
    for (int i = 0, p = 0; i < n; i++)
        for (int j = 0; j <= i; j++, p++) {
            shell[p][0] = i, shell[p][1] = j;
            assert_int_equal(fm_hermite_pair_init(&h[p], &s->b.shell[i], &s->b.shell[j]), FM_OK);
        }
    for (int p = 0; p < n_pair; p++)
        for (int q = 0; q <= p; q++) {
            const size_t size = (size_t)h[p].n_product * (size_t)h[q].n_product;
            double      *eri  = malloc((size + fm_eri_ref_scratch(&h[p], &h[q])) * sizeof *eri);
            fm_eri_ref(eri, &h[p], &h[q], eri + size);
            add_quartet(s, (const int[4]){shell[p][0], shell[p][1], shell[q][0], shell[q][1]}, eri);
            free(eri);
        }
    for (int p = 0; p < n_pair; p++) fm_hermite_pair_fini(&h[p]);
    free(h);
    free(shell);
}

static void build(stand *s, int n_thread, int n_density, int has_K, double tol)
{
    fm_comm         comm = fm_comm_self();
    fm_fock        *f    = NULL;
    fm_fock_options opt  = {.n_thread = n_thread, .tol = 1e-12};
    assert_int_equal(fm_fock_open(&f, &s->b, &opt, &comm), FM_OK);
    assert_int_equal(
        fm_fock_build(f, n_density, (const double *const *)s->D, s->J, has_K ? s->K : NULL, tol),
        FM_OK);
    assert_true(fm_fock_last(f).n_quartet > 0);
    fm_fock_close(f);
}

static double distance(const double *x, const double *y, size_t n)
{
    double worst = 0;
    for (size_t k = 0; k < n; k++) worst = fmax(worst, fabs(x[k] - y[k]));
    return worst;
}

/* The error follows the tolerance down. */
static void ladder(stand *s)
{
    for (double tol = 1e-5; tol > 1e-11; tol *= 0.01) {
        build(s, 1, 1, 1, tol);
        const double worst =
            fmax(distance(s->J[0], s->want_J[0], s->nn), distance(s->K[0], s->want_K[0], s->nn));
        assert_true(worst < 200 * tol + 1e-11);
    }
}

static void as_defined(int is_pure)
{
    stand s;
    open_stand(&s, is_pure);
    expect(&s);
    build(&s, 2, 2, 1, 1e-12);
    for (int d = 0; d < 2; d++) {
        assert_true(distance(s.J[d], s.want_J[d], s.nn) < 1e-10);
        assert_true(distance(s.K[d], s.want_K[d], s.nn) < 1e-10);
    }
    memset(s.J[0], 0, s.nn * sizeof(double));
    build(&s, 1, 1, 0, 1e-12);
    assert_true(distance(s.J[0], s.want_J[0], s.nn) < 1e-10);
    if (is_pure) ladder(&s);
    close_stand(&s);
}

static void pure_as_defined(void **state)
{
    (void)state;
    as_defined(1);
}

static void cartesian_as_defined(void **state)
{
    (void)state;
    as_defined(0);
}

static void same_bits(void **state)
{
    (void)state;
    stand s;
    open_stand(&s, 1);
    double *J = malloc(s.nn * sizeof *J), *K = malloc(s.nn * sizeof *K);
    build(&s, 1, 1, 1, 1e-10);
    memcpy(J, s.J[0], s.nn * sizeof *J);
    memcpy(K, s.K[0], s.nn * sizeof *K);
    for (int t = 2; t < 6; t++) {
        build(&s, t, 1, 1, 1e-10);
        assert_memory_equal(J, s.J[0], s.nn * sizeof *J);
        assert_memory_equal(K, s.K[0], s.nn * sizeof *K);
    }
    free(J);
    free(K);
    close_stand(&s);
}

static fm_fock *open_fock(const stand *s, int n_thread, size_t cache_bytes, fm_comm *comm)
{
    fm_fock        *f   = NULL;
    fm_fock_options opt = {.n_thread = n_thread, .cache_bytes = cache_bytes, .tol = 1e-12};
    assert_int_equal(fm_fock_open(&f, &s->b, &opt, comm), FM_OK);
    return f;
}

/* What is kept is read again, and changes no bit beside a cache too small for anything. */
static void semidirect(void **state)
{
    (void)state;
    fm_comm comm = fm_comm_self();
    stand   s;
    open_stand(&s, 1);
    build(&s, 1, 1, 1, 1e-11);
    double *direct = malloc(s.nn * sizeof *direct), *K = malloc(s.nn * sizeof *K);
    memcpy(direct, s.K[0], s.nn * sizeof *K);
    fm_fock *small = open_fock(&s, 2, 1, &comm), *large = open_fock(&s, 2, 1 << 28, &comm);
    assert_int_equal(fm_fock_build(small, 1, (const double *const *)s.D, s.J, s.K, 1e-11), FM_OK);
    assert_int_equal(fm_fock_last(small).n_cached, 0);
    assert_true(distance(s.K[0], direct, s.nn) < 1e-10);
    memcpy(K, s.K[0], s.nn * sizeof *K);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(fm_fock_build(large, 1, (const double *const *)s.D, s.J, s.K, 1e-11),
                         FM_OK);
        assert_true(round == 0 ? fm_fock_last(large).n_cached == 0
                               : fm_fock_last(large).n_cached > 0);
        assert_memory_equal(K, s.K[0], s.nn * sizeof *K);
    }
    fm_fock_close(small);
    fm_fock_close(large);
    free(direct);
    free(K);
    close_stand(&s);
}

static void scales(void **state)
{
    (void)state;
    for (double bound = 1e-30; bound < 1e30; bound *= 7) {
        const double f = fm_fixed_scale(bound);
        assert_true(bound * f < 0x1p62 && (bound * f > 0x1p60 || f == 0x1p1000));
    }
    assert_true(fm_fixed_scale(0) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pure_as_defined), cmocka_unit_test(cartesian_as_defined),
        cmocka_unit_test(same_bits),       cmocka_unit_test(semidirect),
        cmocka_unit_test(scales),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
