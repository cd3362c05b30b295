/* SPDX-License-Identifier: Apache-2.0 */
/* A density to start from: the superposition of spherical atoms, each from a
 * small restricted Hartree-Fock calculation in its own functions, with the
 * electrons of an open shell spread evenly over the shell.
 *
 *     atom ─ H, J, K of its functions ─ occupation by l ─> columns c, D_atom = sum 2 c c^T
 *     all atoms side by side ─> D [n][n], and the same as columns [n][n_column]
 *
 * The columns are orbitals scaled by the root of half their occupation, so that
 * D = 2 sum c c^T exactly: what needs orbitals (a DFT grid) can take them.
 *
 * Ownership: fm_guess owns its columns; fm_guess_fini accepts a zeroed one. */
#ifndef FM_CHEM_GUESS_GUESS_H
#define FM_CHEM_GUESS_GUESS_H

#include "chem/basis/basis.h"
#include "chem/molecule.h"

typedef struct {
    double *column; /* [n][n_column] owned */
    int     n_column;
    double  electrons;    /* of the neutral atoms */
    double  atoms_energy; /* sum over atoms, hartree */
} fm_guess;

fm_status fm_guess_atomic(fm_guess *out, const fm_molecule *m, const fm_basis *b);
void      fm_guess_fini(fm_guess *g);

/* How many electrons of a neutral atom are in s, p, d, f shells. */
void fm_guess_configuration(int z, int electrons[4]);

#endif
