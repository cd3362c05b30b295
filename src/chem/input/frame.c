/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "chem/input/state.h"

/* Move the centre of nuclear charge to the origin. */
static void center(fm_molecule *m)
{
    double charge = 0, at[3] = {0};
    for (int i = 0; i < m->n_atom; i++) {
        charge += m->atom[i].charge;
        for (int k = 0; k < 3; k++) at[k] += m->atom[i].charge * m->atom[i].xyz[k];
    }
    if (!(charge > 0)) return;
    for (int i = 0; i < m->n_atom; i++)
        for (int k = 0; k < 3; k++) m->atom[i].xyz[k] -= at[k] / charge;
}

void fm__to_frame(fm_molecule *m, const fm__frame_options *opt)
{
    strcpy(m->group, "C1");
    m->grid_axes = FM_GRID_AXES_FRAME;
    if (opt->center) center(m);
}
