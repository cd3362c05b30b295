/* SPDX-License-Identifier: Apache-2.0 */
/* The basis sets carried in the program: src/chem/basis/data, H to Ar.
 *
 * Names are those of NWChem's decks: case does not matter, `*` may be spelt `s`,
 * `(d)` and `(d,p)` mean `*` and `**`. */
#ifndef FM_CHEM_BASIS_LIBRARY_H
#define FM_CHEM_BASIS_LIBRARY_H

#include "chem/basis/shells.h"

int fm_library_has(const char *set);

/* Append the shells of element z.  FM_E_ARG: no such set; FM_E_NOSUP: the set has
 * no such element.  The list is unchanged then. */
fm_status fm_library_shells(fm_shells *out, const char *set, int z);

/* The i-th set's name as decks write it; NULL past the last one. */
const char *fm_library_name(int i, char name[32]);

#endif
