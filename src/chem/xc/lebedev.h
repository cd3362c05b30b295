/* SPDX-License-Identifier: Apache-2.0 */
/* Lebedev's quadratures on the unit sphere: point sets with octahedral symmetry
 * that integrate every spherical harmonic up to their degree exactly.
 *
 *     orbit (kind, weight, a, b) ──octahedral group──> 6, 8, 12, 24 or 48 points
 *
 * Sets are numbered as NWChem numbers them, from 1:
 *     1: 38   2: 50   3: 74   4: 86  5: 110  6: 146  7: 170  8: 194   9: 230
 *   10: 266 11: 302 12: 350 13: 434 14: 590 15: 770 16: 974 17: 1202 18: 1454 points
 * Numbers 3, 9 and 10 have some negative weights.  Pure functions of their
 * arguments; any thread may call them. */
#ifndef FM_CHEM_XC_LEBEDEV_H
#define FM_CHEM_XC_LEBEDEV_H

enum { FM_LEBEDEV_SETS = 18, FM_LEBEDEV_MAX_POINTS = 1454 };

typedef struct {
    double xyz[3]; /* on the unit sphere */
    double weight; /* the weights of a set add up to 1 */
} fm_sphere_point;

int  fm_lebedev_points(int set); /* number of points of set 1..FM_LEBEDEV_SETS */
int  fm_lebedev_degree(int set);
void fm_lebedev_fill(fm_sphere_point *out, int set); /* out[fm_lebedev_points(set)] */

#endif
