/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of shells and points per element and level, the radial map, pruning. */
#include <ctype.h>
#include <math.h>
#include <strings.h>

#include "chem/xc/grid_internal.h"
#include "chem/xc/lebedev.h"

enum { Z_MAX = 18, N_LEVEL = FM_GRID_HUGE + 1 };

#define BOHR_PER_ANGSTROM 1.88972598858

/* Shells and Lebedev set of each level, xcoarse to huge. */
typedef struct {
    int last_z; /* the row holds up to this element */
    int n_shell[N_LEVEL];
    int set[N_LEVEL];
} grid_row;

static const grid_row row[] = {
    {1, {21, 35, 45, 60, 100, 300}, {8, 11, 13, 14, 17, 17}},
    {2, {21, 35, 49, 70, 100, 300}, {8, 11, 13, 14, 17, 17}},
    {10, {21, 35, 49, 70, 100, 300}, {8, 11, 13, 14, 18, 18}},
    {11, {42, 70, 88, 123, 125, 300}, {8, 11, 13, 15, 18, 18}},
    {18, {42, 70, 88, 123, 125, 300}, {8, 11, 14, 15, 18, 18}},
};

/* Bragg-Slater radii in angstrom, single precision as NWChem has them. */
static const float radius_of[Z_MAX + 1] = {0,     0.35f, 0.35f, 1.45f, 1.05f, 0.85f, 0.70f,
                                           0.65f, 0.60f, 0.50f, 0.50f, 1.80f, 1.50f, 1.25f,
                                           1.10f, 1.00f, 1.00f, 1.00f, 1.00f};

/* Borders of the pruned regions in units of the radius: H and He, Li to Ne, beyond. */
static const float border[3][4] = {
    {0.25f, 0.5f, 1.0f, 4.5f}, {0.1667f, 0.5f, 0.9f, 3.5f}, {0.1f, 0.4f, 0.8f, 2.5f}};

int fm__grid_element(const fm_atom *a, int has_functions)
{
    if (a->z > 0) return a->z;
    if (!has_functions || strncasecmp(a->tag, "bq", 2) != 0) return 0;
    const char *name      = a->tag + 2;
    char        symbol[3] = {name[0], 0, 0};
    if (name[0] && isalpha((unsigned char)name[1])) symbol[1] = name[1];
    int z = symbol[0] ? fm_element_find(symbol) : 0;
    if (z == 0 && symbol[1]) symbol[1] = 0, z = fm_element_find(symbol);
    return z;
}

int fm__grid_knows(int z) { return z >= 1 && z <= Z_MAX; }

double fm__grid_accuracy(fm_grid_level level)
{
    static const double eps[N_LEVEL] = {1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-10};
    return eps[level];
}

/* Fewer points near the nucleus, where the density is nearly spherical, one set
 * down between core and valence and in the tail. */
static int pruned_set(int full, double r, const double r_border[4])
{
    if (r < r_border[0]) return 2;
    if (r < r_border[1]) return 4;
    if (r < r_border[2]) return full - 1 > 4 ? full - 1 : 4;
    if (r < r_border[3]) return full;
    return full - 1;
}

int fm__grid_shells(fm__grid_shell *out, int atom, int z, int charge, int cutoff,
                    fm_grid_level level)
{
    const grid_row *g = row;
    while (g->last_z < z) g++;
    const int    n        = g->n_shell[level];
    const float *relative = border[charge < 3 ? 0 : charge < 11 ? 1 : 2];
    double       r_border[4];
    for (int i = 0; i < 4; i++)
        r_border[i] = (double)relative[i] * ((double)radius_of[z] * BOHR_PER_ANGSTROM);

    const double alpha = -(double)cutoff / log(1 - pow((n + 1.0) / (n + 2.0), 3));
    for (int i = 1; i <= n; i++) {
        const double q = i / (n + 1.0), rest = 1 - q * q * q;
        const double r = -alpha * log(rest);
        out[i - 1]     = (fm__grid_shell){.atom   = atom,
                                          .set    = pruned_set(g->set[level], r, r_border),
                                          .radius = r,
                                          .weight = 3 / (n + 1.0) * alpha * r * r / rest * q * q *
                                                    (4 * 3.14159265358979323846)};
    }
    return n;
}
