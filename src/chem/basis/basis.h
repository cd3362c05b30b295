/* SPDX-License-Identifier: Apache-2.0 */
/* Contracted Gaussian shells on the atoms of a molecule.
 *
 *     chi(r) = N_component * x^i y^j z^k * sum_p coef[p] exp(-exponent[p] r^2)
 *
 * A shell with n_contr > 1 is generally contracted: several functions over the
 * same primitives.  SP shells of a deck are an S shell and a P shell here.
 *
 * Order of functions: shell by shell as listed, within a shell contraction by
 * contraction, within a contraction by component.
 *   cartesian  i descending, then j descending: xx xy xz yy yz zz
 *   pure       m = -l ... l of the real solid harmonics; p shells are x y z
 *              in both forms
 * Normalisation: `coef` gives x^l sum_p coef[p] exp(-exponent[p] r^2) norm 1, for
 * pure and cartesian shells alike.  N_component is 1 for every component of a
 * cartesian shell; for pure functions it is part of the solid harmonic, such that
 * each has norm 1.
 *
 * Ownership: a basis owns its shells and their numbers, nothing changes after
 * fm_basis_build; any thread may read it. */
#ifndef FM_CHEM_BASIS_BASIS_H
#define FM_CHEM_BASIS_BASIS_H

#include "base/status.h"
#include "chem/basis/shells.h"
#include "chem/molecule.h"

enum { FM_L_MAX = 4 }; /* g */

typedef struct {
    int           atom;
    int           l;
    int           is_pure; /* 2l+1 functions a contraction instead of (l+1)(l+2)/2 */
    int           n_prim, n_contr;
    const double *exponent; /* [n_prim], descending is not promised */
    const double *coef;     /* [n_contr][n_prim], primitive norms and the contraction's included */
    int           first;    /* index of its first function */
    double        xyz[3];   /* the atom's, for locality */
} fm_shell;

typedef struct {
    fm_shell *shell; /* [n_shell] */
    int       n_shell;
    int       n_function;
    int       l_max;
    double   *numbers; /* what exponent and coef point into */
} fm_basis;

static inline int fm_components(int l, int is_pure)
{
    return is_pure ? 2 * l + 1 : (l + 1) * (l + 2) / 2;
}

static inline int fm_shell_functions(const fm_shell *s)
{
    return s->n_contr * fm_components(s->l, s->is_pure);
}

/* Put shells on every atom: of_atom[a] lists those of atom a, unnormalised.  s and
 * p shells are never pure (the two forms are the same). */
fm_status fm_basis_build(fm_basis *out, const fm_molecule *m, const fm_shells *const *of_atom,
                         int is_pure);

/* The same set of the library on every atom; ghosts get nothing. */
fm_status fm_basis_from_library(fm_basis *out, const fm_molecule *m, const char *set, int is_pure);

void fm_basis_fini(fm_basis *b); /* a zeroed one is fine */

#endif
