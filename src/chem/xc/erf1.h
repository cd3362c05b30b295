/* SPDX-License-Identifier: Apache-2.0 */
/* Step functions of the Erf1 partition, for many partners at once.  A kernel family:
 * plain C (erf1_body.h), compiled per instruction set.
 *
 *     s(mu) = erfc(x) / 2,   x = mu / (1 - mu^2) / 0.30,   0 and 1 beyond |mu| = 0.725
 *
 * with the erfc of Numerical Recipes, whose error of 1.2e-7 NWChem's grids have. */
#ifndef FM_CHEM_XC_ERF1_H
#define FM_CHEM_XC_ERF1_H

#include "base/cpu.h"

#define FM_ERF1_MU_MAX 0.725

enum { FM_ERF1_LANES = 8 }; /* numbers of partners are padded to a multiple of this */

typedef struct {
    fm_isa isa;
    /* s[j] = s((r_own - r[j]) inverse[j]), j < n, n a multiple of FM_ERF1_LANES */
    void (*steps)(double *s, double r_own, const double *r, const double *inverse, int n);
    double (*product)(const double *s, int n); /* s[0] s[1] ... */
} fm_erf1_kernels;

const fm_erf1_kernels *fm_erf1_kernels_at(int i); /* best first, plain C last; NULL beyond */
const fm_erf1_kernels *fm_erf1_kernels_pick(void);

#endif
