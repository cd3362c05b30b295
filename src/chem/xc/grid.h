/* SPDX-License-Identifier: Apache-2.0 */
/* Points and weights of NWChem 7.0.2's molecular grids, H to Ar.
 *
 *     element, level ──> radial shells (Mura-Knowles) x Lebedev sets (pruned by radius)
 *     basis, overlap ──> radial cutoff R of every kind of atom
 *     all atoms ──> partition of space (Erf1), tiny weights dropped ──> points
 *
 * docs/chemistry.md, Grids, has the definitions.  The order of points is fixed:
 * atom by atom, shells outwards.
 *
 * Ownership: a grid owns its arrays; fm_grid_fini accepts a zeroed one. */
#ifndef FM_CHEM_XC_GRID_H
#define FM_CHEM_XC_GRID_H

#include "chem/basis/basis.h"
#include "chem/molecule.h"
#include "chem/xc/xc.h"

typedef struct {
    double *x, *y, *z, *w; /* [n_point] each, bohr */
    int     n_point;
    int    *cutoff; /* [n_atom] R in bohr; 0: no shells around this centre */
} fm_grid;

/* Shells and points of `level`, radial cutoffs of `cutoff_level`.  FM_E_NOSUP names an
 * element without a grid. */
fm_status fm_grid_init(fm_grid *g, const fm_molecule *m, const fm_basis *b, fm_grid_level level,
                       fm_grid_level cutoff_level, int n_thread);
void      fm_grid_fini(fm_grid *g);

#endif
