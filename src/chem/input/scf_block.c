/* SPDX-License-Identifier: Apache-2.0 */
/* scf ... end.  What is set stays set for later tasks. */
#include "chem/input/state.h"

static fm_status read_thresh(fm__state *s)
{
    return fm__need_positive(&s->words, &s->scf.thresh, "thresh");
}

static fm_status read_tol2e(fm__state *s)
{
    return fm__need_positive(&s->words, &s->scf.tol2e, "tol2e");
}

/* NWChem counts Newton steps, of about three Fock matrices each (19 for the seven steps of
 * twelve waters); here an iteration is one Fock matrix. */
enum { FOCK_PER_STEP = 3 };

static fm_status read_maxiter(fm__state *s)
{
    int n_step;
    FM_TRY(fm__need_int(&s->words, &n_step, 1, 100000, "maxiter"));
    s->scf.max_iterations = FOCK_PER_STEP * n_step;
    return FM_OK;
}

static fm_status read_nopen(fm__state *s)
{
    return fm__need_int(&s->words, &s->scf.n_open, 0, 1000, "nopen");
}

/* rhf and rohf: open shells make it ROHF. */
static fm_status read_restricted(fm__state *s)
{
    s->scf.is_uhf = 0;
    return FM_OK;
}

static fm_status read_uhf(fm__state *s)
{
    s->scf.is_uhf = 1;
    return FM_OK;
}

static fm_status read_scftype(fm__state *s)
{
    static const fm__keyword type[] = {
        {"rhf", read_restricted}, {"rohf", read_restricted}, {"uhf", read_uhf}, {0}};
    const char *word;
    FM_TRY(fm__need_word(&s->words, &word, "rhf, rohf or uhf"));
    const fm__keyword *k = fm__find(type, word);
    return k ? k->read(s) : fm__bad(&s->words, "scftype \"%s\" is unknown", word);
}

#define SPIN(name, open)                                                                           \
    static fm_status read_##name(fm__state *s)                                                     \
    {                                                                                              \
        s->scf.n_open = (open);                                                                    \
        return FM_OK;                                                                              \
    }
SPIN(singlet, 0)
SPIN(doublet, 1)
SPIN(triplet, 2)
SPIN(quartet, 3)
SPIN(quintet, 4)
SPIN(sextet, 5)
SPIN(septet, 6)
SPIN(octet, 7)

static fm_status read_direct(fm__state *s) { return fm__read_direct(&s->words, &s->scf.method); }

static fm_status read_semidirect(fm__state *s)
{
    return fm__read_semidirect(&s->words, &s->scf.method);
}

static fm_status read_vectors(fm__state *s) { return fm__read_vectors(&s->words, &s->scf.method); }

static fm_status read_print(fm__state *s)
{
    return fm__read_print(&s->words, &s->scf.method.quiet);
}

static fm_status read_noprint(fm__state *s)
{
    return fm__read_noprint(&s->words, &s->scf.method.quiet);
}

static fm_status read_sym(fm__state *s) { return fm__read_sym(&s->words, &s->scf.method); }

static fm_status read_nosym(fm__state *s)
{
    s->scf.method.without_symmetry = 1;
    return FM_OK;
}

static fm_status read_adapt(fm__state *s)
{
    int is_on;
    return fm__read_on_off(&s->words, &is_on);
}

/* level [pcg x [tol x]] [nr x [tol x]]: shifts of NWChem's Newton solver, which is not
 * the one used here; they are read and have no effect. */
static fm_status read_level(fm__state *s)
{
    double x;
    while (fm__take(&s->words, "pcg") || fm__take(&s->words, "nr")) {
        FM_TRY(fm__need_real(&s->words, &x, "a level shift"));
        if (fm__take_real(&s->words, &x)) FM_TRY(fm__need_real(&s->words, &x, "a level shift"));
    }
    return FM_OK;
}

/* A number that tunes NWChem's solver or task sizes. */
static fm_status read_number(fm__state *s)
{
    double x;
    return fm__need_real(&s->words, &x, "a number");
}

static fm_status read_nothing(fm__state *s)
{
    (void)s;
    return FM_OK;
}

static const fm__keyword lines[] = {
    /* clang-format off */
    {"thresh", read_thresh},     {"tol2e", read_tol2e},           {"maxiter", read_maxiter},
    {"nopen", read_nopen},       {"scftype", read_scftype},
    {"rhf", read_restricted},           {"rohf", read_restricted},             {"uhf", read_uhf},
    {"singlet", read_singlet},   {"doublet", read_doublet},       {"triplet", read_triplet},
    {"quartet", read_quartet},   {"quintet", read_quintet},       {"sextet", read_sextet},
    {"septet", read_septet},     {"octet", read_octet},
    {"direct", read_direct},     {"semidirect", read_semidirect}, {"vectors", read_vectors},
    {"print", read_print},       {"noprint", read_noprint},
    {"sym", read_sym},           {"adapt", read_adapt},
    {"nosym", read_nosym},       {"noadapt", read_nothing},
    {"diis", read_nothing},      {"nodiis", read_nothing},        {"profile", read_nothing},
    {"diisbas", read_number},    {"maxsub", read_number},         {"chunk", read_number},
    {"taskbf", read_number},     {"nr", read_number},             {"level", read_level},
    {0},
    /* clang-format on */
};

fm_status fm__read_scf(fm__state *s)
{
    FM_TRY(fm__need_end(&s->words));
    return fm__read_block(s, "scf", lines);
}
