/* SPDX-License-Identifier: Apache-2.0 */
/* Exchange-correlation energy and potential on NWChem's molecular grids.
 *
 *     functional (names and factors) ─> libxc        atoms ─> shells, pruning, partition ─> points
 *     points ─> boxes with the functions alive there ─> rho, grad rho ─> e, v ─> V_ij
 *
 * fm_xc_build is collective over the group given to fm_xc_open; every rank
 * passes the same orbitals and receives the same bits, whatever the number of
 * ranks and threads. */
#ifndef FM_CHEM_XC_XC_H
#define FM_CHEM_XC_XC_H

#include "chem/basis/basis.h"
#include "chem/molecule.h"
#include "comm/comm.h"

/* One term of a functional as a deck writes it: `becke88 nonlocal 0.72`. */
typedef struct {
    char   name[32]; /* lower case */
    double factor;
    enum { FM_XC_WHOLE, FM_XC_LOCAL, FM_XC_NONLOCAL } part;
} fm_xc_term;

enum { FM_XC_TERM_MAX = 16 };

typedef struct {
    fm_xc_term term[FM_XC_TERM_MAX];
    int        n_term;
} fm_xc_mix;

typedef enum {
    FM_GRID_XCOARSE, FM_GRID_COARSE, FM_GRID_MEDIUM, FM_GRID_FINE, FM_GRID_XFINE, FM_GRID_HUGE
} fm_grid_level;

typedef struct {
    fm_xc_mix     mix;
    fm_grid_level level;
    fm_grid_level cutoff_level; /* of radial cutoffs, if has_cutoff_level; otherwise `level` */
    int           has_cutoff_level;
    double        tol_rho;   /* densities below are nothing: 1e-10; 1e-12 at most is used */
    double        tol_ao;    /* functions below e^-tol_ao are nothing: 14; 18 at least is used */
    int           n_thread;
    int           is_polarised; /* two spin densities */
    int           without_images; /* every atom's grid stands on the molecule's axes */
} fm_xc_options;

typedef struct fm_xc fm_xc;

typedef struct {
    double energy;    /* hartree, without exact exchange */
    double electrons; /* integral of the density: the fingerprint of the grid */
} fm_xc_result;

/* FM_E_ARG names the term of the mixture that is unknown. */
fm_status fm_xc_open(fm_xc **out, const fm_molecule *m, const fm_basis *b, const fm_xc_options *opt,
                     fm_comm *comm);
void      fm_xc_close(fm_xc *x); /* NULL is fine */

/* The factor of a name that a deck writes without one. */
double fm_xc_usual_factor(const char *name);

/* Whether `mix` is understood, without a molecule: decks are checked before any
 * computing.  *exact is the share of exact exchange in it. */
fm_status fm_xc_check(const fm_xc_mix *mix, double *exact);

int fm_xc_points(const fm_xc *x); /* of the whole grid */

/* V[s] [n][n] is overwritten.  C[s] [n][n_occ[s]] row-major: occupied orbitals of
 * spin s; one spin with doubly occupied orbitals unless is_polarised. */
fm_status fm_xc_build(fm_xc *x, const double *const *C, const int *n_occ, double *const *V,
                      fm_xc_result *out);

#endif
