/* SPDX-License-Identifier: Apache-2.0 */
/* Two-electron integrals (ab|cd) of any four shells, plain and slow: the definition
 * that the fast kernels are held to.
 *
 *     (ab|cd) = sum over primitives  2 pi^5/2 / (pq sqrt(p+q))  E_ab . R . E_cd
 *
 * with E_ab the expansion of the pair's products in Hermite Gaussians (hermite.h),
 * contraction coefficients and components of the shells included. */
#ifndef FM_CHEM_INTEGRAL_ERI_REF_H
#define FM_CHEM_INTEGRAL_ERI_REF_H

#include <stddef.h>

#include "chem/basis/basis.h"

typedef struct {
    double p, P[3];
} fm_hermite_centre;

typedef struct {
    int                l;         /* sum of both shells' */
    int                n_product; /* functions of a times functions of b */
    int                n_prim;    /* pairs of primitives */
    fm_hermite_centre *centre;    /* [n_prim] owned */
    double            *E;         /* [n_prim][n_product][fm_hermites(l)] owned */
} fm_hermite_pair;

fm_status fm_hermite_pair_init(fm_hermite_pair *h, const fm_shell *a, const fm_shell *b);
void      fm_hermite_pair_fini(fm_hermite_pair *h); /* a zeroed one is fine */

/* out[bra->n_product][ket->n_product]; scratch of that many doubles */
size_t fm_eri_ref_scratch(const fm_hermite_pair *bra, const fm_hermite_pair *ket);
void   fm_eri_ref(double *out, const fm_hermite_pair *bra, const fm_hermite_pair *ket,
                  double *scratch);

#endif
