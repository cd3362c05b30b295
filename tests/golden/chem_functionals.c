/* SPDX-License-Identifier: Apache-2.0 */
/* Every functional a deck can name against NWChem 7.0.2 with tight settings: the ion of a
 * bent water molecule, two spins, 6-31g*, coarse grid. */
#include <math.h>
#include <stdio.h>

#include "chem_run.h"

static const char deck[] = "start f\ncharge 1\n"
                           "geometry noautosym\n O 0 0 0\n H 0 0.76 0.58\n H 0 -0.70 0.62\nend\n"
                           "basis spherical\n * library 6-31g*\nend\n"
                           "dft\n direct\n mult 2\n odft\n xc %s\n grid coarse\n"
                           " tolerances accCoul 12 accAOfunc 20 tol_rho 1e-14\n"
                           " convergence energy 1e-9 density 1e-7 gradient 1e-6\n iterations 100\n"
                           "end\ntask dft energy\n";

static const double tolerance = 6e-9; /* sogga11 5e-9, perdew91 5e-10, others 1e-10 */

static const struct {
    const char *xc;
    double      energy; /* hartree */
} want[] = {
    {"slater vwn_5", -75.369841779327},
    {"slater vwn_1", -75.368426754221},
    {"slater vwn_2", -75.369732071244},
    {"slater vwn_3", -75.369781999038},
    {"slater vwn_4", -75.370017594936},
    {"slater vwn_1_rpa", -75.545675999996},
    {"slater perdew81", -75.364351169931},
    {"slater pw91lda", -75.367081251496},
    {"pbe96", -75.861342187142},
    {"bhlyp", -75.917404016145},
    {"b3p86", -76.104475955638},
    {"b3pw91", -75.920268264554},
    {"becke88 lyp", -75.930205750505},
    {"becke88 perdew86", -75.943179694743},
    {"becke88 perdew86 nonlocal vwn_5", -75.948706134420},
    {"xperdew91 perdew91", -75.916462043023},
    {"xpbe96 cpbe96 0.5", -76.019709175112},
    {"gill96 lyp", -75.933121329150},
    {"optx lyp", -75.926960196903},
    {"optx 1.0 lyp", -75.787874036081},
    {"slater 0.9 optx lyp", -74.748901355422},
    {"mpw91 perdew91", -75.935391173642},
    {"ft97", -75.909601361748},
    {"rpbe cpbe96", -75.944209578291},
    {"revpbe cpbe96", -75.924804278931},
    {"mpw1k", -75.926146705442},
    {"bop", -75.930682060377},
    {"sogga", -75.544669677278},
    {"sogga11", -75.940145396362},
    {"sogga11-x", -75.918738730285},
    {"becke86b cpbe96", -75.924989718564},
    {"xperdew86 perdew86", -76.008720701322},
};

static int check(int i)
{
    char text[1024];
    snprintf(text, sizeof text, deck, want[i].xc);
    const chem_result got  = chem_run_text(text, 2);
    const double      diff = got.n_task ? got.task[0].energy - want[i].energy : NAN;
    const int         good = got.rc == FM_OK && fabs(diff) < tolerance;
    printf("%-34s %+.1e  %s\n", want[i].xc, diff,
           good              ? "ok"
           : got.rc == FM_OK ? "FAILED"
                             : got.why);
    return !good;
}

int main(void)
{
    int n_bad = 0;
    chem_open();
    for (int i = 0; i < (int)(sizeof want / sizeof want[0]); i++) n_bad += check(i);
    chem_close();
    return n_bad != 0;
}
