/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient part of the Perdew-Wang 91 correlation contains the correlation of the
 * uniform gas.  libxc takes that with the five digits of the first print, NWChem with
 * more (pw91lda): 2e-7 hartree in a water molecule.  libxc also lacks the term in rs^3 of
 * the gradient coefficient: 4e-8 hartree.  This is the difference. */
#ifndef FM_CHEM_XC_FUNCTIONAL_PW91_H
#define FM_CHEM_XC_FUNCTIONAL_PW91_H

#include "chem/xc/functional.h"

/* Adds `factor` times NWChem's less libxc's functional to p's results. */
void fm__pw91_refine(double factor, int n_spin, int n, const fm_functional_points *p);

#endif
