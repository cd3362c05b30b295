/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of the loop: however the iterations are cut, cached, threaded or
 * helped, they end at the same energy. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "chem_run.h"

#define WATER                                                                                      \
    "geometry noautosym\n O 0 0 0.1173\n H 0 0.7572 -0.4692\n H 0 -0.7572 -0.4692\nend\n"          \
    "basis spherical\n * library 6-31g**\nend\n"

static chem_result must_run(const char *text, int n_thread)
{
    const chem_result r = chem_run_text(text, n_thread);
    if (r.rc != FM_OK) fail_msg("%s\n%s", r.why, text);
    return r;
}

static void assert_near(double a, double b, double tol)
{
    if (!(fabs(a - b) <= tol)) fail_msg("%.12f and %.12f differ by %.1e", a, b, a - b);
}

static void tighter_screening_is_never_worse(void **state)
{
    (void)state;
    char   deck[512];
    double best = 0, last = HUGE_VAL;
    for (int digits = 14; digits >= 10; digits--) {
        snprintf(deck, sizeof deck,
                 "start a\n" WATER "scf; thresh 1e-8; tol2e 1e-%d; end\ntask scf\n", digits);
        const double e = must_run(deck, 1).task[0].energy;
        if (digits == 14) best = e;
        const double error = fabs(e - best) + 1e-11; /* rounding */
        if (digits < 14) assert_true(digits == 13 || error >= last - 2e-11);
        last = error;
        assert_true(error < 2e-9);
    }
}

static void restart_ends_where_a_straight_run_ends(void **state)
{
    (void)state;
    static const char rest[] = WATER "scf; thresh 1e-7%s; end\ntask scf%s\n";
    char              deck[600], body[512];
    snprintf(body, sizeof body, rest, "", "");
    snprintf(deck, sizeof deck, "start straight\n%s", body);
    const chem_result straight = must_run(deck, 1);

    snprintf(body, sizeof body, rest, "; maxiter 2", "");
    snprintf(deck, sizeof deck, "start cut\n%s", body);
    const chem_result cut = chem_run_text(deck, 1);
    assert_int_equal(cut.rc, FM_E_NOCONV);
    assert_non_null(strstr(cut.why, "not converged after 6 iterations"));

    snprintf(body, sizeof body, rest, "", "");
    snprintf(deck, sizeof deck, "restart cut\n%s", body);
    const chem_result rerun = must_run(deck, 1);
    assert_near(rerun.task[0].energy, straight.task[0].energy, 1e-9);
    assert_true(rerun.task[0].n_iteration < straight.task[0].n_iteration);
}

static void cached_integrals_are_the_same(void **state)
{
    (void)state;
    const double direct =
        must_run("start d\n" WATER "scf; direct; thresh 1e-7; end\ntask scf\n", 1).task[0].energy;
    const double cached =
        must_run("start s\n" WATER "scf; semidirect memsize 2000000 filesize 0; thresh 1e-7; end\n"
                 "task scf\n",
                 1)
            .task[0]
            .energy;
    assert_near(cached, direct, 1e-10);
}

static void threads_do_not_move_a_bit(void **state)
{
    (void)state;
    static const char deck[] = "start t\n" WATER "scf; thresh 1e-7; end\ntask scf\n"
                               "dft; xc b3lyp; end\ntask dft\n";
    const chem_result one    = must_run(deck, 1);
    for (int n = 2; n <= 3; n++) {
        const chem_result many = must_run(deck, n);
        for (int i = 0; i < 2; i++)
            if (memcmp(&many.task[i].energy, &one.task[i].energy, sizeof(double)))
                fail_msg("%s: %.15g with %d threads, %.15g with one", one.task[i].method,
                         many.task[i].energy, n, one.task[i].energy);
    }
}

