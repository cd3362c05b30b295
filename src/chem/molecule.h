/* SPDX-License-Identifier: Apache-2.0 */
/* Nuclei in space: what a deck's geometry becomes after unit conversion,
 * centring and rotation to its frame.  Everything is in bohr and atomic units.
 *
 * Ownership: a molecule owns its atoms; fm_molecule_fini accepts a zeroed one. */
#ifndef FM_CHEM_MOLECULE_H
#define FM_CHEM_MOLECULE_H

#include "base/status.h"

enum { FM_TAG_MAX = 16 };

typedef struct {
    char   tag[FM_TAG_MAX]; /* as written in the deck: O, O1, bqH ... */
    int    z;               /* atomic number, 0 for a ghost */
    double charge;          /* of the nucleus; 0 for a ghost */
    double mass;            /* of the most abundant isotope, in u */
    double xyz[3];          /* bohr */
} fm_atom;

/* How the Lebedev sets of a DFT grid are oriented (docs/chemistry.md, Grids). */
typedef enum {
    FM_GRID_AXES_FRAME,     /* principal axes of the charge tensor, within the molecule's frame */
    FM_GRID_AXES_THREE_FOLD /* the same, then (1,1,1) turned onto z: C3, D3, C3v, C3h, D3h, D3d */
} fm_grid_axes;

typedef struct {
    fm_atom     *atom; /* [n_atom] owned */
    int          n_atom;
    int          charge; /* of the whole molecule, in units of e */
    char         group[8];   /* point group that was found or asked for, "C1" if none */
    fm_grid_axes grid_axes;
    /* [n_atom] owned, or NULL: how the grid of an atom is turned against the molecule's
     * axes.  The last of several equivalent atoms keeps them; the grids of the others are
     * its images under the group, as in NWChem, which integrates over unique atoms. */
    double (*grid_turn)[3][3];
    /* [n_op] owned: the operations of `group` about the origin, the identity first; none for
     * C1.  Coordinates obey them exactly. */
    double (*op)[3][3];
    int n_op;
} fm_molecule;

void   fm_molecule_fini(fm_molecule *m);
int    fm_molecule_electrons(const fm_molecule *m);         /* nuclear charges less `charge` */
double fm_molecule_repulsion(const fm_molecule *m);         /* hartree */
void   fm_molecule_dipole(const fm_molecule *m, double d[3]); /* of the nuclei, about the origin */

/* 1..FM_Z_MAX; 0: no such element.  Case does not matter. */
enum { FM_Z_MAX = 54 };
int         fm_element_find(const char *symbol);
const char *fm_element_symbol(int z);
double      fm_element_mass(int z);

#endif
