/* SPDX-License-Identifier: Apache-2.0 */
/* What decks mean: defaults, what later blocks change, forms of lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "chem/input/deck_print.h"
#include "chem_deck_support.h"

static void defaults(void **state)
{
    (void)state;
    fm_deck             d = good_deck(H2 "task scf\ntask dft\n");
    const fm_deck_task *s = &d.task[0], *k = &d.task[1];
    assert_int_equal(d.n_task, 2);
    assert_int_equal(s->theory, FM_THEORY_SCF);
    assert_int_equal(s->spin, FM_SPIN_RESTRICTED);
    assert_int_equal(s->n_alpha, 1);
    assert_int_equal(s->n_beta, 1);
    near_to(s->thresh, 1e-4, 0);
    near_to(s->tol2e, 1e-7, 1e-20);
    near_to(s->lindep, 1e-5, 0);
    assert_int_equal(s->max_iterations, 200);
    assert_int_equal(s->goes_on, 0);
    assert_int_equal(s->vectors_from, FM_VECTORS_USUAL);
    assert_int_equal(s->line, 3);
    assert_int_equal(k->theory, FM_THEORY_DFT);
    near_to(k->tol2e, 1e-8, 1e-20);
    near_to(k->tol_energy, 1e-6, 0);
    near_to(k->tol_density, 1e-5, 0);
    near_to(k->tol_gradient, 5e-4, 0);
    near_to(k->xc.tol_rho, 1e-10, 0);
    near_to(k->xc.tol_ao, 14, 0);
    assert_int_equal(k->xc.level, FM_GRID_MEDIUM);
    assert_int_equal(k->xc.is_polarised, 0);
    assert_int_equal(k->xc.mix.n_term, 2);
    assert_string_equal(k->xc.mix.term[0].name, "slater");
    assert_string_equal(k->xc.mix.term[1].name, "vwn_5");
    assert_ptr_equal(s->basis, k->basis); /* built once */
    assert_ptr_equal(s->molecule, k->molecule);
    assert_int_equal(s->basis->shell[0].is_pure, 0);
    fm_deck_fini(&d);
}

/* The deck of the twelve waters, with one of them: every line of it has a meaning. */
static void a_deck_as_competitions_have_it(void **state)
{
    (void)state;
    fm_deck d = good_deck(
        "echo\r\n\r\nstart w1_b3lyp\r\n\r\n"
        "memory stack 8000 mb heap 100 mb global 8000 mb noverify\t# you can change this\r\n"
        "permanent_dir .\t\t# here\r\nscratch_dir /tmp\t# there\r\n"
        "TITLE \"one water; no # comment in quotes\"\r\n"
        "geometry units angstrom\r\n"
        "  O       1.79799517    -2.87189360    -0.91374020\r\n"
        "  H       1.58187452    -2.90533857     0.05372043\r\n"
        "  H       2.45880812    -3.55319457    -1.06640225\r\nend\r\n"
        "basis \"ao basis\" spherical noprint\r\n  * library cc-pvtz\r\nend\r\n"
        "scf\r\n  direct   # you can change this\r\n  singlet\r\n  rhf\r\n  thresh 1e-7\r\n"
        "  maxiter 100\r\n  vectors input atomic output w.movecs\r\n"
        "  noprint \"final vectors analysis\" \"final vector symmetries\"\r\nend\r\n"
        "task scf energy ignore\r\n"
        "dft\r\n  direct\r\n  xc b3lyp\r\n  grid fine\r\n  iterations 100\r\n"
        "  vectors input w.movecs\r\nend\r\ntask dft energy\r\n");
    const fm_deck_task *s = &d.task[0], *k = &d.task[1];
    assert_string_equal(d.name, "w1_b3lyp");
    assert_int_equal(d.echo, 1);
    assert_string_equal(d.permanent_dir, ".");
    assert_string_equal(d.scratch_dir, "/tmp");
    assert_true(d.memory_bytes == 16100ull << 20);
    assert_string_equal(s->title, "one water; no # comment in quotes");
    assert_int_equal(s->basis->n_function, 58);
    near_to(fm_molecule_repulsion(s->molecule), 9.010372345131, 2e-12);
    assert_int_equal(s->is_direct, 1);
    near_to(s->tol2e, 1e-9, 1e-20);
    assert_int_equal(s->goes_on, 1);
    assert_int_equal(s->vectors_from, FM_VECTORS_ATOMIC);
    assert_string_equal(s->vectors_out, "w.movecs");
    assert_int_equal(s->quiet, FM_PRINT_VECTORS | FM_PRINT_SYMMETRIES);
    assert_int_equal(k->xc.level, FM_GRID_FINE);
    assert_string_equal(k->xc.mix.term[0].name, "b3lyp");
    assert_int_equal(k->vectors_from, FM_VECTORS_FILE);
    assert_string_equal(k->vectors_in, "w.movecs");
    assert_int_equal(k->max_iterations, 100);
    fm_deck_fini(&d);
}

