/* SPDX-License-Identifier: Apache-2.0 */
/* Integrals over one electron.  All matrices are [n][n], n = b->n_function,
 * row-major and symmetric; both triangles are written. */
#ifndef FM_CHEM_INTEGRAL_ONE_ELECTRON_H
#define FM_CHEM_INTEGRAL_ONE_ELECTRON_H

#include "chem/basis/basis.h"

void fm_overlap(double *S, const fm_basis *b);                          /* <i|j> */
void fm_kinetic(double *T, const fm_basis *b);                          /* <i|-1/2 nabla^2|j> */
void fm_attraction(double *V, const fm_basis *b, const fm_molecule *m); /* <i|sum -Z/|r-R||j> */
void fm_dipole(double *X, double *Y, double *Z, const fm_basis *b); /* <i|x|j> about the origin */

#endif
