/* SPDX-License-Identifier: Apache-2.0 */
/* What a density tells: dipole, Mulliken populations, spin. */
#ifndef FM_CHEM_PROP_PROP_H
#define FM_CHEM_PROP_PROP_H

#include "chem/basis/basis.h"
#include "chem/molecule.h"

#define FM_DEBYE 2.541746473 /* of one atomic unit of dipole moment */

/* mu[3] in atomic units about the origin, nuclei included.  D [n][n]: total density. */
fm_status fm_prop_dipole(double mu[3], const double *D, const fm_basis *b, const fm_molecule *m);

/* population[n_atom] of the density D in the overlap S, and by shell where
 * `by_shell` [n_shell] is not NULL. */
void fm_prop_mulliken(double *population, double *by_shell, const double *D, const double *S,
                      const fm_basis *b, int n_atom);

/* <S^2> of a determinant with spin densities Da and Db. */
fm_status fm_prop_s2(double *s2, const double *Da, const double *Db, const double *S, int n,
                     int n_alpha, int n_beta);

#endif
