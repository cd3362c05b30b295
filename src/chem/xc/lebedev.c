/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/xc/lebedev.h"

#include <math.h>

#include "base/status.h"
#include "chem/xc/lebedev_internal.h"

static const fm__lebedev_set *set_of(int set)
{
    FM_BUG_UNLESS(set >= 1 && set <= FM_LEBEDEV_SETS);
    return &fm__lebedev_tab[set - 1];
}

int fm_lebedev_points(int set) { return set_of(set)->n_point; }

int fm_lebedev_degree(int set) { return set_of(set)->degree; }

/* The coordinates, without signs, of the point that names an orbit. */
static void representative(double v[3], const fm__orbit *o)
{
    static const double axis[3][3] = {
        {1, 0, 0},
        {0.70710678118654752440, 0.70710678118654752440, 0},
        {0.57735026918962576451, 0.57735026918962576451, 0.57735026918962576451}};
    const double a = o->a, b = o->b;
    switch (o->kind) {
    case FM_ORBIT_AAC: v[0] = v[1] = a, v[2] = sqrt(1 - 2 * a * a); break;
    case FM_ORBIT_AC0: v[0] = a, v[1] = sqrt(1 - a * a), v[2] = 0; break;
    case FM_ORBIT_ABC: v[0] = a, v[1] = b, v[2] = sqrt(1 - a * a - b * b); break;
    default:
        for (int i = 0; i < 3; i++) v[i] = axis[o->kind][i];
    }
}

static int is_known(const fm_sphere_point *p, int n, const double v[3])
{
    for (int i = 0; i < n; i++)
        if (p[i].xyz[0] == v[0] && p[i].xyz[1] == v[1] && p[i].xyz[2] == v[2]) return 1;
    return 0;
}

/* Every permutation of the coordinates with every choice of signs, each point once. */
static int fill_orbit(fm_sphere_point *out, const fm__orbit *o)
{
    static const int permutation[6][3] = {{0, 1, 2}, {1, 0, 2}, {0, 2, 1},
                                          {2, 0, 1}, {1, 2, 0}, {2, 1, 0}};
    double           v[3];
    int              n = 0;
    representative(v, o);
    for (int p = 0; p < 6; p++)
        for (int sign = 0; sign < 8; sign++) {
            double u[3];
            for (int i = 0; i < 3; i++)
                u[i] = sign >> i & 1 ? -v[permutation[p][i]] : v[permutation[p][i]];
            if (is_known(out, n, u)) continue;
            for (int i = 0; i < 3; i++) out[n].xyz[i] = u[i];
            out[n++].weight = o->weight;
        }
    return n;
}

void fm_lebedev_fill(fm_sphere_point *out, int set)
{
    const fm__lebedev_set *s = set_of(set);
    int                    n = 0;
    for (int i = 0; i < s->n_orbit; i++) n += fill_orbit(out + n, &s->orbit[i]);
    FM_BUG_UNLESS(n == s->n_point);
}