/* A later task finds an earlier one's vectors, by name and by itself. */
static void a_task_begins_with_another_s_vectors(void **state)
{
    (void)state;
    const chem_result r =
        must_run("start v\n" WATER "scf; thresh 1e-7; vectors output v.movecs; end\ntask scf\n"
                 "dft; xc b3lyp; vectors input v.movecs output w.movecs; end\ntask dft\n"
                 "dft; xc b3lyp; vectors input atomic output u.movecs; end\ntask dft\n"
                 "scf; vectors input u.movecs; end\ntask scf\n",
                 1);
    assert_int_equal(r.n_task, 4);
    assert_near(r.task[1].energy, r.task[2].energy, 2e-7);
    assert_near(r.task[3].energy, r.task[0].energy, 1e-9);
    assert_true(r.task[1].n_iteration < r.task[2].n_iteration);
    assert_true(r.task[3].n_iteration < r.task[0].n_iteration);
}

static void vectors_of_another_basis_are_refused(void **state)
{
    (void)state;
    chem_result r =
        chem_run_text("start b\n" WATER "task scf\nbasis spherical; * library sto-3g; end\n"
                      "scf; vectors input b.movecs; end\ntask scf\n",
                      1);
    assert_int_equal(r.rc, FM_E_FORMAT);
    assert_non_null(strstr(r.why, "vectors of 24 functions, this basis has 7"));
    r = chem_run_text("start b\n" WATER "scf; vectors input nowhere.movecs; end\ntask scf\n", 1);
    assert_int_equal(r.rc, FM_E_IO);
    assert_int_equal(r.n_task, 0);
}

/* Nobody has asked for the last task's vectors: where they do not fit, atoms do. */
static void another_basis_or_molecule_begins_with_atoms(void **state)
{
    (void)state;
    static const char bases[] = "start m\n" WATER "scf; thresh 1e-7; end\ntask scf\n"
                                "basis spherical; * library cc-pvdz; end\ntask scf\n"
                                "dft; xc b3lyp; end\ntask dft\n"
                                "basis spherical; * library 6-31g**; end\ntask dft\ntask scf\n"
                                "geometry; N 0 0 0; N 0 0 1.1; end\ntask scf\n"
                                "geometry; N 0 0 0; N 0 0 1.2; end\ntask scf\n";
    const chem_result r       = must_run(bases, 1);
    const chem_result n2      = must_run("start n\ngeometry; N 0 0 0; N 0 0 1.1; end\n"
                                              "basis spherical; * library 6-31g**; end\n"
                                              "scf; thresh 1e-7; end\ntask scf\n",
                                         1);
    assert_int_equal(r.n_task, 7);
    assert_near(r.task[4].energy, r.task[0].energy, 1e-9);
    assert_near(r.task[5].energy, n2.task[0].energy, 1e-9);
    assert_true(fabs(r.task[1].energy - r.task[0].energy) > 1e-3);
    assert_true(r.task[6].n_iteration < r.task[5].n_iteration); /* a moved atom keeps them */
    const chem_result again = must_run("restart m\n" WATER "scf; thresh 1e-7; end\ntask scf\n", 1);
    assert_near(again.task[0].energy, r.task[0].energy, 1e-9);
}

static void the_core_guess_gets_there_too(void **state)
{
    (void)state;
    const double atomic =
        must_run("start a\n" WATER "scf; thresh 1e-7; end\ntask scf\n", 1).task[0].energy;
    const double core =
        must_run("start c\n" WATER "scf; thresh 1e-7; vectors input hcore; end\ntask scf\n", 1)
            .task[0]
            .energy;
    assert_near(core, atomic, 1e-9);
}

static void a_level_shift_does_not_move_the_end(void **state)
{
    (void)state;
    const double plain =
        must_run("start a\n" WATER "dft; xc hfexch; end\ntask dft\n", 1).task[0].energy;
    const double lifted =
        must_run("start l\n" WATER
                 "dft; xc hfexch; iterations 100; convergence lshift 0.5; end\ntask dft\n",
                 1)
            .task[0]
            .energy;
    assert_near(lifted, plain, 1e-7);
}

