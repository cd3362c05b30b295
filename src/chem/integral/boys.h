/* SPDX-License-Identifier: Apache-2.0 */
/* The Boys function F_m(T) = int_0^1 u^2m exp(-T u^2) du, the radial part of every
 * Coulomb integral over Gaussians. */
#ifndef FM_CHEM_INTEGRAL_BOYS_H
#define FM_CHEM_INTEGRAL_BOYS_H

/* F[0..m_max], each to about 1e-15 of its value; T >= 0. */
void fm_boys(double *F, int m_max, double T);

#endif
