/* SPDX-License-Identifier: Apache-2.0 */
/* Names of functionals: what they are made of, and what is refused. */
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "chem/xc/functional.h"

/* "becke88 nonlocal 0.72 lyp 0.81" as a deck writes it. */
static fm_xc_mix mix_of(const char *text)
{
    fm_xc_mix mix = {0};
    char      copy[256], *rest = NULL;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        fm_xc_term *last = mix.n_term ? &mix.term[mix.n_term - 1] : NULL;
        double      factor;
        if (last && sscanf(word, "%lf", &factor) == 1)
            last->factor = factor;
        else if (last && strcmp(word, "local") == 0)
            last->part = FM_XC_LOCAL;
        else if (last && strcmp(word, "nonlocal") == 0)
            last->part = FM_XC_NONLOCAL;
        else {
            mix.term[mix.n_term] = (fm_xc_term){.factor = fm_xc_usual_factor(word)};
            snprintf(mix.term[mix.n_term++].name, sizeof mix.term[0].name, "%s", word);
        }
    }
    return mix;
}

/* Energy per volume of one point, closed shell. */
static double energy_at(const char *text, double rho, double sigma)
{
    fm_functional  *f   = NULL;
    const fm_xc_mix mix = mix_of(text);
    double          e, v, vs, scratch[FM_FUNCTIONAL_SCRATCH];
    if (fm_functional_open(&f, &mix, 0) != FM_OK) fail_msg("%s", fm_why());
    fm_functional_eval(f, 1, &(fm_functional_points){&rho, &sigma, &e, &v, &vs}, scratch);
    fm_functional_close(f);
    return e;
}

static void assert_same(const char *a, const char *b)
{
    const double x = energy_at(a, 0.3, 0.2), y = energy_at(b, 0.3, 0.2);
    if (fabs(x - y) > 1e-13) fail_msg("%s: %.15f, %s: %.15f", a, x, b, y);
}

static void test_combinations(void **state)
{
    (void)state;
    assert_same("b3lyp", "slater 0.8 becke88 nonlocal 0.72 vwn_1_rpa 0.19 lyp 0.81");
    assert_same("b3lyp", "slater 0.08 becke88 0.72 vwn_1_rpa 0.19 lyp 0.81");
    assert_same("pbe0", "xpbe96 0.75 cpbe96");
    assert_same("pbe96", "xpbe96 cpbe96 1.0");
    assert_same("pbe96", "xpbe96 cpbe96 nonlocal pw91lda");
    assert_same("blyp", "becke88 lyp");
    assert_same("bhlyp", "becke88 0.5 lyp");
    assert_same("b3p86", "slater 0.08 becke88 0.72 vwn_1_rpa 1 perdew86 nonlocal 0.81");
}

/* The factor of optx is its gradient part's; without slater in the mixture it brings its own. */
static void test_optx(void **state)
{
    (void)state;
    assert_same("optx", "optx 1.43169 slater 1.05151");
    const double none = energy_at("optx 0.0", 0.3, 0.2), one = energy_at("optx 1.0", 0.3, 0.2),
                 two = energy_at("optx 2.0", 0.3, 0.2);
    assert_true(fabs(none - 1.05151 * energy_at("slater", 0.3, 0.2)) < 1e-13);
    assert_true(one != none && fabs(two - 2 * one + none) < 1e-13);
}

/* NWChem adds a local correlation where only gradient parts are named. */
static void test_local_part_joins(void **state)
{
    (void)state;
    assert_same("perdew86 0.5", "perdew86 nonlocal 0.5 perdew81 0.5");
    assert_same("cpbe96 0.5", "cpbe96 0.5 pw91lda 1.0");
    assert_same("perdew91 0.5", "perdew91 0.5 pw91lda");
    const double gradient = energy_at("perdew86 vwn_5", 0.3, 0.2) - energy_at("vwn_5", 0.3, 0.2);
    assert_true(fabs(gradient + energy_at("perdew81", 0.3, 0.2) - energy_at("perdew86", 0.3, 0.2)) <
                1e-13);
}

static void test_share_of_exact_exchange(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double      exact;
    } want[] = {{"b3lyp", 0.2},        {"pbe0", 0.25},   {"becke88 lyp", 0},
                {"hfexch", 1},         {"bhlyp", 0.5},   {"hfexch 0.3 slater 0.7", 0.3},
                {"sogga11-x", 0.4015}, {"mpw1k", 0.428}, {"beckehandh", 0.5}};
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        const fm_xc_mix mix = mix_of(want[i].text);
        double          exact;
        assert_int_equal(FM_OK, fm_xc_check(&mix, &exact));
        assert_true(fabs(exact - want[i].exact) < 1e-15);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"m06-2x", "m06-2x depends on the kinetic-energy density"},
        {"becke88 lyyp", "no functional lyyp"},
        {"hse03", "hse03 splits exchange by range"},
        {"b3lyp 0.5", "b3lyp names a whole mixture"},
        {"becke88 local", "the local part of becke88 is slater"},
        {"vwn_5 nonlocal", "vwn_5 is a local functional"},
        {"xpbe96 cpbe96 vwn_5", "no other correlation than pw91lda"},
        {"becke97", "becke97 differs between NWChem and libxc"},
        {"", NULL},
    };
    for (int i = 0; bad[i][1]; i++) {
        const fm_xc_mix mix = mix_of(bad[i][0]);
        double          exact;
        assert_int_equal(FM_E_ARG, fm_xc_check(&mix, &exact));
        if (!strstr(fm_why(), bad[i][1])) fail_msg("%s: %s", bad[i][0], fm_why());
    }
    fm_xc_mix mix = mix_of("slater");
    double    exact;
    mix.term[0].factor = NAN;
    assert_int_equal(FM_E_ARG, fm_xc_check(&mix, &exact));
}

/* One density is two equal ones. */
static void test_spins_agree(void **state)
{
    (void)state;
    static const char *const names[] = {"slater vwn_5",     "b3lyp", "pbe0",
                                        "becke88 perdew86", "mpw1k", "bop",
                                        "gill96 lyp",       "ft97",  "sogga11"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        fm_functional  *f      = NULL;
        const fm_xc_mix mix    = mix_of(names[i]);
        const double    rho[2] = {0.15, 0.15}, sigma[3] = {0.05, 0.05, 0.05};
        double          e, v[2], vs[3], scratch[FM_FUNCTIONAL_SCRATCH];
        assert_int_equal(FM_OK, fm_functional_open(&f, &mix, 1));
        fm_functional_eval(f, 1, &(fm_functional_points){rho, sigma, &e, v, vs}, scratch);
        fm_functional_close(f);
        if (fabs(e - energy_at(names[i], 0.3, 0.2)) > 1e-12) fail_msg("%s", names[i]);
        assert_true(fabs(v[0] - v[1]) < 1e-12);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_optx),
        cmocka_unit_test(test_combinations),
        cmocka_unit_test(test_local_part_joins),
        cmocka_unit_test(test_share_of_exact_exchange),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_spins_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
