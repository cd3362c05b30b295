/* SPDX-License-Identifier: Apache-2.0 */
/* Components of a shell: cartesian monomials x^i y^j z^k of degree l, and the real
 * solid harmonics written in them. */
#ifndef FM_CHEM_INTEGRAL_HARMONIC_H
#define FM_CHEM_INTEGRAL_HARMONIC_H

#include "chem/basis/basis.h"

enum { FM_CARTESIAN_MAX = (FM_L_MAX + 1) * (FM_L_MAX + 2) / 2 };

typedef struct {
    int i, j, k;
} fm_monomial;

/* In the basis' order: i descending, then j descending. */
fm_monomial fm_cartesian(int l, int component);

/* The integral of two monomials' product over the unit Gaussian: (x^l|x^l) = (2l-1)!!. */
double fm_monomial_overlap(fm_monomial a, fm_monomial b);

/* c[fm_components(l, is_pure)][cartesian components]: functions of a shell in terms
 * of monomials that carry the factor which gives x^l norm 1. */
void fm_shell_transform(double *c, int l, int is_pure);

#endif
