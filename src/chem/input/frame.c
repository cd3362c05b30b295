/* SPDX-License-Identifier: Apache-2.0 */
/* The frame NWChem computes in.  It is felt by DFT grids alone, and by geometries that
 * are symmetric to 0.01 bohr only: those are made exactly so. */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "chem/input/principal.h"
#include "chem/input/state.h"
#include "chem/input/symmetry.h"

static double weight(const fm_atom *a, int by_charge) { return by_charge ? a->charge : a->mass; }

/* NWChem finds cubic groups only if the centre of mass was so close to the origin (bohr). */
static const double cubic_centre = 0.005;

/* Move the centre of nuclear charge or mass to the origin; how far it was away. */
static double center(fm_molecule *m, int by_charge)
{
    double total = 0, at[3] = {0};
    for (int i = 0; i < m->n_atom; i++) {
        const double w = weight(&m->atom[i], by_charge);
        total += w;
        for (int k = 0; k < 3; k++) at[k] += w * m->atom[i].xyz[k];
    }
    if (!(total > 0)) return 0;
    for (int i = 0; i < m->n_atom; i++)
        for (int k = 0; k < 3; k++) m->atom[i].xyz[k] -= at[k] / total;
    return sqrt(at[0] * at[0] + at[1] * at[1] + at[2] * at[2]) / total;
}

static int is_ghost(const fm_atom *a) { return a->z == 0 && !strncasecmp(a->tag, "bq", 2); }

/* Ghosts without a mass count 1, 2, ... u, one number for each tag in the order of the deck. */
static double mass_of(const fm_molecule *m, int a)
{
    if (!is_ghost(&m->atom[a]) || m->atom[a].mass != 0) return m->atom[a].mass;
    int n_tag = 0;
    for (int i = 0; i <= a; i++) {
        int is_new = is_ghost(&m->atom[i]) && m->atom[i].mass == 0;
        for (int j = 0; j < i; j++)
            if (!strcmp(m->atom[j].tag, m->atom[i].tag)) is_new = 0;
        n_tag += is_new;
        if (!strcmp(m->atom[i].tag, m->atom[a].tag)) break;
    }
    return n_tag;
}

static void inertia(const fm_molecule *m, double I[3][3])
{
    memset(I, 0, 9 * sizeof(double));
    for (int a = 0; a < m->n_atom; a++) {
        const double *x = m->atom[a].xyz, r2 = x[0] * x[0] + x[1] * x[1] + x[2] * x[2];
        const double  mass = mass_of(m, a);
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) I[i][j] += mass * ((i == j ? r2 : 0) - x[i] * x[j]);
    }
}

static void cross(double out[3], const double a[3], const double b[3])
{
    for (int k = 0; k < 3; k++)
        out[k] = a[(k + 1) % 3] * b[(k + 2) % 3] - a[(k + 2) % 3] * b[(k + 1) % 3];
}

/* A symmetric top: the middle axis points to the first atom off the `unique` one, which is
 * at an angle of more than 1e-5 to it. */
static void axes_by_atom(const fm_molecule *m, double axes[3][3], int unique)
{
    for (int a = 0; a < m->n_atom; a++) {
        const double *x = m->atom[a].xyz, *u = axes[unique];
        const double  along  = x[0] * u[0] + x[1] * u[1] + x[2] * u[2];
        const double  radius = sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2]);
        double        off[3], length = 0;
        for (int k = 0; k < 3; k++) {
            off[k] = x[k] - along * u[k];
            length += off[k] * off[k];
        }
        length = sqrt(length);
        if (radius <= 1e-5 || length <= 1e-5 * radius) continue;
        for (int k = 0; k < 3; k++) axes[1][k] = off[k] / length;
        break;
    }
    if (unique == 2)
        cross(axes[0], axes[1], axes[2]);
    else
        cross(axes[2], axes[0], axes[1]);
}

/* Turn to the principal axes, the one of highest order to z.  0: a spherical top, which
 * has none. */
static int turn_to_axes(fm_molecule *m, double tol, int *z_order, int *z_is_proper)
{
    double axes[3][3], moment[3];
    int    order[3], is_proper[3];
    double I[3][3];
    inertia(m, I);
    fm__principal_axes(I, axes, moment);
    const int first = fabs(moment[1] - moment[0]) < FM__EQUAL_MOMENTS;
    const int last  = fabs(moment[2] - moment[1]) < FM__EQUAL_MOMENTS;
    if (first && last) return 0;
    if (first || last) axes_by_atom(m, axes, fabs(moment[2] - moment[1]) < tol ? 0 : 2);

    fm__op turn;
    memcpy(turn.r, axes, sizeof turn.r);
    fm__apply(m, &turn);
    for (int k = 0; k < 3; k++) order[k] = fm__axis_order(m, k, tol, &is_proper[k]);
    int z = 0; /* of several with the highest order the first, whatever its own is */
    for (int k = 1; k < 3; k++)
        if (order[k] > order[(k + 1) % 3] && order[k] > order[(k + 2) % 3]) z = k;
    fm__op to_z = {{{0}}};
    for (int k = 0; k < 3; k++) to_z.r[k][(z + 1 + k) % 3] = 1;
    fm__apply(m, &to_z);
    *z_order     = order[z];
    *z_is_proper = is_proper[z];
    return 1;
}

static fm_grid_axes grid_axes_of(const char *group)
{
    static const char *const three_fold[] = {"C3", "D3", "C3v", "C3h", "D3h", "D3d"};
    for (size_t i = 0; i < sizeof three_fold / sizeof *three_fold; i++)
        if (!strcmp(group, three_fold[i])) return FM_GRID_AXES_THREE_FOLD;
    return FM_GRID_AXES_FRAME;
}

void fm__to_frame(fm_molecule *m, const fm__frame_options *opt)
{
    int order, is_proper;
    strcpy(m->group, "C1");
    if (opt->autosym) {
        const double moved = center(m, 0);
        if (turn_to_axes(m, opt->tolerance, &order, &is_proper))
            fm__find_group(m, order, is_proper, opt->tolerance);
        else if (moved < cubic_centre)
            fm__find_cubic_group(m, opt->tolerance);
    }
    if (opt->group[0]) {
        strcpy(m->group, opt->group);
        fm__add_images(m, opt->tolerance);
    }
    if (opt->center) center(m, 1);
    if (strcmp(m->group, "C1") != 0) fm__symmetrise(m, opt->tolerance);
    m->grid_axes = grid_axes_of(m->group);
}
