/* SPDX-License-Identifier: Apache-2.0 */
/* The shells of one kind of atom as decks and basis-set files write them:
 * exponents, and contraction coefficients over normalised primitives.
 *
 * Ownership: a list owns its numbers; {0} is an empty list. */
#ifndef FM_CHEM_BASIS_SHELLS_H
#define FM_CHEM_BASIS_SHELLS_H

#include "base/status.h"

typedef struct {
    int l, n_prim, n_contr;
    int at; /* in `number`: exponent[n_prim], then coef[n_contr][n_prim] */
} fm_shell_entry;

typedef struct {
    fm_shell_entry *shell;
    double         *number;
    int             n_shell, n_number, shell_cap, number_cap;
} fm_shells;

enum { FM_L_SP = -1, FM_L_NONE = -2 };

/* S P D F G, SP (or L) of decks, any case: 0..FM_L_MAX or FM_L_SP; FM_L_NONE otherwise. */
int fm_shell_l(const char *letters);

/* Append a shell from rows [n_prim][n_column] of an exponent and coefficients.
 * FM_L_SP takes two columns of coefficients and appends an S and a P shell.
 * FM_E_FORMAT: an exponent is not positive, a contraction has norm zero, too
 * many numbers; the list is unchanged. */
fm_status fm_shells_add(fm_shells *s, int l, const double *rows, int n_prim, int n_column);
/* Append shell i of another list. */
void fm_shells_copy(fm_shells *s, const fm_shells *from, int i);
void fm_shells_fini(fm_shells *s);

/* (x^l exp(-a r^2) | x^l exp(-b r^2)) with both primitives normalised. */
double fm_primitive_overlap(int l, double a, double b);
/* The factor that gives x^l exp(-a r^2) norm 1. */
double fm_primitive_norm(int l, double a);
/* The norm of a contraction over normalised primitives. */
double fm_contraction_norm(int l, int n_prim, const double *exponent, const double *coef);

#endif
