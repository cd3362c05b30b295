/* SPDX-License-Identifier: Apache-2.0 */
/* Principal axes of a symmetric 3x3 matrix by Jacobi's rotations, which leave the axes of
 * a matrix that is diagonal already as they are, with their directions. */
#ifndef FM_CHEM_INPUT_PRINCIPAL_H
#define FM_CHEM_INPUT_PRINCIPAL_H

/* Rows of `axes`: eigenvectors of A, the largest value first; not always right-handed. */
void fm__principal_axes(const double A[3][3], double axes[3][3], double value[3]);

#endif
