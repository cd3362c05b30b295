/* SPDX-License-Identifier: Apache-2.0 */
/* Superposed atoms: the right number of electrons, spherical, energies of atoms. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "chem/eigen/dense.h"
#include "chem/guess/guess.h"
#include "chem/input/deck.h"
#include "chem/integral/one_electron.h"

static fm_deck deck;

static const fm_deck_task *task_of(const char *text)
{
    fm_deck_fini(&deck);
    assert_int_equal(fm_deck_parse(&deck, "deck", text, strlen(text)), FM_OK);
    return &deck.task[0];
}

static double electrons_of(const fm_guess *g, const fm_basis *b)
{
    const size_t n = (size_t)b->n_function;
    double      *S = fm_dense_new(2 * n * n), *D = S + n * n;
    fm_overlap(S, b);
    fm_dense_nt(D, g->column, g->column, b->n_function, b->n_function, g->n_column);
    const double e = 2 * fm_dense_dot(D, S, n * n);
    free(S);
    return e;
}

static void configurations(void **state)
{
    (void)state;
    static const struct {
        int z, s, p, d;
    } want[] = {{1, 1, 0, 0},   {2, 2, 0, 0},   {8, 4, 4, 0},   {10, 4, 6, 0},    {11, 5, 6, 0},
                {17, 6, 11, 0}, {18, 6, 12, 0}, {26, 8, 12, 6}, {54, 10, 24, 20}, {0, 0, 0, 0}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        int e[4];
        fm_guess_configuration(want[i].z, e);
        assert_true(e[0] == want[i].s && e[1] == want[i].p && e[2] == want[i].d);
    }
}

static void atoms_have_their_electrons_and_energies(void **state)
{
    (void)state;
    static const struct {
        const char *deck;
        double      electrons, energy;
    } want[] = {
        /* closed shells: the atom's RHF energy (NWChem 7.0.2, cc-pvdz) */
        {"geometry; He 0 0 0; end\nbasis spherical; * library cc-pvdz; end\ntask scf\n", 2,
         -2.855160477},
        {"geometry; Ne 0 0 0; end\nbasis spherical; * library cc-pvdz; end\ntask scf\n", 10,
         -128.488775552},
        /* three far atoms, one kind twice, cartesian d functions */
        {"geometry; Ne 0 0 0; He 0 0 9; He 0 9 0; end\nbasis; * library cc-pvdz; end\ntask scf\n",
         14, -128.488774 - 2 * 2.855160477},
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const fm_deck_task *t = task_of(want[i].deck);
        fm_guess            g = {0};
        assert_int_equal(fm_guess_atomic(&g, t->molecule, t->basis), FM_OK);
        assert_true(g.electrons == want[i].electrons);
        assert_true(fabs(electrons_of(&g, t->basis) - want[i].electrons) < 1e-10);
        if (fabs(g.atoms_energy - want[i].energy) > 2e-4)
            fail_msg("case %zu: %.9f, want %.9f", i, g.atoms_energy, want[i].energy);
        fm_guess_fini(&g);
    }
}

/* Open shells are spread: p functions x, y and z of every shell are alike. */
static void open_shells_are_spherical(void **state)
{
    (void)state;
    const fm_deck_task *t =
        task_of("geometry; O 0 0 0; end\nbasis spherical; * library cc-pvtz; end\n"
                "scf; triplet; end\ntask scf\n");
    fm_guess g = {0};
    assert_int_equal(fm_guess_atomic(&g, t->molecule, t->basis), FM_OK);
    const int n = t->basis->n_function;
    double   *D = fm_dense_new((size_t)n * (size_t)n);
    fm_dense_nt(D, g.column, g.column, n, n, g.n_column);
    for (int i = 0; i < t->basis->n_shell; i++) {
        const fm_shell *s = &t->basis->shell[i];
        for (int c = 0; s->l == 1 && c < s->n_contr; c++) {
            const int at = s->first + 3 * c;
            for (int k = 1; k < 3; k++)
                assert_true(fabs(D[(at + k) * n + at + k] - D[at * n + at]) < 1e-8);
        }
    }
    free(D);
    fm_guess_fini(&g);
}

static int forget_deck(void **state)
{
    (void)state;
    fm_deck_fini(&deck);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(configurations),
        cmocka_unit_test(atoms_have_their_electrons_and_energies),
        cmocka_unit_test(open_shells_are_spherical),
    };
    if (fm_dense_one_thread() != FM_OK) return 1;
    return cmocka_run_group_tests(tests, NULL, forget_deck);
}
