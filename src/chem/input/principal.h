/* SPDX-License-Identifier: Apache-2.0 */
/* Principal axes of inertia by Jacobi's rotations, with NWChem's choice of directions.  It
 * matters in three-fold groups, whose DFT grids differ from one side of an axis to the other. */
#ifndef FM_CHEM_INPUT_PRINCIPAL_H
#define FM_CHEM_INPUT_PRINCIPAL_H

/* Moments of inertia closer than this (u bohr^2) are equal. */
#define FM__EQUAL_MOMENTS 1e-4

/* Rows of `axes`: eigenvectors of A, right-handed, the largest value first but for
 * equal ones. */
void fm__principal_axes(const double A[3][3], double axes[3][3], double value[3]);

#endif
