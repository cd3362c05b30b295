/* SPDX-License-Identifier: Apache-2.0 */
/* Every kind of mistake is one sentence with file, line and word. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "chem_deck_support.h"

typedef struct {
    const char *text, *why;
} mistake;

static void all_bad(const mistake *m, size_t n)
{
    for (size_t i = 0; i < n; i++) bad_deck(m[i].text, m[i].why);
}
#define ALL_BAD(list) all_bad(list, sizeof(list) / sizeof *(list))

#define A_NAME_OF_64 "a-name-of-sixty-four-characters-which-is-a-quarter-of-the-limit-"

static void in_the_text(void **state)
{
    (void)state;
    static const mistake list[] = {
        {"", "deck: the deck has no task"},
        {H2 "scf; end", "deck: the deck has no task"},
        {"start x\ntitle \"never closed\n", "deck:2: a quote is not closed"},
        {"\n\nfrobnicate 3\n", "deck:3: directive \"frobnicate\" is not supported"},
        {"start a b", "deck:1: \"b\" is not understood here"},
        {"charge", "deck:1: expected the molecule's charge at the end of the line"},
        {"charge abc", "deck:1: expected the molecule's charge, found \"abc\""},
        {"charge 0.5", "deck:1: charge 0.5 is not a whole number of electrons"},
        {"memory much", "expected an amount of memory, found \"much\""},
        {"memory -3 mb", "an amount of memory must be positive"},
        {"echo\nset foo:bar 3", "deck:2: set \"foo:bar\" is not supported"},
        {"unset foo", "unset \"foo\" is not supported"},
        {"start " A_NAME_OF_64 A_NAME_OF_64 A_NAME_OF_64 A_NAME_OF_64, "more than 255 characters"},
    };
    ALL_BAD(list);
    fm_deck d = {0};
    assert_int_equal(fm_deck_parse(&d, "deck", "start\0x", 7), FM_E_FORMAT);
    assert_int_equal(fm_deck_read(&d, "/nowhere/to/be.nw"), FM_E_IO);
}

static void in_geometries(void **state)
{
    (void)state;
    static const mistake list[] = {
        {"geometry units feet\n", "deck:1: unit \"feet\" is not supported"},
        {"geometry one two", "geometry option \"two\" is unknown"},
        {"geometry adjust", "geometry option \"adjust\" is not supported"},
        {"geometry\n h 0 0 0\n", "deck:2: the geometry block has no end"},
        {"geometry\n h 0 0 0\nbasis\n", "deck:3: \"basis\": the geometry block before it has no end"},
        {"geometry\n zmatrix\n h\nbasis", "deck:4: \"basis\": the zmatrix block before it has no end"},
        {"geometry\n zmatrix\n h\n end\ntask scf", "deck:5: \"task\": the geometry block before it"},
        {"geometry; end", "the geometry has no atoms"},
        {"geometry\n qq 0 0 0\nend", "deck:2: \"qq\" is neither an element nor a ghost"},
        {"geometry\n 99 0 0 0\nend", "\"99\" is neither"},
        {"geometry\n h 0 0\nend", "deck:2: expected a coordinate at the end of the line"},
        {"geometry\n h 0 0 zero\nend", "deck:2: expected a coordinate, found \"zero\""},
        {"geometry\n h 0 0 1e300\nend", "atom 1 (h) has coordinate"},
        {"geometry; h 0 0 0 velocity 3; end", "atom option \"velocity\" is not supported"},
        {"geometry; bq 0 0 0 charge 0.5; end", "point charges (bq) are not supported"},
        {"geometry; h 0 0 0 charge -1; end", "nuclear charge -1 is negative"},
        {"geometry; h 0 0 0; h 0 0 0.001; end", "atoms 1 (h) and 2 (h) lie on each other"},
        {"geometry\n zmatrix\n h\n", "deck:3: the zmatrix has no end"},
        {"geometry\n h 0 0 0\n zmat\n", "deck:3: a zmatrix cannot follow atoms"},
        {"geometry; zmat\n h\n h 1\nend", "deck:3: expected a length at the end of the line"},
        {"geometry; zmat\n h\n h 2 1.0\nend", "deck:3: \"2\" is no earlier atom"},
        {"geometry; zmat\n h\n h o 1.0\nend", "deck:3: \"o\" is no earlier atom"},
        {"geometry; zmat\n h\n h 1 r\nend", "deck:3: \"r\" has no value"},
        {"geometry; zmat\n h\n h 1 -1.0\nend", "deck:3: length -1 is not positive"},
        {"geometry; zmat\n h\n h 1 1.0\n h 1 1. 1 90\nend", "deck:4: \"1\" is named twice"},
        {"geometry; zmat\n o\n h 1 1\n h 2 1 1 180\n h 1 1 2 90 3 0\nend",
         "deck:5: the angles of this atom define no place"},
        {"geometry; zmat\n o\n h 1 1\n h 1 1 2 90\n h 1 1 2 10 3 10 1\nend",
         "deck:5: the angles of this atom define no place"},
        {"geometry; zmat\n o\n h 1 1\n h 1 1 2 90\n h 1 1 2 90 3 90 2\nend",
         "deck:5: +1 or -1 must be -1 to 1"},
        {"geometry; zmat; o; variables\n r\nend",
         "deck:2: expected a value at the end of the line"},
        {"geometry; system crystal", "\"system\" is not supported"},
        {"geometry; load x.xyz; end", "\"load\" is not supported"},
        {"geometry; symmetry d9h; h 0 0 0; end", "symmetry \"d9h\" is not supported"},
        {"geometry units au; symmetry c2v tol 1e-3; h 0 0.002 0; end", "lie on each other"},
        {"geometry; symmetry c7v; h 0 0 0; end", "symmetry \"c7v\" is not supported"},
        {"geometry; hydrogen_of_water_1 0 0 0; end", "has more than 15 characters"},
        {H2_BASIS "task scf", "deck:2: no geometry named \"geometry\" before this task"},
    };
    ALL_BAD(list);
}

static void in_basis_sets(void **state)
{
    (void)state;
    static const mistake list[] = {
        {H2_GEOMETRY "task scf", "deck:2: no basis named \"ao basis\" before this task"},
        {H2_GEOMETRY "basis\n * library cc-pv9z\nend",
         "deck:3: basis set \"cc-pv9z\" is not in the library"},
        {H2_GEOMETRY "basis; o library sto-3g; end\ntask scf",
         "basis \"ao basis\" has nothing for atom \"h\""},
        {"geometry; fe 0 0 0; end; basis; * library cc-pvdz; end\ntask scf",
         "basis set cc-pvdz has no Fe"},
        {"basis a b", "basis option \"b\" is unknown"},
        {"basis rel", "basis option \"rel\" is not supported"},
        {"basis \"cd basis\"; h library sto-3g; end",
         "fitting with a \"cd basis\" is not supported"},
        {"basis\nend", "the basis has no shells"},
        {"basis\n h library sto-3g\n", "the basis block has no end"},
        {"basis\n h library sto-3g\nscf; end", "deck:3: \"scf\": the basis block before it has no end"},
        {"basis; h; end", "expected \"library\" or a type of shell"},
        {"basis; h q; end", "\"q\" is neither \"library\" nor a shell from S to G"},
        {"basis; h h; 1 1; end", "\"h\" is neither \"library\" nor a shell"},
        {"basis; qq s; 1 1; end", "\"qq\" is neither an element nor a ghost"},
        {"basis\n h s\nend", "the shell of \"h\" has no primitives"},
        {"basis\n h s\n 1.0\nend", "deck:3: an exponent without coefficients"},
        {"basis\n h s\n 1.0 0.5\n 2.0 0.5 0.5\nend",
         "deck:4: this line has 2 coefficients, the one before 1"},
        {"basis\n h s\n 1.0 0.5\n 2.0 x\nend", "deck:4: expected a coefficient, found \"x\""},
        {"basis\n h s\n -1.0 0.5\nend", "deck:3: exponent -1 is not positive"},
        {"basis\n h s\n 1.0 0.0\nend", "contraction 1 of a shell has norm 0"},
        {"basis\n h sp\n 1.0 0.5\nend", "an SP shell has an exponent and two coefficients a line"},
        {"basis; * s; 1 1; end", "shells need a tag without *"},
        {"basis; h library; end", "expected the name of a basis set"},
        {"basis; h library sto-3g file x; end", "\"file\" is not understood here"},
    };
    ALL_BAD(list);
}

static void in_scf_and_dft_blocks(void **state)
{
    (void)state;
    static const mistake list[] = {
        {"scf; mp2; end", "\"mp2\" is not supported in a scf block"},
        {"scf\n thresh\nend", "deck:2: expected thresh at the end of the line"},
        {"scf; thresh 0; end", "thresh must be positive, found 0"},
        {"scf; maxiter 0; end", "maxiter must be 1 to"},
        {"scf; nopen -1; end", "nopen must be 0 to"},
        {"scf; rhf uhf; end", "\"uhf\" is not understood here"},
        {"scf; scftype mcscf; end", "scftype \"mcscf\" is unknown"},
        {"scf; vectors input project small a.movecs; end",
         "vectors input \"project\" is not supported"},
        {"scf; vectors swap 5 6; end", "vectors \"swap\" is not supported"},
        {"scf; vectors input; end", "expected a file of vectors at the end of the line"},
        {"scf; semidirect memsize lots; end", "expected a number of words, found \"lots\""},
        {"scf; singlet", "the scf block has no end"},
        {"scf; singlet\ntask scf", "deck:2: \"task\": the scf block before it has no end"},
        {"dft; xc; end", "expected the name of a functional"},
        {"dft; xc b3lip; end", "b3lip"},
        {"dft; grid ultra; end", "grid \"ultra\" is not supported"},
        {"dft; grid lebedev 70 14; end", "grid \"lebedev\" is not supported"},
        {"dft; mult 0; end", "mult 0 is not supported"},
        {"dft; rodft; end", "\"rodft\" is not supported in a dft block"},
        {"dft; disp vdw 3; end", "\"disp\" is not supported in a dft block"},
        {"dft; convergence rabuck; end", "convergence \"rabuck\" is not supported"},
        {"dft; tolerances accqrad 9; end", "tolerance \"accqrad\" is not supported"},
        {"dft; iterations many; end", "expected iterations, found \"many\""},
    };
    ALL_BAD(list);
}

static void in_tasks(void **state)
{
    (void)state;
    static const mistake list[] = {
        {H2 "task", "deck:3: expected a theory"},
        {H2 "task ccsd", "deck:3: task \"ccsd\" is not supported (scf, dft)"},
        {H2 "task scf optimize", "deck:3: task scf \"optimize\" is not supported (energy)"},
        {H2 "task dft gradient", "task dft \"gradient\" is not supported (energy)"},
        {H2 "task scf energy later", "\"later\" is not understood here"},
        {H2 "scf; doublet; end; task scf", "2 electrons cannot have multiplicity 2"},
        {H2 "scf; quintet; end; task scf", "2 electrons cannot have multiplicity 5"},
        {H2 "dft; mult 2; end; task dft", "2 electrons cannot have multiplicity 2"},
        {H2 "charge 1\ntask scf", "1 electrons cannot have multiplicity 1"},
        {H2 "charge 2\ntask scf", "charge 2 leaves no electrons"},
        {H2 "charge -4\ntask scf", "3 electrons of one spin do not fit into 2 basis functions"},
        {"geometry; bqh 0 0 0; end; basis; bqh library sto-3g; end; task scf",
         "charge 0 leaves no electrons"},
    };
    ALL_BAD(list);
}

/* Cut anywhere, a deck is read or refused; nothing leaks and nothing is read past its end. */
static void cut_off_decks(void **state)
{
    (void)state;
    static const char text[] =
        "start h2o; charge 0\ngeometry units au\n O 0 0 .2\n h1 0 1.4 -.9\n h2 0 -1.4 -.9\nend\n"
        "basis spherical\n * library 6-31g except h2\n h2 s \n 5.4 .15 \\\n\n .8 1.\nend\n"
        "dft; xc becke88 nonlocal .7 slater; tolerances tight; end; task dft energy ignore\n";
    for (size_t n = 0; n < sizeof text; n++) {
        fm_deck d = {0};
        if (fm_deck_parse(&d, "deck", text, n) == FM_OK) fm_deck_fini(&d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_the_text),   cmocka_unit_test(in_geometries),
        cmocka_unit_test(in_basis_sets), cmocka_unit_test(in_scf_and_dft_blocks),
        cmocka_unit_test(in_tasks),      cmocka_unit_test(cut_off_decks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