/* NWChem's dft tells later scf tasks which orbitals it used. */
static void dft_leaves_its_kind_of_orbitals(void **state)
{
    (void)state;
    fm_deck d = good_deck(H2 "scf; triplet; end\ntask scf\ndft; mult 3; end\ntask dft\ntask scf\n"
                             "scf; rohf; end\ntask scf\ndft; mult 1; end\nscf; uhf; end\n"
                             "task dft\ntask scf\n");
    assert_int_equal(d.task[0].spin, FM_SPIN_RESTRICTED_OPEN);
    assert_int_equal(d.task[2].spin, FM_SPIN_UNRESTRICTED);
    assert_int_equal(d.task[3].spin, FM_SPIN_RESTRICTED_OPEN);
    assert_int_equal(d.task[5].spin, FM_SPIN_RESTRICTED_OPEN);
    fm_deck_fini(&d);
}

static void later_blocks_add_to_earlier_ones(void **state)
{
    (void)state;
    fm_deck d = good_deck(
        H2 "scf; triplet; thresh 1e-6; end\ntask scf\nscf; uhf; maxiter 7; end\ntask scf\n"
           "dft; xc becke88 lyp; grid xfine; end\ntask dft\n" /* no spin from the scf block */
           "dft; xc pbe0; mult 3; end\ntask dft\ncharge 1\nscf; doublet; end\ntask scf\n");
    assert_int_equal(d.task[0].spin, FM_SPIN_RESTRICTED_OPEN);
    assert_int_equal(d.task[0].n_alpha, 2);
    assert_int_equal(d.task[0].n_beta, 0);
    assert_int_equal(d.task[1].spin, FM_SPIN_UNRESTRICTED);
    near_to(d.task[1].thresh, 1e-6, 0);
    assert_int_equal(d.task[1].max_iterations, 3 * 7); /* Newton steps of NWChem */
    assert_int_equal(d.task[2].spin, FM_SPIN_RESTRICTED);
    assert_int_equal(d.task[2].xc.mix.n_term, 2);
    assert_int_equal(d.task[3].xc.mix.n_term, 1);
    assert_int_equal(d.task[3].xc.level, FM_GRID_XFINE);
    assert_int_equal(d.task[3].xc.is_polarised, 1);
    assert_int_equal(d.task[4].n_alpha, 1);
    assert_int_equal(d.task[4].n_beta, 0);
    assert_int_equal(d.task[4].molecule->charge, 1);
    assert_int_equal(d.task[3].molecule->charge, 0);
    fm_deck_fini(&d);
}

static void functionals(void **state)
{
    (void)state;
    fm_deck d = good_deck(H2 "dft; xc HFexch 0.20 \\\n slater 0.80 becke88 nonlocal 0.72 \\ \n"
                             "  vwn_1_rpa 0.19d0 lyp 8.1D-1; end\ntask dft\n");
    const fm_xc_mix *m = &d.task[0].xc.mix;
    assert_int_equal(m->n_term, 5);
    assert_string_equal(m->term[0].name, "hfexch");
    assert_int_equal(m->term[2].part, FM_XC_NONLOCAL);
    near_to(m->term[2].factor, 0.72, 0);
    near_to(m->term[3].factor, 0.19, 0);
    near_to(m->term[4].factor, 0.81, 0);
    fm_deck_fini(&d);
}

