/* SPDX-License-Identifier: Apache-2.0 */
/* Point-group operations on a molecule about the origin, in NWChem's settings:
 * the main axis is z; two-fold axes across it and mirror planes through it lie on
 * x (on the line x = y in groups of three and six).
 *
 *     axes ─> order of z, C2 across, mirrors ─> name ─> operations ─> exact coordinates */
#ifndef FM_CHEM_INPUT_SYMMETRY_H
#define FM_CHEM_INPUT_SYMMETRY_H

#include "chem/molecule.h"

typedef struct {
    double r[3][3];
} fm__op;

/* Rotation by `angle` about axis k, followed by the mirror across it if `improper`. */
fm__op fm__rotation(int k, double angle, int improper);
/* The mirror that turns axis k around. */
fm__op fm__mirror(int k);

/* Whether the operation takes every atom to one of the same tag, to `tol` bohr. */
int fm__is_symmetric(const fm_molecule *m, const fm__op *op, double tol);

void fm__image(const fm__op *op, const double x[3], double out[3]);
void fm__apply(fm_molecule *m, const fm__op *op);
/* The atom with this tag at `at`; -1: none. */
int fm__atom_at(const fm_molecule *m, const char *tag, const double at[3], double tol);

/* The n for which axis k is found to be a C_n or S_n axis; *is_proper: a C_n. */
int fm__axis_order(const fm_molecule *m, int k, double tol, int *is_proper);

/* Find the group of a molecule whose highest axis is z and whose other axes are x and
 * y; the molecule is turned about z into NWChem's setting.  Writes m->group. */
void fm__find_group(fm_molecule *m, int order, int is_proper, double tol);

/* Find the cubic group of a spherical top and turn the molecule to its two-fold axes, so
 * that its three-fold ones are the diagonals; C1 and the axes of the input if there is none. */
void fm__find_cubic_group(fm_molecule *m, double tol);

/* A group's name as NWChem writes it (C2v, D3h, Td ...) from any case; 0: unknown. */
int fm__group_name(const char *word, char name[8]);
/* Add the atoms that the operations of m->group make of those that are there. */
void fm__add_images(fm_molecule *m, double tol);
/* Make the coordinates exactly symmetric under m->group; fills m->grid_turn and m->op. */
void fm__symmetrise(fm_molecule *m, double tol);

#endif
