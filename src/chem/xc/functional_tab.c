/* SPDX-License-Identifier: Apache-2.0 */
/* Every name was checked by an energy of NWChem 7.0.2 (tests/unit/chem_xc_functional.c). */
#include <stddef.h>
#include <string.h>

#include <xc.h>

#include "chem/xc/functional_internal.h"

/* clang-format off */
static const fm__name names[] = {
    {"hfexch",    FM_NAME_EXACT,       0, 0},
    {"slater",    FM_NAME_LOCAL,       XC_LDA_X, 0},
    {"vwn_1",     FM_NAME_LOCAL,       XC_LDA_C_VWN_1, 0},
    {"vwn_2",     FM_NAME_LOCAL,       XC_LDA_C_VWN_2, 0},
    {"vwn_3",     FM_NAME_LOCAL,       XC_LDA_C_VWN_3, 0},
    {"vwn_4",     FM_NAME_LOCAL,       XC_LDA_C_VWN_4, 0},
    {"vwn_5",     FM_NAME_LOCAL,       XC_LDA_C_VWN, 0},
    {"vwn_1_rpa", FM_NAME_LOCAL,       XC_LDA_C_VWN_RPA, 0},
    {"perdew81",  FM_NAME_LOCAL,       XC_LDA_C_PZ, 0},
    {"pw91lda",   FM_NAME_LOCAL,       XC_LDA_C_PW_MOD, 0},
    {"becke88",   FM_NAME_EXCHANGE,    XC_GGA_X_B88, XC_LDA_X},
    {"xpbe96",    FM_NAME_EXCHANGE,    XC_GGA_X_PBE, XC_LDA_X},
    {"rpbe",      FM_NAME_EXCHANGE,    XC_GGA_X_RPBE, XC_LDA_X},
    {"revpbe",    FM_NAME_EXCHANGE,    XC_GGA_X_PBE_R, XC_LDA_X},
    {"gill96",    FM_NAME_EXCHANGE,    XC_GGA_X_G96, XC_LDA_X},
    {"xperdew91", FM_NAME_EXCHANGE,    XC_GGA_X_PW91_MOD, XC_LDA_X},
    {"mpw91",     FM_NAME_EXCHANGE,    XC_GGA_X_MPW91, XC_LDA_X},
    {"becke86b",  FM_NAME_EXCHANGE,    XC_GGA_X_B86_MGC, XC_LDA_X},
    {"optx",      FM_NAME_OPTX,        XC_GGA_X_OPTX, XC_LDA_X},
    {"xperdew86", FM_NAME_TOTAL,       XC_GGA_X_PW86, 0},
    {"lyp",       FM_NAME_TOTAL,       XC_GGA_C_LYP, 0},
    {"op",        FM_NAME_TOTAL,       XC_GGA_C_OP_B88, 0},
    {"perdew86",  FM_NAME_CORRELATION, XC_GGA_C_P86, XC_LDA_C_PZ},
    {"perdew91",  FM_NAME_CORRELATION, XC_GGA_C_PW91, XC_LDA_C_PW},
    {"cpbe96",    FM_NAME_CORRELATION, XC_GGA_C_PBE, XC_LDA_C_PW_MOD},
};

#define WHOLE FM_XC_WHOLE
#define NL    FM_XC_NONLOCAL
static const fm__combination combinations[] = {
    {.name = "b3lyp", .term = {{"hfexch", 0.2, WHOLE}, {"slater", 0.8, WHOLE}, {"becke88", 0.72, NL},
                     {"vwn_1_rpa", 0.19, WHOLE}, {"lyp", 0.81, WHOLE}}},
    {.name = "b3p86", .term = {{"hfexch", 0.2, WHOLE}, {"slater", 0.8, WHOLE}, {"becke88", 0.72, NL},
                     {"vwn_1_rpa", 1, WHOLE}, {"perdew86", 0.81, NL}}},
    {.name = "b3pw91", .term = {{"hfexch", 0.2, WHOLE}, {"slater", 0.8, WHOLE}, {"becke88", 0.72, NL},
                      {"pw91lda", 1, WHOLE}, {"perdew91", 0.81, NL}}},
    {.name = "beckehandh", .term = {{"hfexch", 0.5, WHOLE}, {"slater", 0.5, WHOLE}, {"pw91lda", 0.5, WHOLE}}},
    {.name = "bhlyp", .term = {{"hfexch", 0.5, WHOLE}, {"slater", 0.5, WHOLE}, {"becke88", 0.5, NL},
                     {"lyp", 1, WHOLE}}},
    {.name = "pbe0", .term = {{"hfexch", 0.25, WHOLE}, {"xpbe96", 0.75, WHOLE}, {"cpbe96", 1, WHOLE}}},
    {.name = "pbe96", .term = {{"xpbe96", 1, WHOLE}, {"cpbe96", 1, WHOLE}}},
    {.name = "mpw1k", .term = {{"hfexch", 0.428, WHOLE}, {"mpw91", 0.572, WHOLE}, {"perdew91", 1, WHOLE}}},
    {.name = "bop", .term = {{"becke88", 1, WHOLE}, {"op", 1, WHOLE}}},
    {.name = "ft97", .whole = XC_GGA_X_FT97_B, .whole_too = XC_GGA_C_FT97},
    {.name = "sogga", .whole = XC_GGA_X_SOGGA, .whole_too = XC_GGA_C_PBE},
    {.name = "sogga11", .whole = XC_GGA_X_SOGGA11, .whole_too = XC_GGA_C_SOGGA11},
    {.name = "sogga11-x", .whole = XC_HYB_GGA_X_SOGGA11_X, .whole_too = XC_GGA_C_SOGGA11_X, .exact = 0.4015},
    /* Not NWChem's names: short ones for what it calls becke88 lyp and pbe96. */
    {.name = "blyp", .term = {{"becke88", 1, WHOLE}, {"lyp", 1, WHOLE}}},
    {.name = "pbe", .term = {{"xpbe96", 1, WHOLE}, {"cpbe96", 1, WHOLE}}},
};

