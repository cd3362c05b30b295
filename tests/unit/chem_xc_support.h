/* SPDX-License-Identifier: Apache-2.0 */
/* Molecules of the exchange-correlation tests, in the frame their grid has. */
#ifndef TESTS_UNIT_CHEM_XC_SUPPORT_H
#define TESTS_UNIT_CHEM_XC_SUPPORT_H

#include "chem/basis/basis.h"
#include "chem/molecule.h"

typedef struct {
    const char *name;
    const char *atoms; /* "O x y z  H x y z ..." in angstrom */
    const char *set;   /* of the basis library, pure functions */
    int         charge;
    int         is_three_fold;
} xc_case;

/* NULL: no such case. */
const xc_case *xc_case_find(const char *name);
void           xc_case_open(const xc_case *c, fm_molecule *m, fm_basis *b);
void           xc_case_close(fm_molecule *m, fm_basis *b);

#endif
