/* SPDX-License-Identifier: Apache-2.0 */
/* Products of two Gaussians as sums of Hermite Gaussians (McMurchie and Davidson 1978):
 *
 *     x_A^i x_B^j exp(-a x_A^2 - b x_B^2) = sum_t E_t^ij (d/dP)^t exp(-p x_P^2)
 *
 * and the Coulomb integrals R_tuv = (d/dX)^t (d/dY)^u (d/dZ)^v F_0(alpha R^2) between
 * such Hermite Gaussians. */
#ifndef FM_CHEM_INTEGRAL_HERMITE_H
#define FM_CHEM_INTEGRAL_HERMITE_H

#include "chem/basis/basis.h"

/* Kinetic energy raises both sides by one. */
enum { FM_HERMITE_I = FM_L_MAX + 2, FM_HERMITE_J = FM_L_MAX + 2, FM_HERMITE_T = 2 * FM_L_MAX + 3 };

typedef struct {
    double a, b, p;                                        /* exponents, their sum */
    double P[3];                                           /* centre of the product */
    double pre;                                            /* exp(-a b / p |A - B|^2) */
    double E[3][FM_HERMITE_I][FM_HERMITE_J][FM_HERMITE_T]; /* without `pre`; [x y z][i][j][t] */
} fm_gauss_pair;

void fm_gauss_product(fm_gauss_pair *g, const double A[3], double a, int l_a, const double B[3],
                      double b, int l_b);

/* Hermite indices of total order <= l, in order of t, u, v; how many there are. */
static inline int fm_hermites(int l) { return (l + 1) * (l + 2) * (l + 3) / 6; }
void              fm_hermite_list(int (*tuv)[3], int l);

/* R[t][u][v] as [(l+1)][(l+1)][(l+1)], only t + u + v <= l is written. */
enum {
    FM_COULOMB_L   = 4 * FM_L_MAX,
    FM_COULOMB_MAX = (FM_COULOMB_L + 1) * (FM_COULOMB_L + 1) * (FM_COULOMB_L + 1)
};
void fm_hermite_coulomb(double *R, int l, double alpha, const double distance[3]);

#endif
