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

/* All of it.  Owned arrays; {0} is empty. */
typedef struct {
    double  dipole[3];  /* atomic units */
    double *population; /* [n_atom] Mulliken, electrons */
    double *spin;       /* [n_atom] alpha less beta */
    double *by_shell;   /* [n_shell] electrons */
    double  s2, s2_exact;
} fm_props;

/* D [n_spin][n][n]: the total density, or alpha and beta. */
fm_status fm_props_find(fm_props *out, const double *D, int n_spin, const int n_electron[2],
                        const double *S, const fm_basis *b, const fm_molecule *m);
void      fm_props_fini(fm_props *p);

#endif
