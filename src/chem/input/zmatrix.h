/* SPDX-License-Identifier: Apache-2.0 */
/* zmatrix ... end inside a geometry:
 *
 *     tag [i length [j angle [k dihedral | k angle +-1]]]
 *     variables, constants: lines of a name and a value
 *
 * i, j, k are numbers or tags of earlier atoms; a length or angle is a number or the
 * name of a value, with a minus in front if need be.  The first atom is the origin, the
 * second lies on z, the third in the xz plane. */
#ifndef FM_CHEM_INPUT_ZMATRIX_H
#define FM_CHEM_INPUT_ZMATRIX_H

#include "chem/input/words.h"
#include "chem/molecule.h"

/* Append the atoms to the molecule, which must have none; lengths are times `scale`.
 * `new_atom` makes an atom of a tag. */
typedef fm_status fm__new_atom(fm__words *w, fm_molecule *m, const char *tag);
fm_status fm__read_zmatrix(fm__words *w, fm_molecule *m, double scale, fm__new_atom *new_atom);

#endif
