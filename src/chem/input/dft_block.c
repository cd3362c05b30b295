/* SPDX-License-Identifier: Apache-2.0 */
/* dft ... end.  What is set stays set for later tasks; `xc` replaces the functional. */
#include "chem/input/state.h"

static fm_status read_xc(fm__state *s) { return fm__read_mix(&s->words, &s->dft.mix); }

static fm_status read_grid(fm__state *s)
{
    static const struct {
        const char   *name;
        fm_grid_level level;
    } grid[] = {{"xcoarse", FM_GRID_XCOARSE}, {"coarse", FM_GRID_COARSE},
                {"medium", FM_GRID_MEDIUM},   {"fine", FM_GRID_FINE},
                {"xfine", FM_GRID_XFINE},     {"huge", FM_GRID_HUGE}};
    const char *word;
    do {
        FM_TRY(fm__need_word(&s->words, &word, "a grid"));
        size_t i = 0;
        while (i < sizeof grid / sizeof *grid && !fm__same(grid[i].name, word)) i++;
        if (i == sizeof grid / sizeof *grid) {
            if (fm__same(word, "nodisk") || fm__same(word, "erf1")) continue;
            return fm__bad(&s->words, "grid \"%s\" is not supported (xcoarse to huge)", word);
        }
        s->dft.level = grid[i].level;
    } while (fm__peek(&s->words));
    return FM_OK;
}

static fm_status read_iterations(fm__state *s)
{
    return fm__need_int(&s->words, &s->dft.max_iterations, 1, 100000, "iterations");
}

static fm_status read_mult(fm__state *s)
{
    int mult;
    FM_TRY(fm__need_int(&s->words, &mult, -1000, 1000, "mult"));
    if (mult < 1) return fm__bad(&s->words, "mult %d is not supported (1 or more)", mult);
    s->dft.multiplicity = mult;
    return FM_OK;
}

static fm_status read_odft(fm__state *s)
{
    s->dft.is_odft = 1;
    return FM_OK;
}

static fm_status read_dft(fm__state *s)
{
    s->dft.is_odft = 0;
    return FM_OK;
}

/* One word of a `convergence` line with its value.  Aids of NWChem's solver that do not
 * move the converged energy are read and have no effect. */
static fm_status read_aid(fm__words *w, fm__dft *d)
{
    static const char *const with_number[] = {"dampon",  "dampoff", "diison", "diisoff", "levlon",
                                              "levloff", "ncydp",   "ncyds",  "ncysh",   "hl_tol",
                                              "damp",    "diis",    NULL};
    double                   x;
    for (const char *const *name = with_number; *name; name++)
        if (fm__take(w, *name)) {
            (void)fm__take_real(w, &x);
            return FM_OK;
        }
    if (fm__take(w, "nolevelshifting")) {
        d->level_shift = 0;
        return FM_OK;
    }
    if (fm__take(w, "nodamping") || fm__take(w, "nodiis") || fm__take(w, "fast") ||
        fm__take(w, "stable"))
        return FM_OK;
    const char *word = fm__next(w);
    return fm__bad(w, "convergence \"%s\" is not supported", word);
}

static fm_status read_convergence(fm__state *s)
{
    fm__words *w = &s->words;
    fm__dft   *d = &s->dft;
    while (fm__peek(w)) {
        if (fm__take(w, "energy"))
            FM_TRY(fm__need_positive(w, &d->tol_energy, "convergence energy"));
        else if (fm__take(w, "density"))
            FM_TRY(fm__need_positive(w, &d->tol_density, "convergence density"));
        else if (fm__take(w, "gradient"))
            FM_TRY(fm__need_positive(w, &d->tol_gradient, "convergence gradient"));
        else if (fm__take(w, "lshift"))
            FM_TRY(fm__need_real(w, &d->level_shift, "a level shift"));
        else
            FM_TRY(read_aid(w, d));
    }
    return FM_OK;
}

static fm_status read_tolerances(fm__state *s)
{
    fm__words *w = &s->words;
    fm__dft   *d = &s->dft;
    int        ignored;
    while (fm__peek(w)) {
        if (fm__take(w, "tight")) {
            d->acc_coul = d->acc_coul < 10 ? 10 : d->acc_coul;
            d->acc_ao   = d->acc_ao < 20 ? 20 : d->acc_ao;
            d->tol_rho  = d->tol_rho > 1e-11 ? 1e-11 : d->tol_rho;
        } else if (fm__take(w, "tol_rho"))
            FM_TRY(fm__need_positive(w, &d->tol_rho, "tol_rho"));
        else if (fm__take(w, "accaofunc"))
            FM_TRY(fm__need_int(w, &d->acc_ao, 1, 200, "accAOfunc"));
        else if (fm__take(w, "acccoul"))
            FM_TRY(fm__need_int(w, &d->acc_coul, 1, 30, "accCoul"));
        else if (fm__take(w, "acccdfunc") || fm__take(w, "accxcfunc")) /* of fitting bases */
            FM_TRY(fm__need_int(w, &ignored, 1, 200, "an accuracy"));
        else {
            const char *word = fm__next(w);
            return fm__bad(w, "tolerance \"%s\" is not supported", word);
        }
    }
    return FM_OK;
}

static fm_status read_direct(fm__state *s) { return fm__read_direct(&s->words, &s->dft.method); }

static fm_status read_semidirect(fm__state *s)
{
    return fm__read_semidirect(&s->words, &s->dft.method);
}

static fm_status read_vectors(fm__state *s) { return fm__read_vectors(&s->words, &s->dft.method); }

static fm_status read_print(fm__state *s)
{
    return fm__read_print(&s->words, &s->dft.method.quiet);
}

static fm_status read_noprint(fm__state *s)
{
    return fm__read_noprint(&s->words, &s->dft.method.quiet);
}

static fm_status read_sym(fm__state *s) { return fm__read_sym(&s->words, &s->dft.method); }

static fm_status read_adapt(fm__state *s)
{
    int is_on;
    return fm__read_on_off(&s->words, &is_on);
}

static fm_status read_tol2e(fm__state *s)
{
    double x;
    FM_TRY(fm__need_positive(&s->words, &x, "tol2e"));
    for (s->dft.acc_coul = 1; s->dft.acc_coul < 30 && x < 0.99;) x *= 10, s->dft.acc_coul++;
    s->dft.acc_coul--;
    return FM_OK;
}

static fm_status read_nothing(fm__state *s)
{
    (void)s;
    return FM_OK;
}

static const fm__keyword lines[] = {
    /* clang-format off */
    {"xc", read_xc},                   {"grid", read_grid},
    {"iterations", read_iterations},   {"maxiter", read_iterations},
    {"convergence", read_convergence}, {"tolerances", read_tolerances}, {"tol2e", read_tol2e},
    {"mult", read_mult},               {"odft", read_odft},             {"dft", read_dft},
    {"direct", read_direct},           {"semidirect", read_semidirect}, {"vectors", read_vectors},
    {"print", read_print},             {"noprint", read_noprint},
    {"sym", read_sym},                 {"adapt", read_adapt},
    {"noio", read_nothing},            {"incore", read_nothing},        {"decomp", read_nothing},
    {"mulliken", read_nothing},
    {0},
    /* clang-format on */
};

fm_status fm__read_dft(fm__state *s)
{
    FM_TRY(fm__need_end(&s->words));
    return fm__read_block(s, "dft", lines);
}
