/* SPDX-License-Identifier: Apache-2.0 */
/* The radial cutoff R of a kind of atom: how far products of its most diffuse
 * function with those of its neighbours reach. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chem/integral/one_electron.h"
#include "chem/xc/grid_internal.h"

#define OVERLAP_MIN 1e-5 /* atoms whose functions overlap less are no neighbours */

typedef struct {
    int    l;
    double exponent; /* 0: no functions on this centre */
} diffuse;

/* Integral of t^k exp(-a t^2) from r to infinity by recursion in k.  The start
 * exp(-a r^2)/2a is right for odd k only; NWChem up to 7.3.1 uses it for even k
 * as well, and its grids are defined by that. */
static double tail(int k, double a, double r)
{
    if (a * r * r > 500) return 0;
    const double e     = exp(-a * r * r);
    double       value = e / (2 * a);
    for (int i = k % 2 + 2; i <= k; i += 2) value = ((i - 1) * value + pow(r, i - 1) * e) / (2 * a);
    return value;
}

/* The radius beyond which a fraction eps of t^k exp(-a t^2) lies, on a raster of
 * 0.5 that is halved down to 0.01. */
static double negligible_radius(int k, double a, double eps)
{
    const double whole = tail(k + 2, a, 0);
    double       r = 1, step = 0.5;
    do {
        if (tail(k + 2, a, r) / whole > eps) {
            r += step;
        } else {
            r = r > step ? r - step : 0;
            step *= 0.5;
            r += step;
        }
    } while (step > 0.01);
    return r;
}

static void find_diffuse(diffuse *d, const fm_molecule *m, const fm_basis *b, double eps)
{
    double *reach = calloc((size_t)m->n_atom, sizeof *reach);
    FM_BUG_UNLESS(reach != NULL);
    memset(d, 0, (size_t)m->n_atom * sizeof *d);
    for (int i = 0; i < b->n_shell; i++) {
        const fm_shell *s = &b->shell[i];
        double          z = s->exponent[0];
        for (int p = 1; p < s->n_prim; p++) z = fmin(z, s->exponent[p]);
        const double r = negligible_radius(2 * s->l + 2, 2 * z, eps);
        if (r > reach[s->atom]) reach[s->atom] = r, d[s->atom] = (diffuse){s->l, z};
    }
    free(reach);
}

/* touches[i][j]: the largest overlap between functions of atoms i and j counts. */
static void find_neighbours(char *touches, const fm_molecule *m, const fm_basis *b, const double *S)
{
    const size_t n = (size_t)b->n_function;
    for (int i = 0; i < b->n_shell; i++)
        for (int j = 0; j < b->n_shell; j++) {
            const fm_shell *s = &b->shell[i], *t = &b->shell[j];
            char           *mark = &touches[s->atom * m->n_atom + t->atom];
            for (int f = 0; f < fm_shell_functions(s) && !*mark; f++)
                for (int g = 0; g < fm_shell_functions(t); g++)
                    if (fabs(S[(size_t)(s->first + f) * n + (size_t)(t->first + g)]) > OVERLAP_MIN)
                        *mark = 1;
        }
}

static double distance(const fm_atom *a, const fm_atom *b)
{
    const double x = a->xyz[0] - b->xyz[0], y = a->xyz[1] - b->xyz[1], z = a->xyz[2] - b->xyz[2];
    return sqrt(x * x + y * y + z * z);
}

static double reach_of(int i, const fm_molecule *m, const diffuse *d, const char *touches,
                       double eps)
{
    double reach = 0;
    for (int j = 0; j < m->n_atom; j++) {
        if (d[j].exponent == 0 || (i != j && !touches[i * m->n_atom + j])) continue;
        const double sum = d[i].exponent + d[j].exponent;
        const double r   = distance(&m->atom[i], &m->atom[j]);
        reach            = fmax(reach, negligible_radius(d[i].l + d[j].l + 2, sum, eps) +
                                           r * d[i].exponent / sum + r);
    }
    return reach;
}

static int is_same_kind(const fm_atom *a, const fm_atom *b)
{
    return a->z == b->z && a->charge == b->charge && strcmp(a->tag, b->tag) == 0;
}

fm_status fm__grid_cutoffs(int *cutoff, const fm_molecule *m, const fm_basis *b, double accuracy)
{
    fm_status    rc     = FM_OK;
    const size_t n_atom = (size_t)m->n_atom, n = (size_t)b->n_function;
    diffuse     *d       = malloc(n_atom * sizeof *d);
    char        *touches = calloc(n_atom * n_atom, 1);
    double      *S       = malloc((n * n + 1) * sizeof *S);
    if (!d || !touches || !S) {
        rc = fm_fail(FM_E_OOM, "radial cutoffs of the grid");
        goto out;
    }
    fm_overlap(S, b);
    find_diffuse(d, m, b, accuracy);
    find_neighbours(touches, m, b, S);
    for (int i = 0; i < m->n_atom; i++)
        cutoff[i] = d[i].exponent == 0 ? 0 : (int)lround(reach_of(i, m, d, touches, accuracy));
    for (int i = 0; i < m->n_atom; i++) /* atoms of a kind have the largest cutoff of them */
        for (int j = 0; j < m->n_atom; j++)
            if (cutoff[j] > cutoff[i] && is_same_kind(&m->atom[i], &m->atom[j]))
                cutoff[i] = cutoff[j];
out:
    free(d);
    free(touches);
    free(S);
    return rc;
}
