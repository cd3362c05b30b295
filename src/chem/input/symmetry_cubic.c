/* SPDX-License-Identifier: Apache-2.0 */
/* Spherical tops: T, Td, Th, O and Oh have three two-fold axes at right angles that a
 * three-fold one turns into each other.  They become x, y and z. */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chem/input/symmetry.h"

enum { AXES_MAX = 9 }; /* two-fold axes of O; an icosahedron has 15 */

typedef struct {
    double axis[AXES_MAX + 1][3];
    int    n;
} axis_list;

static double dot(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* Half a turn about u: 2 u u^T - 1. */
static fm__op half_turn(const double u[3])
{
    fm__op op;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) op.r[i][j] = 2 * u[i] * u[j] - (i == j);
    return op;
}

/* v as an axis, if it is two-fold and new. */
static void try_axis(axis_list *l, const fm_molecule *m, const double v[3], double tol)
{
    const double length = sqrt(dot(v, v));
    double       u[3];
    if (length < 10 * tol || l->n > AXES_MAX) return;
    for (int k = 0; k < 3; k++) u[k] = v[k] / length;
    for (int i = 0; i < l->n; i++)
        if (fabs(dot(u, l->axis[i])) > 0.99) return;
    const fm__op op = half_turn(u);
    if (fm__is_symmetric(m, &op, tol)) memcpy(l->axis[l->n++], u, sizeof u);
}

/* A two-fold axis goes through an atom or between two that it exchanges. */
static axis_list two_fold_axes(const fm_molecule *m, double tol)
{
    axis_list l = {.n = 0};
    for (int i = 0; i < m->n_atom; i++)
        for (int j = 0; j <= i; j++) {
            double v[3];
            for (int k = 0; k < 3; k++) v[k] = m->atom[i].xyz[k] + m->atom[j].xyz[k];
            if (!strcmp(m->atom[i].tag, m->atom[j].tag)) try_axis(&l, m, v, tol);
        }
    return l;
}

/* Rows: x from a (made orthogonal to z), y, z = b. */
static fm__op frame_of(const double a[3], const double b[3])
{
    fm__op       op;
    const double along = dot(a, b);
    double       length;
    for (int k = 0; k < 3; k++) {
        op.r[2][k] = b[k];
        op.r[0][k] = a[k] - along * b[k];
    }
    length = sqrt(dot(op.r[0], op.r[0]));
    for (int k = 0; k < 3; k++) op.r[0][k] /= length;
    for (int k = 0; k < 3; k++)
        op.r[1][k] = op.r[2][(k + 1) % 3] * op.r[0][(k + 2) % 3] -
                     op.r[2][(k + 2) % 3] * op.r[0][(k + 1) % 3];
    return op;
}

static const char *cubic_name(const fm_molecule *m, double tol)
{
    const fm__op four = fm__rotation(2, M_PI / 2, 0), s4 = fm__rotation(2, M_PI / 2, 1);
    const fm__op inversion  = fm__rotation(2, M_PI, 1);
    const int    has_centre = fm__is_symmetric(m, &inversion, tol);
    if (fm__is_symmetric(m, &four, tol)) return has_centre ? "Oh" : "O";
    if (fm__is_symmetric(m, &s4, tol)) return "Td";
    return has_centre ? "Th" : "T";
}

/* Turns the molecule to axes a and b, if these are axes of a cube. */
static int turn_to(fm_molecule *m, const double a[3], const double b[3], double tol)
{
    const fm__op cycle = {{{0, 0, 1}, {1, 0, 0}, {0, 1, 0}}}; /* three-fold about (1,1,1) */
    const fm__op turn  = frame_of(a, b);
    fm__op       back;
    for (int c = 0; c < 9; c++) back.r[c / 3][c % 3] = turn.r[c % 3][c / 3];
    fm__apply(m, &turn);
    if (fm__is_symmetric(m, &cycle, tol)) return 1;
    fm__apply(m, &back);
    return 0;
}

void fm__find_cubic_group(fm_molecule *m, double tol)
{
    const axis_list l = two_fold_axes(m, tol);
    strcpy(m->group, "C1");
    if (l.n > AXES_MAX) return;
    for (int i = 0; i < l.n; i++)
        for (int j = 0; j < i; j++)
            if (fabs(dot(l.axis[i], l.axis[j])) < 0.01 && turn_to(m, l.axis[i], l.axis[j], tol)) {
                strcpy(m->group, cubic_name(m, tol));
                return;
            }
}
