/* SPDX-License-Identifier: Apache-2.0 */
/* Grids of the reference molecules: radial cutoffs and numbers of points of NWChem 7.0.2. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "chem/xc/grid.h"
#include "chem_xc_support.h"

typedef struct {
    const char   *molecule;
    fm_grid_level level;
    int           n_point;
    int           cutoff[8]; /* of the first atoms; 0 ends the list */
} expectation;

static const expectation want[] = {
    {"w1", FM_GRID_FINE, 54103, {11, 14, 14}},
    {"w2", FM_GRID_FINE, 110848, {18, 20, 20}},
    {"co2", FM_GRID_FINE, 55616, {13, 10, 13}},
    {"hf", FM_GRID_FINE, 37222, {10, 11}},
    {"oh", FM_GRID_FINE, 36061, {10, 10}},
    {"h3o", FM_GRID_FINE, 70601, {11, 14, 14, 14}},
    {"nh3", FM_GRID_MEDIUM, 41708, {11, 13, 13, 13}},
    {"nacl", FM_GRID_COARSE, 22148, {18, 18}},
    {"nacl", FM_GRID_MEDIUM, 40804, {19, 19}},
    {"nacl", FM_GRID_FINE, 79789, {21, 20}},
    {"nacl", FM_GRID_XFINE, 151708, {22, 20}},
    {"lihhe", FM_GRID_COARSE, 18611, {15, 16, 18}},
    {"lihhe", FM_GRID_XFINE, 182161, {18, 17, 19}},
};

static void test_points(void **state)
{
    const expectation *e = *state;
    fm_molecule        m;
    fm_basis           b;
    fm_grid            g;
    xc_case_open(xc_case_find(e->molecule), &m, &b);
    assert_int_equal(fm_grid_init(&g, &m, &b, e->level, e->level, 2), FM_OK);
    for (int i = 0; i < 8 && e->cutoff[i]; i++) assert_int_equal(g.cutoff[i], e->cutoff[i]);
    assert_int_equal(g.n_point, e->n_point);
    fm_grid_fini(&g);
    xc_case_close(&m, &b);
}

static void test_unknown_element_is_named(void **state)
{
    (void)state;
    static const double number[2] = {1.0, 1.0};
    fm_atom             atom      = {.tag = "K", .z = 19, .charge = 19};
    fm_molecule         m         = {.atom = &atom, .n_atom = 1};
    fm_shell            shell = {.n_prim = 1, .n_contr = 1, .exponent = number, .coef = number + 1};
    fm_basis            b     = {.shell = &shell, .n_shell = 1, .n_function = 1};
    fm_grid             g;
    assert_int_equal(fm_grid_init(&g, &m, &b, FM_GRID_FINE, FM_GRID_FINE, 1), FM_E_NOSUP);
    assert_non_null(strstr(fm_why(), "not for K"));
}

/* An atom alone keeps every point; ghosts with functions have the shells of their element. */
static void test_atom_and_ghost(void **state)
{
    (void)state;
    fm_molecule m;
    fm_basis    b;
    fm_grid     alone, with_ghost;
    xc_case_open(xc_case_find("h"), &m, &b);
    assert_int_equal(fm_grid_init(&alone, &m, &b, FM_GRID_COARSE, FM_GRID_COARSE, 1), FM_OK);
    m.atom[0] = (fm_atom){.tag = "bqH", .z = 0};
    assert_int_equal(fm_grid_init(&with_ghost, &m, &b, FM_GRID_COARSE, FM_GRID_COARSE, 1), FM_OK);
    assert_int_equal(alone.n_point, with_ghost.n_point);
    fm_grid_fini(&alone);
    fm_grid_fini(&with_ghost);
    xc_case_close(&m, &b);
}

int main(void)
{
    enum { N = sizeof want / sizeof want[0] };
    struct CMUnitTest tests[N + 2];
    for (int i = 0; i < N; i++)
        tests[i] = (struct CMUnitTest){
            .name = want[i].molecule, .test_func = test_points, .initial_state = (void *)&want[i]};
    tests[N]     = (struct CMUnitTest)cmocka_unit_test(test_unknown_element_is_named);
    tests[N + 1] = (struct CMUnitTest)cmocka_unit_test(test_atom_and_ghost);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