#define TAU        "depends on the kinetic-energy density, which is not supported"
#define RANGE      "splits exchange by range, which is not supported"
#define DISPERSION "contains a dispersion term, which is not supported"
#define DEFINITION "differs between NWChem and libxc, which evaluates functionals here"
static const fm__refusal refusals[] = {
    {"bc95", TAU}, {"mpw1b95", TAU}, {"mpwb1k", TAU}, {"b1b95", TAU}, {"bb1k", TAU}, {"pw6b95", TAU},
    {"pwb6k", TAU}, {"m05", TAU}, {"m05-2x", TAU}, {"vs98", TAU}, {"m06-l", TAU}, {"m06-hf", TAU},
    {"m06", TAU}, {"m06-2x", TAU}, {"revm06", TAU}, {"revm06-l", TAU}, {"m08-hx", TAU}, {"m08-so", TAU},
    {"m11-l", TAU}, {"mn12-l", TAU}, {"mn15-l", TAU}, {"mn15", TAU}, {"xpkzb99", TAU}, {"cpkzb99", TAU},
    {"xtpss03", TAU}, {"ctpss03", TAU}, {"xctpssh", TAU}, {"dldf", TAU}, {"scan", TAU}, {"scan0", TAU},
    {"scanl", TAU}, {"rscan", TAU}, {"r2scan", TAU}, {"r2scan0", TAU}, {"r2scanl", TAU}, {"mvs", TAU},
    {"m11", RANGE}, {"revm11", RANGE}, {"mn12-sx", RANGE}, {"m06-sx", RANGE}, {"n12-sx", RANGE},
    {"hse03", RANGE}, {"srhfexch", RANGE}, {"xbnl07", RANGE}, {"xcamb88", RANGE}, {"xcampbe96", RANGE},
    {"xcamlsd", RANGE}, {"xwpbe", RANGE}, {"cam-s12g", RANGE}, {"cam-s12h", RANGE}, {"wb97", RANGE},
    {"wb97x", RANGE}, {"wb97x-d3", RANGE},
    {"becke97-d", DISPERSION}, {"ssb-d", DISPERSION}, {"s12g", DISPERSION}, {"s12h", DISPERSION},
    {"mp2", "needs second-order perturbation theory, which is not supported"},
    {"b2plyp", "needs second-order perturbation theory, which is not supported"},
    {"lb94", "is a model potential without an energy"},
    {"hcth", DEFINITION}, {"hcth120", DEFINITION}, {"hcth147", DEFINITION}, {"hcth407", DEFINITION},
    {"hcth407p", DEFINITION}, {"hcthp14", DEFINITION}, {"hle16", DEFINITION}, {"becke97", DEFINITION},
    {"becke97-1", DEFINITION}, {"becke97-2", DEFINITION}, {"becke97-3", DEFINITION},
    {"becke97gga1", DEFINITION}, {"becke98", DEFINITION}, {"xhcth", DEFINITION}, {"chcth", DEFINITION},
    {"xbecke97", DEFINITION}, {"cbecke97", DEFINITION}, {"xbecke97-1", DEFINITION},
    {"cbecke97-1", DEFINITION}, {"n12", DEFINITION}, {"kt1", DEFINITION}, {"kt2", DEFINITION},
    {"pbeop", DEFINITION}, {"optc", DEFINITION}, {"acm", DEFINITION}, {"xft97", DEFINITION},
    {"cft97", DEFINITION},
};
/* clang-format on */

#define FIND(table, wanted)                                                                        \
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)                                    \
        if (strcmp(table[i].name, wanted) == 0) return

const fm__name *fm__functional_name(const char *name)
{
    FIND(names, name) & names[i];
    return NULL;
}

const fm__combination *fm__functional_combination(const char *name)
{
    FIND(combinations, name) & combinations[i];
    return NULL;
}

const char *fm__functional_refusal(const char *name)
{
    FIND(refusals, name) refusals[i].why;
    return NULL;
}
