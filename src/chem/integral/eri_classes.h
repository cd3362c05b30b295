/* SPDX-License-Identifier: Apache-2.0 */
/* Which classes of shell pairs have straight-line code (gen/eri_gen.c).  The others are
 * served by loops over stored coefficients. */
#ifndef FM_CHEM_INTEGRAL_ERI_CLASSES_H
#define FM_CHEM_INTEGRAL_ERI_CLASSES_H

/* R_tuv lies at t * FM_STRIDE_T + u * FM_STRIDE_U + v: linear, so that indices of bra
 * and ket add.  Room for four g shells. */
enum { FM_STRIDE_U = 17, FM_STRIDE_T = 17 * 17, FM_COULOMB_ROOM = 17 * 17 * 17 };

/* l_a >= l_b; is_pure matters from d on */
static inline int fm_pair_is_written(int l_a, int l_b, int is_pure)
{
    if (l_a < 2) return 1;
    if (l_a == 2) return l_b < 2 || is_pure;
    return l_a == 3 && l_b == 0 && is_pure;
}

#endif
