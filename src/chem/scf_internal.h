/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of the SCF loop and what they keep between iterations. */
#ifndef FM_CHEM_SCF_INTERNAL_H
#define FM_CHEM_SCF_INTERNAL_H

#include "chem/diis/diis.h"
#include "chem/fock/fock.h"
#include "chem/integral/images.h"
#include "chem/scf.h"
#include "chem/vectors/vectors.h"
#include "chem/xc/xc.h"

typedef struct fm__descent fm__descent;

typedef struct fm__scf_parts {
    double began;

    /* scf_fock.c: J and K belong to the density `seen`, summed from its changes. */
    fm_fock *fock;
    fm_xc   *xc;
    double  *J, *K, *V, *seen, *change; /* [n_spin][n][n] */
    double   tol, tol_final;            /* that J and K were built with; that the last need */
    int      n_change;                  /* builds since the whole density */

    /* Orbitals the present density is made of, for the grid: the guess has scaled
     * columns, later they are C's first. */
    double *column[2]; /* [n][n_column[s]] owned */
    int     n_column[2];

    /* scf_symmetry.c, rank 0: where the mean over the point group has changed the density of
     * those columns, n_natural > 0 columns that make the mean. */
    fm_images *images; /* NULL: no symmetry */
    double    *natural[2];
    int        n_natural[2];

    /* scf_orbitals.c */
    fm_diis     *diis;
    double      *R;     /* [n_fock][m][m] residuals */
    double      *G;     /* [n_fock][n][n] what is mixed and diagonalised: F, or ROHF's one */
    double      *D_old; /* [n_spin][n][n] */
    double       energy_old, gap; /* gap: least of HOMO and LUMO, without the level shift */
    double       best_gradient;
    double       lowest;                  /* energy of a determinant so far */
    int          n_since_best, n_descent; /* iterations; times that DIIS was given up */
    int          n_climbing;              /* iterations in a row above `lowest` */
    int          n_more;                  /* iterations since what the deck asks for was met */
    fm__descent *descent;                 /* NULL while DIIS is at work */

    fm_vectors kept; /* what goes to the file */
} fm__scf_parts;

static inline size_t fm__nn(const fm_scf *s) { return (size_t)s->n * (size_t)s->n; }

/* The steps of the loop.  Those without "rank 0" are collective. */
fm_status fm__scf_core(fm_scf *s);
fm_status fm__scf_guess(fm_scf *s);
fm_status fm__scf_fock(fm_scf *s);
fm_status fm__scf_residual(fm_scf *s);  /* rank 0 */
fm_status fm__scf_orbitals(fm_scf *s);  /* rank 0 */
fm_status fm__scf_density(fm_scf *s);   /* rank 0 */
int       fm__scf_converged(fm_scf *s); /* rank 0 */
fm_status fm__scf_keep(fm_scf *s);      /* rank 0 */
void      fm__scf_report(fm_scf *s);
fm_status fm__scf_not_converged(fm_scf *s);

/* Broadcasts rank 0's density, orbitals, step and verdict to all ranks.  `rc` is rank
 * 0's status: a failure there ends the run on all ranks. */
fm_status fm__scf_share(fm_scf *s, fm_status rc);

/* scf_fock.c */
fm_status fm__scf_open_builders(fm_scf *s);

/* scf_symmetry.c, rank 0: D of spin `i` and F become their means over the point group. */
fm_status fm__scf_open_symmetry(fm_scf *s);
fm_status fm__scf_average_density(fm_scf *s, int i);
fm_status fm__scf_average_fock(fm_scf *s);

/* The columns that D of spin `i` is made of. */
static inline double *fm__scf_columns(const fm_scf *s, int i, int *n)
{
    const fm__scf_parts *p       = s->parts;
    const int            is_mean = p->n_natural[i] > 0;
    *n                           = is_mean ? p->n_natural[i] : p->n_column[i];
    return is_mean ? p->natural[i] : p->column[i];
}

/* D of spin `s` from n_column columns: twice their product if restricted. */
void fm__scf_density_of(const fm_scf *s, double *D, const double *column, int n_column);

/* The effective Fock matrix of ROHF (closed-closed, open-open and virtual-virtual
 * blocks (Fa + Fb) / 2, closed-open Fb, open-virtual Fa). */
fm_status fm__scf_rohf_fock(const fm_scf *s, double *G);

/* Direct minimisation of the energy over orbital rotations, for what DIIS does
 * not converge: L-BFGS with the orbital energies as first Hessian.  A step gives
 * new orbitals; the energy decides at the next step whether it was too long. */
fm_status fm__descent_create(fm__descent **out, const fm_scf *s);
void      fm__descent_destroy(fm__descent *d); /* NULL is fine */
fm_status fm__descent_step(fm__descent *d, fm_scf *s);

/* Orbitals that diagonalise G within the closed, open and virtual ones each. */
fm_status fm__scf_canonical(fm_scf *s);

/* Occupied or open orbitals of `set` by class: 0 closed, 1 open, 2 virtual. */
static inline int fm__class_of(const fm_scf *s, int set, int orbital)
{
    if (s->n_set == 2) return orbital < s->n_occ[set] ? 0 : 2;
    return orbital < s->n_occ[1] ? 0 : orbital < s->n_occ[0] ? 1 : 2;
}

#endif
