/* SPDX-License-Identifier: Apache-2.0 */
/* The basis-set library against sums over NWChem's own files, and what shells become
 * when they are put on atoms. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "chem/basis/basis.h"
#include "chem/basis/library.h"

enum { Z_LAST = 18 };

static void near_to(double got, double want, double tol)
{
    if (!(fabs(got - want) <= tol)) fail_msg("%.15g, want %.15g", got, want);
}

/* Over all elements of a set: how many there are, pure functions, sum of exponents (SP
 * counted twice), sum of |coefficients|.  From /usr/share/nwchem/libraries of the Debian
 * package nwchem-data 7.0.2. */
static const struct {
    const char *set;
    int         n_element, n_function;
    double      exponents, coefs;
} library[] = {
    /* clang-format off */
    {"sto-3g", 18, 114, 6058.684236, 77.40665508},
    {"3-21g", 18, 180, 12820.38859, 114.4936302},
    {"3-21g*", 18, 220, 12824.31359, 122.4936302},
    {"3-21++g", 17, 243, 12805.93575, 145.4249172},
    {"3-21++g*", 18, 285, 12825.86979, 155.4936302},
    {"6-31g", 18, 180, 221919.0749, 114.0026699},
    {"6-31g*", 18, 260, 221928.1999, 130.0026699},
    {"6-31g**", 18, 266, 221930.3999, 132.0026699},
    {"6-31+g", 18, 244, 221920.5951, 146.0026699},
    {"6-31+g*", 18, 324, 221929.7201, 162.0026699},
    {"6-31+g**", 18, 330, 221931.9201, 164.0026699},
    {"6-31++g", 17, 243, 221874.8917, 145.3545949},
    {"6-31++g*", 18, 325, 221929.7561, 163.0026699},
    {"6-31++g**", 18, 328, 221930.8561, 164.0026699},
    {"6-31g(2df,p)", 18, 464, 221963.9199, 166.0026699},
    {"6-31g(3df,3pd)", 18, 560, 222003.1179, 186.0026699},
    {"6-311g", 18, 278, 783905.9377, 156.0329259},
    {"6-311g*", 18, 358, 783917.6037, 172.0329259},
    {"6-311g**", 18, 364, 783919.1037, 174.0329259},
    {"6-311+g", 18, 342, 783907.4579, 188.0329259},
    {"6-311+g*", 18, 422, 783919.1239, 204.0329259},
    {"6-311+g**", 18, 428, 783920.6239, 206.0329259},
    {"6-311++g", 17, 340, 783790.1632, 185.9584847},
    {"6-311++g*", 17, 420, 783801.8292, 201.9584847},
    {"6-311++g**", 18, 429, 783920.6599, 207.0329259},
    {"6-311+g(2d,p)", 18, 508, 783938.1229, 222.0329259},
    {"6-311g(2df,2pd)", 10, 268, 61153.71467, 94.70867969},
    {"6-311++g(2d,2p)", 17, 506, 783821.2032, 219.9584847},
    {"6-311++g(3df,3pd)", 17, 706, 783868.2687, 253.9584847},
    {"def2-svp", 18, 253, 92085.86616, 113.2738569},
    {"def2-svpd", 18, 361, 92089.15639, 149.2738569},
    {"def2-tzvp", 18, 517, 680537.3728, 186.3756682},
    {"def2-tzvpp", 18, 568, 680544.3237, 196.1756682},
    {"def2-tzvpd", 18, 625, 680540.0703, 222.3756682},
    {"def2-qzvp", 18, 990, 10600578.53, 313.4801221},
    {"cc-pvdz", 18, 266, 927042.7648, 124.4450097},
    {"aug-cc-pvdz", 18, 418, 927047.6378, 176.4450097},
    {"cc-pvtz", 18, 540, 3401762.13, 188.8810181},
    {"aug-cc-pvtz", 18, 814, 3401771.259, 258.8810181},
    {"cc-pvqz", 18, 972, 7172938.592, 263.4350588},
    {"aug-cc-pvqz", 18, 1404, 7172952.659, 351.4350588},
    /* clang-format on */
};

