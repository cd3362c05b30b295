/* SPDX-License-Identifier: Apache-2.0 */
/* Images of basis functions under the operations of a molecule's point group.
 *
 *     R chi_i = sum_j U_ji chi_j        D ─> mean of U D U^T        F ─> mean of U^T F U
 *
 * A function moves to the equivalent atom and mixes with the other components of its
 * shell.  A density that is such a mean is totally symmetric.
 *
 * Ownership: images borrow the molecule and the basis; nothing changes after
 * fm_images_create, any thread may use them. */
#ifndef FM_CHEM_INTEGRAL_IMAGES_H
#define FM_CHEM_INTEGRAL_IMAGES_H

#include "chem/basis/basis.h"
#include "chem/molecule.h"

typedef struct fm_images fm_images;

/* The molecule has operations: m->n_op > 0.  FM_E_ARG: an atom has no image. */
fm_status fm_images_create(fm_images **out, const fm_molecule *m, const fm_basis *b);
void      fm_images_destroy(fm_images *g); /* NULL is fine */

/* A symmetric matrix A[n][n] becomes the mean of its images, as a density (coefficients
 * of products of functions) or as an operator (integrals over them); *moved is the largest
 * change of an element. */
fm_status fm_images_average_density(const fm_images *g, double *A, double *moved);
fm_status fm_images_average_operator(const fm_images *g, double *A, double *moved);

#endif
