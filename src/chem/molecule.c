/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/molecule.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void fm_molecule_fini(fm_molecule *m)
{
    free(m->atom);
    free(m->grid_turn);
    free(m->op);
    memset(m, 0, sizeof *m);
}

int fm_molecule_electrons(const fm_molecule *m)
{
    double charge = 0;
    for (int i = 0; i < m->n_atom; i++) charge += m->atom[i].charge;
    return (int)lround(charge) - m->charge;
}

double fm_molecule_repulsion(const fm_molecule *m)
{
    double e = 0;
    for (int i = 0; i < m->n_atom; i++)
        for (int j = 0; j < i; j++) {
            const fm_atom *a = &m->atom[i], *b = &m->atom[j];
            if (a->charge == 0 || b->charge == 0) continue; /* ghosts may lie on a nucleus */
            const double dx = a->xyz[0] - b->xyz[0], dy = a->xyz[1] - b->xyz[1],
                         dz = a->xyz[2] - b->xyz[2];
            e += a->charge * b->charge / sqrt(dx * dx + dy * dy + dz * dz);
        }
    return e;
}

void fm_molecule_dipole(const fm_molecule *m, double d[3])
{
    d[0] = d[1] = d[2] = 0;
    for (int i = 0; i < m->n_atom; i++)
        for (int k = 0; k < 3; k++) d[k] += m->atom[i].charge * m->atom[i].xyz[k];
}
