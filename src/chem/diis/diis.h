/* SPDX-License-Identifier: Apache-2.0 */
/* Pulay's direct inversion in the iterative subspace (Chem. Phys. Lett. 73, 393):
 * the combination of recent Fock matrices, coefficients summing to 1, whose
 * residual R = X^T (FDS - SDF) X is smallest.
 *
 * Fock matrices of several spins are one long vector, and so are residuals. */
#ifndef FM_CHEM_DIIS_DIIS_H
#define FM_CHEM_DIIS_DIIS_H

#include <stddef.h>

#include "base/status.h"

typedef struct fm_diis fm_diis;

fm_status fm_diis_create(fm_diis **out, int depth, size_t n_fock, size_t n_residual);
void      fm_diis_destroy(fm_diis *d); /* NULL is fine */
void      fm_diis_clear(fm_diis *d);   /* forgets what it has seen */

/* Remembers F and R, then overwrites F with the extrapolation.  The oldest
 * matrices are dropped where the equations become singular. */
void fm_diis_mix(fm_diis *d, double *F, const double *R);

#endif