static void tolerances(void **state)
{
    (void)state;
    fm_deck d = good_deck(
        H2
        "dft\n convergence energy 1d-9 density 1d-8 gradient 1.d-7 damp 40 nodiis lshift 0.3 ncydp "
        "3\n"
        " tolerances accCoul 12 accAOfunc 25 tol_rho 1e-14\n semidirect memsize 1000 filesize 0\n"
        "end\ntask dft\ndft; tolerances accAOfunc 3; convergence energy 1e-6; end\ntask dft\n");
    near_to(d.task[0].tol_energy, 1e-9, 0);
    near_to(d.task[0].tol_gradient, 1e-7, 0);
    near_to(d.task[0].tol2e, 1e-12, 1e-24);
    near_to(d.task[0].xc.tol_ao, 25, 0);
    near_to(d.task[0].xc.tol_rho, 1e-14, 0);
    near_to(d.task[0].level_shift, 0.3, 0);
    assert_int_equal(d.task[0].cache_bytes, 8000);
    assert_int_equal(d.task[1].cache_bytes, 8000);
    near_to(d.task[1].xc.tol_ao, 14, 0); /* never less than the energy's convergence needs */
    fm_deck_fini(&d);
}

static void units_of_length(void **state)
{
    (void)state;
    static const char *const unit[] = {
        "units angstroms", "units An",        "units au", "units BOHR", "units atomic",
        "units nm",        "units nanometer", "units pm", "units pico", ""};
    static const double bohr[] = {
        1.88972598858,  1.88972598858, 1, 1, 1, 18.8972598858, 18.8972598858, .0188972598858,
        .0188972598858, 1.88972598858};
    for (size_t i = 0; i < sizeof unit / sizeof *unit; i++) {
        char text[256] = "geometry noautosym nocenter ";
        strcat(strcat(text, unit[i]), "; h 0 0 0; h 0 0 2; end;" H2_BASIS "task scf");
        fm_deck d = good_deck(text);
        near_to(d.task[0].molecule->atom[1].xyz[2], 2 * bohr[i], 1e-15 * bohr[i] * 2);
        fm_deck_fini(&d);
    }
}

static void atoms_with_tags(void **state)
{
    (void)state;
    fm_deck d =
        good_deck("geometry \"mine\" nocenter noautosym print xyz noautoz units au\n symmetry c1\n"
                  " O1 0 0 0 mass 17.99916 \n H_a 0 0 2.\n hydrogen_2 0 2 0 charge 1\n bqO 4 0 0\n"
                  " Bq9 0 0 -3\n X 0 0 7\n 2 0 0 12\n He1 9 9 9 0 0 0 mass 3\nend\n"
                  "set geometry mine\n"
                  "basis; * library sto-3g; bqO library sto-3g; bq9 s; 1 1; end\ntask scf\n");
    const fm_atom *a   = d.task[0].molecule->atom;
    const int      z[] = {8, 1, 1, 0, 0, 0, 2, 2};
    for (int i = 0; i < 8; i++) assert_int_equal(a[i].z, z[i]);
    near_to(a[0].mass, 17.99916, 0);
    near_to(a[7].mass, 3, 0);
    near_to(a[3].charge, 0, 0);
    assert_string_equal(a[1].tag, "H_a");
    assert_int_equal(fm_molecule_electrons(d.task[0].molecule), 14);
    assert_int_equal(d.task[0].basis->n_function, 5 + 1 + 1 + 5 + 1 + 1); /* Bq9 is not bq9 */
    fm_deck_fini(&d);
}

/* NWChem: lines of a tag add up; `*` adds to what a tag has; a tag without lines of its
 * own takes those of its element; exceptions and tags know upper and lower case. */
