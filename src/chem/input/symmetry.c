/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "chem/input/symmetry.h"

#include <math.h>
#include <string.h>

enum { ORDER_MAX = 8, MOMENT_MAX = 24 };

fm__op fm__rotation(int k, double angle, int improper)
{
    const int    i = (k + 1) % 3, j = (k + 2) % 3;
    const double c = cos(angle), s = sin(angle);
    fm__op       op = {{{0}}};
    op.r[i][i] = op.r[j][j] = c;
    op.r[i][j]              = -s;
    op.r[j][i]              = s;
    op.r[k][k]              = improper ? -1 : 1;
    return op;
}

fm__op fm__mirror(int k) { return fm__rotation(k, 0, 1); }

void fm__image(const fm__op *op, const double x[3], double out[3])
{
    for (int i = 0; i < 3; i++)
        out[i] = op->r[i][0] * x[0] + op->r[i][1] * x[1] + op->r[i][2] * x[2];
}

int fm__atom_at(const fm_molecule *m, const char *tag, const double at[3], double tol)
{
    for (int i = 0; i < m->n_atom; i++) {
        const double *x = m->atom[i].xyz;
        if (fabs(x[0] - at[0]) < tol && fabs(x[1] - at[1]) < tol && fabs(x[2] - at[2]) < tol &&
            !strcmp(m->atom[i].tag, tag))
            return i;
    }
    return -1;
}

int fm__is_symmetric(const fm_molecule *m, const fm__op *op, double tol)
{
    double at[3];
    for (int i = 0; i < m->n_atom; i++) {
        fm__image(op, m->atom[i].xyz, at);
        if (fm__atom_at(m, m->atom[i].tag, at, tol) < 0) return 0;
    }
    return 1;
}

void fm__apply(fm_molecule *m, const fm__op *op)
{
    double at[3];
    for (int i = 0; i < m->n_atom; i++) {
        fm__image(op, m->atom[i].xyz, at);
        memcpy(m->atom[i].xyz, at, sizeof at);
    }
}

static int is_linear(const fm_molecule *m, int k, double tol)
{
    for (int i = 0; i < m->n_atom; i++)
        if (hypot(m->atom[i].xyz[(k + 1) % 3], m->atom[i].xyz[(k + 2) % 3]) > tol) return 0;
    return 1;
}

/* As fm__is_symmetric for a rotation about axis k; distances across it count as such. */
static int is_rotation(const fm_molecule *m, int k, double angle, int improper, double tol)
{
    const fm__op op = fm__rotation(k, angle, improper);
    double       at[3];
    for (int i = 0; i < m->n_atom; i++) {
        int found = 0;
        fm__image(&op, m->atom[i].xyz, at);
        for (int j = 0; j < m->n_atom && !found; j++) {
            const double *x = m->atom[j].xyz;
            found =
                hypot(x[(k + 1) % 3] - at[(k + 1) % 3], x[(k + 2) % 3] - at[(k + 2) % 3]) < tol &&
                fabs(x[k] - at[k]) < tol && !strcmp(m->atom[i].tag, m->atom[j].tag);
        }
        if (!found) return 0;
    }
    return 1;
}

/* |sum (x + iy)^n| over the atoms, x and y across axis k: zero unless n is a multiple of the
 * axis' order. */
static double moment_across(const fm_molecule *m, int k, int n)
{
    double re = 0, im = 0;
    for (int i = 0; i < m->n_atom; i++) {
        const double x = m->atom[i].xyz[(k + 1) % 3], y = m->atom[i].xyz[(k + 2) % 3];
        const double r = pow(hypot(x, y), n), angle = n * atan2(y, x);
        re += r * cos(angle);
        im += r * sin(angle);
    }
    return hypot(re, im);
}

/* NWChem's: the first n whose moment is above 100 tol, halved if it is even but no symmetry.
 * With coordinates of few digits that may miss a higher axis. */
int fm__axis_order(const fm_molecule *m, int k, double tol, int *is_proper)
{
    int n      = 1;
    *is_proper = 1;
    while (n <= MOMENT_MAX && !(moment_across(m, k, n) > 100 * tol)) n++;
    if (n > MOMENT_MAX) return is_linear(m, k, tol) ? 4 : 1; /* NWChem has no infinite groups */
    *is_proper = is_rotation(m, k, 2 * M_PI / n, 0, tol);
    if (*is_proper || is_rotation(m, k, 2 * M_PI / n, 1, tol)) return n <= ORDER_MAX ? n : 1;
    n          = n % 2 == 0 && n > 2 ? n / 2 : 1;
    *is_proper = 1;
    return n <= ORDER_MAX && is_rotation(m, k, 2 * M_PI / n, 0, tol) ? n : 1;
}
