/* SPDX-License-Identifier: Apache-2.0 */
/* Images of basis functions under point groups: integrals are their own images, and the mean
 * of a density's images keeps what a symmetric operator measures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "chem/integral/images.h"
#include "chem/integral/one_electron.h"
#include "chem_deck_support.h"

static const struct {
    const char *group;
    int         n_op;
    const char *atoms;
} molecule[] = {
    {"C2v", 4, "O 0 0 0.12;H 0 0.76 -0.47;H 0 -0.76 -0.47"},
    {"C3v", 6, "N 0 0 0.12;H 0.94 0 -0.27;H -0.47 0.814063879 -0.27;H -0.47 -0.814063879 -0.27"},
    {"C4v", 8, "N 0 0 0;O 0 0 1.15"},
    {"D4h", 16, "C 0 0 0;O 0.3 0.4 1.04;O -0.3 -0.4 -1.04"},
    {"D3h", 12, "B 0 0 0;F 1.31 0 0;F -0.655 1.134493279 0;F -0.655 -1.134493279 0"},
    {"Td", 24, "C 0 0 0;H 0.63 0.63 0.63;H -0.63 -0.63 0.63;H -0.63 0.63 -0.63;H 0.63 -0.63 -0.63"},
    {"C2h", 4, "N 0.1 0.6 0;N -0.1 -0.6 0;H -0.8 1.04 0;H 0.8 -1.04 0"},
};

/* s to g on every atom but H, which has f. */
static fm_deck deck_of(int i, const char *form)
{
    char text[2000];
    snprintf(text, sizeof text,
             "geometry;%s;end; basis %s; * library cc-pvqz; end; scf; %s; end; task scf",
             molecule[i].atoms, form, strcmp(molecule[i].group, "C4v") ? "singlet" : "doublet");
    return good_deck(text);
}

static void check_integrals(const fm_images *g, const fm_deck_task *t)
{
    const size_t nn    = (size_t)t->basis->n_function * (size_t)t->basis->n_function;
    double      *A     = malloc(nn * sizeof *A);
    double       moved = 1;
    assert_non_null(A);
    fm_overlap(A, t->basis);
    assert_int_equal(fm_images_average_operator(g, A, &moved), FM_OK);
    near_to(moved, 0, 1e-12);
    fm_kinetic(A, t->basis);
    assert_int_equal(fm_images_average_operator(g, A, &moved), FM_OK);
    near_to(moved, 0, 1e-11);
    fm_attraction(A, t->basis, t->molecule);
    assert_int_equal(fm_images_average_operator(g, A, &moved), FM_OK);
    near_to(moved, 0, 1e-11);
    free(A);
}

static double trace(const double *A, const double *B, size_t nn)
{
    double sum = 0;
    for (size_t i = 0; i < nn; i++) sum += A[i] * B[i];
    return sum;
}

static void check_density(const fm_images *g, const fm_deck_task *t)
{
    const size_t n = (size_t)t->basis->n_function, nn = n * n;
    double      *D = malloc(2 * nn * sizeof *D), *T = D + nn, moved = 0;
    assert_non_null(D);
    fm_kinetic(T, t->basis);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++)
            D[i * n + j] = D[j * n + i] = sin(1.0 + 3.7 * (double)i + 0.9 * (double)j * (double)j);
    const double kinetic = trace(D, T, nn);
    assert_int_equal(fm_images_average_density(g, D, &moved), FM_OK);
    assert_true(moved > 0.1);
    near_to(trace(D, T, nn), kinetic, 1e-9 * (1 + fabs(kinetic)));
    assert_int_equal(fm_images_average_density(g, D, &moved), FM_OK);
    near_to(moved, 0, 1e-12);
    free(D);
}

static void groups(void **state)
{
    (void)state;
    for (int i = 0; i < (int)(sizeof molecule / sizeof *molecule); i++)
        for (int pure = 0; pure < 2; pure++) {
            fm_images          *g = NULL;
            fm_deck             d = deck_of(i, pure ? "spherical" : "cartesian");
            const fm_deck_task *t = &d.task[0];
            assert_string_equal(t->molecule->group, molecule[i].group);
            assert_int_equal(t->molecule->n_op, molecule[i].n_op);
            assert_int_equal(fm_images_create(&g, t->molecule, t->basis), FM_OK);
            check_integrals(g, t);
            check_density(g, t);
            fm_images_destroy(g);
            fm_deck_fini(&d);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(groups)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