static void add_up(const fm_shells *s, int *n_function, double *exponents, double *coefs)
{
    for (int i = 0; i < s->n_shell; i++) {
        const fm_shell_entry *e = &s->shell[i];
        *n_function += (2 * e->l + 1) * e->n_contr;
        for (int p = 0; p < e->n_prim; p++) *exponents += s->number[e->at + p];
        for (int c = 0; c < e->n_prim * e->n_contr; c++)
            *coefs += fabs(s->number[e->at + e->n_prim + c]);
    }
}

static void sets_hold_nwchems_numbers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof library / sizeof *library; i++) {
        int    n_element = 0, n_function = 0;
        double exponents = 0, coefs = 0;
        for (int z = 1; z <= Z_LAST; z++) {
            fm_shells s = {0};
            if (fm_library_shells(&s, library[i].set, z) == FM_OK) n_element++;
            add_up(&s, &n_function, &exponents, &coefs);
            fm_shells_fini(&s);
        }
        if (n_element != library[i].n_element || n_function != library[i].n_function ||
            fabs(exponents - library[i].exponents) > 1e-9 * exponents ||
            fabs(coefs - library[i].coefs) > 1e-9 * coefs)
            fail_msg("%s: %d elements, %d functions, %.10g, %.10g", library[i].set, n_element,
                     n_function, exponents, coefs);
    }
}

static void every_set_is_listed(void **state)
{
    (void)state;
    char      name[32];
    const int n = sizeof library / sizeof *library;
    for (int i = 0; i < n; i++) assert_string_equal(fm_library_name(i, name), library[i].set);
    assert_null(fm_library_name(n, name));
}

