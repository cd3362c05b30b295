/* SPDX-License-Identifier: Apache-2.0 */
/* Which quartets are worth computing: Schwarz bounds weighted with what the density
 * makes of an integral,
 *
 *     Q_ij Q_kl max(c |D_ij|, c |D_kl|, |D_ik|, |D_il|, |D_jk|, |D_jl|) >= tol
 *
 * |D_ij| being the largest element of a block over all densities of a build.  What is left
 * out of J has one sign, the charge's, and adds up over thousands of kets, while errors of K
 * cancel: so c, which is 4 by counting terms, is ten times that.  (With 4, twelve waters in
 * cc-pVTZ lose 2e-5 hartree at tol = 1e-8 and 4e-7 at 1e-10, all of it from J.) */
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
    double             *D_pair;  /* [n_pair] owned: c |D_ij| of each pair */
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
