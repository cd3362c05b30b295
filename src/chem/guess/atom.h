/* SPDX-License-Identifier: Apache-2.0 */
/* The self-consistent field of one spherical atom. */
#ifndef FM_CHEM_GUESS_ATOM_H
#define FM_CHEM_GUESS_ATOM_H

#include "chem/basis/basis.h"
#include "chem/molecule.h"

typedef struct {
    int     n, n_column;
    double *column; /* [n][n_column] owned */
    double  energy;
} fm__atom;

/* `b`: the functions of the one atom in `m`.  An atom that does not converge
 * gives the density it has: it is a guess. */
fm_status fm__atom_solve(fm__atom *out, const fm_molecule *m, const fm_basis *b);
void      fm__atom_fini(fm__atom *a);

#endif