static void names_are_free_in_spelling(void **state)
{
    (void)state;
    static const char *const good[] = {"6-31G*",     "6-31gs",        "6-31G(d)",
                                       "6-31g(D,P)", "6-31++G**",     "6-311++g(d,p)",
                                       "CC-pVTZ",    "Aug-cc-pVQZ",   "6-311++G(3df,3pd)",
                                       "def2-TZVP",  "6-311G2df_2pd", "STO-3G"};
    static const char *const bad[]  = {"",         "cc-pV5Z",
                                       "6-31g***", "6-31g(d,p",
                                       "cc-pvtz ", "a-name-far-longer-than-any-basis-set-has"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (!fm_library_has(good[i])) fail_msg("%s is not found", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (fm_library_has(bad[i])) fail_msg("\"%s\" is found", bad[i]);
}

static void what_is_missing_is_named(void **state)
{
    (void)state;
    fm_shells s = {0};
    assert_int_equal(fm_library_shells(&s, "cc-pv9z", 1), FM_E_ARG);
    assert_string_equal(fm_why(), "no basis set named cc-pv9z in the library");
    assert_int_equal(fm_library_shells(&s, "cc-pvdz", 26), FM_E_NOSUP);
    assert_string_equal(fm_why(), "basis set cc-pvdz has no Fe");
    assert_int_equal(fm_library_shells(&s, "6-31++g", 2), FM_E_NOSUP); /* as in NWChem */
    assert_int_equal(s.n_shell, 0);
    fm_shells_fini(&s);
}

static void shells_are_checked(void **state)
{
    (void)state;
    fm_shells    s      = {0};
    const double zero[] = {0.0, 1.0}, negative[] = {1.0, 1.0, -2.0, 1.0}, nothing[] = {1.0, 0.0},
                 cancel[] = {1.0, 1.0, 1.0, -1.0}, sp[] = {1.0, 1.0};
    assert_int_equal(fm_shells_add(&s, 0, zero, 1, 2), FM_E_FORMAT);
    assert_int_equal(fm_shells_add(&s, 1, negative, 2, 2), FM_E_FORMAT);
    assert_string_equal(fm_why(), "exponent -2 is not positive");
    assert_int_equal(fm_shells_add(&s, 2, nothing, 1, 2), FM_E_FORMAT);
    assert_int_equal(fm_shells_add(&s, 0, cancel, 2, 2), FM_E_FORMAT);
    assert_int_equal(fm_shells_add(&s, FM_L_SP, sp, 1, 2), FM_E_FORMAT);
    assert_int_equal(fm_shells_add(&s, 0, sp, 0, 2), FM_E_FORMAT);
    assert_int_equal(s.n_shell, 0);
    fm_shells_fini(&s);
}

static fm_molecule water(fm_atom atom[3])
{
    static const fm_atom w[3] = {{"O", 8, 8, 15.99491, {0, 0, 0.2214}},
                                 {"H", 1, 1, 1.007825, {0, 1.43, -0.8857}},
                                 {"H", 1, 1, 1.007825, {0, -1.43, -0.8857}}};
    memcpy(atom, w, sizeof w);
    return (fm_molecule){.atom = atom, .n_atom = 3};
}

/* Number of functions as NWChem counts them. */
static void functions_of_water(void **state)
{
    (void)state;
    static const struct {
        const char *set;
        int         pure, cartesian, l_max;
    } want[] = {{"sto-3g", 7, 7, 1},    {"6-31g**", 24, 25, 2},   {"cc-pvdz", 24, 25, 2},
                {"cc-pvtz", 58, 65, 3}, {"cc-pvqz", 115, 140, 4}, {"aug-cc-pvqz", 172, 215, 4}};
    fm_atom     atom[3];
    fm_molecule m = water(atom);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        fm_basis b = {0};
        assert_int_equal(fm_basis_from_library(&b, &m, want[i].set, 1), FM_OK);
        assert_int_equal(b.n_function, want[i].pure);
        assert_int_equal(b.l_max, want[i].l_max);
        fm_basis_fini(&b);
        assert_int_equal(fm_basis_from_library(&b, &m, want[i].set, 0), FM_OK);
        assert_int_equal(b.n_function, want[i].cartesian);
        fm_basis_fini(&b);
    }
}

/* x^l sum_p c_p exp(-a_p r^2) has norm 1: integral of x^2l exp(-q r^2) over space. */
static double self_overlap(const fm_shell *s, const double *coef)
{
    double sum = 0;
    for (int i = 0; i < s->n_prim; i++)
        for (int j = 0; j < s->n_prim; j++) {
            const double q = s->exponent[i] + s->exponent[j];
            double       x = pow(acos(-1) / q, 1.5);
            for (int k = 1; k <= s->l; k++) x *= (2 * k - 1) / (2 * q);
            sum += coef[i] * coef[j] * x;
        }
    return sum;
}

static void contractions_have_norm_one(void **state)
{
    (void)state;
    fm_atom     atom[3];
    fm_molecule m = water(atom);
    fm_basis    b = {0};
    assert_int_equal(fm_basis_from_library(&b, &m, "cc-pvqz", 1), FM_OK);
    int first = 0;
    for (int i = 0; i < b.n_shell; i++) {
        const fm_shell *s = &b.shell[i];
        assert_int_equal(s->first, first);
        assert_int_equal(s->is_pure, s->l > 1);
        assert_memory_equal(s->xyz, m.atom[s->atom].xyz, sizeof s->xyz);
        for (int c = 0; c < s->n_contr; c++)
            near_to(self_overlap(s, s->coef + c * s->n_prim), 1, 1e-13);
        first += fm_shell_functions(s);
    }
    assert_int_equal(first, b.n_function);
    fm_basis_fini(&b);
}

static void ghosts_get_nothing_from_the_library(void **state)
{
    (void)state;
    fm_atom     atom[3];
    fm_molecule m = water(atom);
    fm_basis    b = {0};
    atom[0].z     = 0;
    assert_int_equal(fm_basis_from_library(&b, &m, "sto-3g", 0), FM_OK);
    assert_int_equal(b.n_function, 2);
    fm_basis_fini(&b);
    atom[1].z = atom[2].z = 0;
    assert_int_equal(fm_basis_from_library(&b, &m, "sto-3g", 0), FM_E_FORMAT);
}

static void elements(void **state)
{
    (void)state;
    assert_int_equal(fm_element_find("o"), 8);
    assert_int_equal(fm_element_find("CL"), 17);
    assert_int_equal(fm_element_find("Oxygen"), 8);
    assert_int_equal(fm_element_find("Xx"), 0);
    assert_string_equal(fm_element_symbol(18), "Ar");
    near_to(fm_element_mass(8), 15.99491, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_hold_nwchems_numbers),
        cmocka_unit_test(every_set_is_listed),
        cmocka_unit_test(names_are_free_in_spelling),
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(shells_are_checked),
        cmocka_unit_test(functions_of_water),
        cmocka_unit_test(contractions_have_norm_one),
        cmocka_unit_test(ghosts_get_nothing_from_the_library),
        cmocka_unit_test(elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
