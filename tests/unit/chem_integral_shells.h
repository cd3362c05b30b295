/* SPDX-License-Identifier: Apache-2.0 */
/* Four centres with shells from s to g: contracted generally and not, steep and
 * diffuse, near and far.  The same as in tools/golden/chem_integrals.py. */
#ifndef FM_TEST_CHEM_INTEGRAL_SHELLS_H
#define FM_TEST_CHEM_INTEGRAL_SHELLS_H

#include <string.h>

#include "chem/basis/basis.h"

enum { SHELL_ATOMS = 4 };

typedef struct {
    int    atom, l, n_prim, n_column;
    double rows[9];
} shell_rows;

static const shell_rows shell_list[] = {
    {0, 0, 3, 3, {13.0, 0.02, -0.01, 1.9, 0.3, -0.2, 0.4, 0.7, 1.1}},
    {0, 1, 2, 2, {3.1, 0.4, 0.6, 0.7}},
    {0, 2, 1, 2, {0.9, 1.0}},
    {1, 0, 1, 2, {2.0e3, 1.0}},
    {1, 3, 1, 2, {1.2, 1.0}},
    {1, 4, 1, 2, {0.8, 1.0}},
    {2, 0, 1, 2, {0.02, 1.0}},
    {2, 1, 1, 2, {0.3, 1.0}},
    {2, 2, 1, 2, {0.05, 1.0}},
    {3, 2, 2, 3, {4.0, 0.3, 0.8, 0.7, 0.8, -0.5}},
    {3, 4, 1, 2, {2.0, 1.0}},
};

static const double shell_xyz[SHELL_ATOMS][3] = {
    {0, 0, 0}, {0.7, -0.4, 1.1}, {12, 3, -5}, {0.2, 0.1, -0.3}};

/* turn (row-major, may be NULL) and shift act on the centres */
static inline fm_status shells_build(fm_basis *b, fm_molecule *m, fm_atom atom[SHELL_ATOMS],
                                     int is_pure, const double turn[9], const double shift[3])
{
    fm_shells        of[SHELL_ATOMS] = {{0}};
    const fm_shells *list[SHELL_ATOMS];
    fm_status        rc = FM_OK;
    memset(atom, 0, SHELL_ATOMS * sizeof *atom);
    for (int a = 0; a < SHELL_ATOMS; a++) {
        list[a]        = &of[a];
        atom[a].z      = 1;
        atom[a].charge = 1;
        for (int x = 0; x < 3; x++) {
            double c = 0;
            for (int y = 0; y < 3; y++) c += (turn ? turn[x * 3 + y] : x == y) * shell_xyz[a][y];
            atom[a].xyz[x] = c + (shift ? shift[x] : 0);
        }
    }
    *m = (fm_molecule){.atom = atom, .n_atom = SHELL_ATOMS};
    for (size_t k = 0; k < sizeof shell_list / sizeof *shell_list && rc == FM_OK; k++)
        rc = fm_shells_add(&of[shell_list[k].atom], shell_list[k].l, shell_list[k].rows,
                           shell_list[k].n_prim, shell_list[k].n_column);
    if (rc == FM_OK) rc = fm_basis_build(b, m, list, is_pure);
    for (int a = 0; a < SHELL_ATOMS; a++) fm_shells_fini(&of[a]);
    return rc;
}

#endif
