/* SPDX-License-Identifier: Apache-2.0 */
/* Which quartets are worth computing: Schwarz bounds weighted with what the density
 * makes of an integral,
 *
 *     Q_ij Q_kl max(4 |D_ij|, 4 |D_kl|, |D_ik|, |D_il|, |D_jk|, |D_jl|) >= tol
 *
 * |D_ij| being the largest element of a block over all densities of a build. */
#ifndef FM_CHEM_FOCK_SCREEN_H
#define FM_CHEM_FOCK_SCREEN_H

#include "chem/integral/eri_pairs.h"

typedef struct {
    const fm_pair_list *list; /* borrowed */
    int                 n_shell;
    int                 has_K;
    double              tol;
    double             *D_shell; /* [n_shell][n_shell] owned */
    double             *D_top;   /* [n_shell] owned: the largest of a row */
    double             *D_pair;  /* [n_pair] owned: 4 |D_ij| of each pair */
    double              D_most;  /* the largest of D_pair */
} fm_screen;

fm_status fm_screen_init(fm_screen *s, const fm_pair_list *list, const fm_basis *b, int n_density,
                         const double *const *D, int has_K, double tol);
void      fm_screen_fini(fm_screen *s); /* a zeroed one is fine */

/* row[n_shell] = max(|D_is|, |D_js|) for a bra; the largest is returned. */
double fm_screen_row(const fm_screen *s, double *row, int bra);

/* Kets of a class that survive with this bra, in order; `kets` has room for the class. */
int fm_screen_kets(const fm_screen *s, int32_t *kets, int bra, int class, const double *row,
                   double row_top);

/* No more than so many survive; cheap. */
int fm_screen_at_most(const fm_screen *s, int bra, int class, double weight);

#endif