static void basis_by_tag(void **state)
{
    (void)state;
    static const struct {
        const char *basis;
        int         n_function;
    } want[] = {{"h library 6-31g; o library sto-3g", 5 + 2 + 2},
                {"H1 library 6-31g; h library sto-3g; oxygen library sto-3g", 5 + 2 + 1},
                {"* library sto-3g; H1 library 6-31g", 5 + 3 + 1},
                {"* library 6-31g except O; O library sto-3g", 5 + 2 + 2},
                {"* library 6-31g except h1; H1 S; 1 1", 9 + 3 + 2},
                {"H* library 6-31g; O library O sto-3g", 5 + 2 + 2},
                {"O library cc-pvdz; O S; 0.05 1.0; H library \"STO-3G\"", 15 + 1 + 1 + 1},
                {"H s; 3.0 1 0; 0.5 1 1; .1 0 1; O sp; 1.0 .5 1.; 0.3D0 0.5 2.d-1; O L; 0.1 1 1",
                 8 + 2 + 2}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        char text[400] = "geometry; O 0 0 0; H1 0 0 1; H2 0 1 0; end; basis cartesian;";
        strcat(strcat(text, want[i].basis), "; end\ntask scf\n");
        fm_deck d = good_deck(text);
        if (d.task[0].basis->n_function != want[i].n_function)
            fail_msg("%s: %d functions", want[i].basis, d.task[0].basis->n_function);
        fm_deck_fini(&d);
    }
}

static void named_blocks(void **state)
{
    (void)state;
    fm_deck d = good_deck(
        H2 "geometry far; h 0 0 0; h 0 0 5; end\nbasis large spherical; h library cc-pvdz; end\n"
           "task scf\nset geometry far\ntask scf\nset \"ao basis\" large\ntask scf\n"
           "unset geometry\ntask scf\n" H2_GEOMETRY "task scf\n");
    near_to(fm_molecule_repulsion(d.task[0].molecule), 0.71510439054, 1e-10);
    near_to(fm_molecule_repulsion(d.task[1].molecule), 0.1058354497983, 1e-10);
    assert_int_equal(d.task[1].basis->n_function, 2);
    assert_int_equal(d.task[2].basis->n_function, 10);
    near_to(fm_molecule_repulsion(d.task[3].molecule), 0.71510439054, 1e-10);
    assert_ptr_not_equal(d.task[3].molecule, d.task[4].molecule);
    fm_deck_fini(&d);
}

static void amounts_of_memory(void **state)
{
    (void)state;
    static const struct {
        const char *words;
        size_t      bytes;
    } want[] = {{"memory 400 mb", 400ul << 20},
                {"memory total 2 gb", 2ul << 30},
                {"memory 1000000", 8000000},
                {"memory total 600 mb stack 100 mb heap 100 mb global 400 mb", 600ul << 20},
                {"memory stack 10 kb heap 20 kb", 30ul << 10},
                {"memory 1 mw verify", 8ul << 20}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        char text[256];
        strcat(strcpy(text, want[i].words), "\n" H2 "task scf");
        fm_deck d = good_deck(text);
        assert_true(d.memory_bytes == want[i].bytes);
        fm_deck_fini(&d);
    }
}

static void words_that_change_nothing(void **state)
{
    (void)state;
    fm_deck d = good_deck("restart job\necce_print out\nprint low\nnoprint \"x\"\nset int:acc_std "
                          "1e-20\nset lindep:tol 1d-6\n" H2
                          "scf; sym off; adapt on; diis; level pcg 0.3 1e-3 0 nr 0.1; print high; "
                          "nr 0.1; maxsub 7; end\n"
                          "dft; noio; decomp; mulliken; sym off; grid fine nodisk; end\n"
                          "task scf energy\ntask dft ignore\n");
    assert_int_equal(d.is_restart, 1);
    near_to(d.task[0].lindep, 1e-6, 0);
    assert_int_equal(d.task[1].goes_on, 1);
    fm_deck_fini(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),
        cmocka_unit_test(a_deck_as_competitions_have_it),
        cmocka_unit_test(dft_leaves_its_kind_of_orbitals),
        cmocka_unit_test(later_blocks_add_to_earlier_ones),
        cmocka_unit_test(functionals),
        cmocka_unit_test(tolerances),
        cmocka_unit_test(units_of_length),
        cmocka_unit_test(atoms_with_tags),
        cmocka_unit_test(basis_by_tag),
        cmocka_unit_test(named_blocks),
        cmocka_unit_test(amounts_of_memory),
        cmocka_unit_test(words_that_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
