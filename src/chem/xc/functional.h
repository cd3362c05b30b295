/* SPDX-License-Identifier: Apache-2.0 */
/* A functional as a deck names it, evaluated by libxc:
 *
 *     becke88 nonlocal 0.72, lyp 0.81, ... ──> (libxc number, factor) ... + share of exact exchange
 *
 * Names, factors and the words local and nonlocal mean what they mean in NWChem;
 * a name is known only where libxc's definition is the same. */
#ifndef FM_CHEM_XC_FUNCTIONAL_H
#define FM_CHEM_XC_FUNCTIONAL_H

#include "chem/xc/xc.h"

typedef struct fm_functional fm_functional;

/* Densities of n points.  Spin components lie side by side, as libxc has them:
 *             one density    two densities
 *     rho     [n]            [n][2]  up, down
 *     sigma   [n]            [n][3]  up.up, up.down, down.down  of the gradients
 * sigma may be NULL for a functional of the density alone. */
typedef struct {
    const double *rho, *sigma;
    double       *energy; /* [n] per volume */
    double       *v_rho;  /* as rho: derivative of the energy per volume */
    double       *v_sigma;
} fm_functional_points;

/* FM_E_ARG names the term that is unknown or cannot be used. */
fm_status fm_functional_open(fm_functional **out, const fm_xc_mix *mix, int is_polarised);
void      fm_functional_close(fm_functional *f); /* NULL is fine */

int    fm_functional_has_gradient(const fm_functional *f);
int    fm_functional_is_empty(const fm_functional *f); /* nothing but exact exchange */

/* Any thread; results are overwritten.  scratch: [FM_FUNCTIONAL_SCRATCH * n]. */
enum { FM_FUNCTIONAL_SCRATCH = 6 };
void fm_functional_eval(const fm_functional *f, int n, const fm_functional_points *p,
                        double *scratch);

#endif