/* UHF of a closed shell is RHF; a bond that is far too long is no reason to hang. */
static void unrestricted_closed_shells_are_restricted(void **state)
{
    (void)state;
    const double rhf =
        must_run("start r\n" WATER "scf; thresh 1e-7; end\ntask scf\n", 1).task[0].energy;
    const double uhf =
        must_run("start u\n" WATER "scf; uhf; thresh 1e-7; end\ntask scf\n", 1).task[0].energy;
    const double uks =
        must_run("start k\n" WATER "dft; odft; xc pbe0; end\ntask dft\n", 1).task[0].energy;
    const double rks =
        must_run("start q\n" WATER "dft; xc pbe0; end\ntask dft\n", 1).task[0].energy;
    assert_near(uhf, rhf, 1e-9);
    assert_near(uks, rks, 1e-7);
}

/* The fallback of DIIS alone: every method ends at the same energy. */
static void descent_ends_where_diis_ends(void **state)
{
    (void)state;
    static const char *const tasks[] = {
        "scf; thresh 1e-6; maxiter 80; end\ntask scf\n",
        "charge 1\nscf; doublet; thresh 1e-6; maxiter 80; end\ntask scf\n",
        "charge 1\nscf; doublet; uhf; thresh 1e-6; maxiter 80; end\ntask scf\n",
        "dft; xc b3lyp; iterations 80; end\ntask dft\n",
    };
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++) {
        char deck[600];
        snprintf(deck, sizeof deck, "start g\n" WATER "%s", tasks[i]);
        const chem_result diis = must_run(deck, 1), descent = chem_run_without_diis(deck);
        if (descent.rc != FM_OK) fail_msg("%s", descent.why);
        assert_int_equal(diis.task[0].n_descent, 0);
        assert_true(descent.task[0].n_descent > 3);
        assert_near(descent.task[0].energy, diis.task[0].energy, i == 3 ? 1e-7 : 1e-9);
    }
}

static void descent_begins_with_vectors_of_a_file(void **state)
{
    (void)state;
    static const char two[]   = "start h\n" WATER "charge 1\nscf; doublet; uhf; end\ntask scf\n"
                                "scf; rohf; thresh 1e-6; end\ntask scf\n";
    const chem_result descent = chem_run_without_diis(two), diis = must_run(two, 1);
    if (descent.rc != FM_OK) fail_msg("%s", descent.why);
    assert_near(descent.task[1].energy, diis.task[1].energy, 1e-9);
}

static void failures_that_are_ignored_do_not_end_the_deck(void **state)
{
    (void)state;
    const chem_result r =
        chem_run_text("start i\n" WATER "scf; maxiter 1; end\ntask scf energy ignore\n"
                      "scf; maxiter 50; vectors input atomic; end\ntask scf\n",
                      1);
    assert_int_equal(r.rc, FM_OK);
    assert_int_equal(r.n_task, 2);
    assert_false(r.task[0].is_converged);
    assert_true(r.task[1].is_converged);
}

static int open_all(void **state)
{
    (void)state;
    chem_open();
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    chem_close();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tighter_screening_is_never_worse),
        cmocka_unit_test(restart_ends_where_a_straight_run_ends),
        cmocka_unit_test(cached_integrals_are_the_same),
        cmocka_unit_test(threads_do_not_move_a_bit),
        cmocka_unit_test(a_task_begins_with_another_s_vectors),
        cmocka_unit_test(vectors_of_another_basis_are_refused),
        cmocka_unit_test(another_basis_or_molecule_begins_with_atoms),
        cmocka_unit_test(the_core_guess_gets_there_too),
        cmocka_unit_test(a_level_shift_does_not_move_the_end),
        cmocka_unit_test(unrestricted_closed_shells_are_restricted),
        cmocka_unit_test(descent_ends_where_diis_ends),
        cmocka_unit_test(descent_begins_with_vectors_of_a_file),
        cmocka_unit_test(failures_that_are_ignored_do_not_end_the_deck),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
