/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of building a grid, one file each. */
#ifndef FM_CHEM_XC_GRID_INTERNAL_H
#define FM_CHEM_XC_GRID_INTERNAL_H

#include "chem/xc/grid.h"

/* grid_shells.c: one sphere of points around an atom. */
typedef struct {
    int    atom;
    int    set;    /* Lebedev set */
    double radius; /* bohr */
    double weight; /* radial, with r^2 and 4 pi */
} fm__grid_shell;

enum { FM__GRID_SHELLS_MAX = 300 };

/* The element whose shells a centre has: its own, or for a ghost with basis
 * functions the one its tag names (bqO); 0: none. */
int fm__grid_element(const fm_atom *a, int has_functions);
int fm__grid_knows(int z);
/* Writes at most FM__GRID_SHELLS_MAX shells, inwards to outwards, and returns their number. */
int    fm__grid_shells(fm__grid_shell *out, int atom, int z, int charge, int cutoff,
                       fm_grid_level level);
double fm__grid_accuracy(fm_grid_level level); /* fraction of a function's norm beyond R */

/* grid_cutoff.c: cutoff[n_atom] in bohr from the reach of products of diffuse functions. */
fm_status fm__grid_cutoffs(int *cutoff, const fm_molecule *m, const fm_basis *b, double accuracy);

/* grid_axes.c: column j is the direction of the j-th axis of the Lebedev sets. */
void fm__grid_axes(double axes[3][3], const fm_molecule *m);

/* grid_partition.c: how space is divided among atoms. */
typedef struct {
    int     n;       /* centres that take part */
    double *xyz;     /* [n][3] */
    double *inverse; /* [n][n] 1 / distance */
    double *reach;   /* [n] range of the farthest-reaching shell at 1e-10 */
    int    *atom;    /* [n] */
} fm__partition;

fm_status fm__partition_init(fm__partition *p, const fm_molecule *m, const fm_basis *b);
void      fm__partition_fini(fm__partition *p);
/* Multiplies w[0..n) of points on one shell by the atom's share and sets weights
 * below 1e-13 to zero; a shell inside the atom's own sphere is left alone.
 * Returns whether it was divided. */
int fm__partition_shell(const fm__partition *p, const fm__grid_shell *s, int n, const double *x,
                        const double *y, const double *z, double *w);

#endif
