/* SPDX-License-Identifier: Apache-2.0 */
/* Erf1 partition: a point belongs to atom i with the share p_i / sum_j p_j, where
 * p_i is the product over the other atoms j of
 *     s(mu) = erfc(x) / 2,   x = mu / (1 - mu^2) / 0.30,   mu = (r_i - r_j) / R_ij
 * cut to 0 and 1 beyond |mu| = 0.725 (after Stratmann, Scuseria, Frisch 1996). */
#include <math.h>
#include <stdlib.h>

#include "chem/xc/grid_internal.h"

#define MU_MAX 0.725
#define MU_LINEAR 1e-6
#define SPREAD 0.30
#define SPHERE_SLACK 0.002 /* bohr */
#define WEIGHT_MIN 1e-13
#define RANGE_EPS 1e-10
#define PRODUCT_MIN 1e-16 /* an atom with less has no part in the sum */

/* Chebyshev fit of erfc, |relative error| < 1.2e-7, x >= 0 (Numerical Recipes). */
static double erfc_fit(double x)
{
    static const double c[10] = {-1.26551223, 1.00002368,  0.37409196, 0.09678418,  -0.18628806,
                                 0.27886807,  -1.13520398, 1.48851587, -0.82215223, 0.17087277};
    const double        t     = 1 / (1 + 0.5 * x);
    double              sum   = c[9];
    for (int i = 8; i >= 0; i--) sum = sum * t + c[i];
    return t * exp(sum - x * x);
}

static double share(double mu)
{
    if (mu > MU_MAX) return 0;
    if (mu < -MU_MAX) return 1;
    if (fabs(mu) < MU_LINEAR) return 0.5 - 1.88063178008 * mu;
    const double half = 0.5 * erfc_fit(fabs(mu) / (1 - mu * mu) * (1 / SPREAD));
    return mu > 0 ? half : 1 - half;
}

/* Where r^l exp(-z r^2) has fallen to RANGE_EPS, to first order. */
static double shell_range(const fm_shell *s)
{
    const double log_eps = log(RANGE_EPS);
    double       z       = s->exponent[0];
    for (int p = 1; p < s->n_prim; p++) z = fmin(z, s->exponent[p]);
    return (s->l * log(-log_eps) - s->l * log(z) - 4 * log_eps) / sqrt(-16 * z * log_eps);
}

static double centre_distance(const fm__partition *p, int i, int j)
{
    const double *a = p->xyz + 3 * i, *b = p->xyz + 3 * j;
    const double  x = a[0] - b[0], y = a[1] - b[1], z = a[2] - b[2];
    return sqrt(x * x + y * y + z * z);
}

static void find_reach(fm__partition *p, const fm_basis *b, const char *has_functions)
{
    for (int i = 0; i < p->n; i++) {
        p->reach[i] = has_functions[p->atom[i]] ? 0 : INFINITY;
        for (int s = 0; s < b->n_shell; s++)
            if (b->shell[s].atom == p->atom[i])
                p->reach[i] = fmax(p->reach[i], shell_range(&b->shell[s]));
    }
}

fm_status fm__partition_init(fm__partition *p, const fm_molecule *m, const fm_basis *b)
{
    const size_t n             = (size_t)m->n_atom;
    char        *has_functions = calloc(n, 1);
    *p                         = (fm__partition){.xyz     = malloc(3 * n * sizeof(double)),
                                                 .inverse = malloc(n * n * sizeof(double)),
                                                 .reach   = malloc(n * sizeof(double)),
                                                 .atom    = malloc(n * sizeof(int))};
    if (!has_functions || !p->xyz || !p->inverse || !p->reach || !p->atom) {
        free(has_functions);
        return fm_fail(FM_E_OOM, "partition of space");
    }
    for (int s = 0; s < b->n_shell; s++) has_functions[b->shell[s].atom] = 1;
    for (int i = 0; i < m->n_atom; i++) {
        if (!fm__grid_element(&m->atom[i], has_functions[i])) continue;
        for (int k = 0; k < 3; k++) p->xyz[3 * p->n + k] = m->atom[i].xyz[k];
        p->atom[p->n++] = i;
    }
    for (int i = 0; i < p->n; i++)
        for (int j = 0; j < p->n; j++)
            p->inverse[i * p->n + j] = i == j ? 0 : 1 / centre_distance(p, i, j);
    find_reach(p, b, has_functions);
    free(has_functions);
    return FM_OK;
}

void fm__partition_fini(fm__partition *p)
{
    free(p->xyz);
    free(p->inverse);
    free(p->reach);
    free(p->atom);
    *p = (fm__partition){0};
}

/* Centres whose functions reach the shell, the shell's own first. */
static int find_list(int *list, const fm__partition *p, const fm__grid_shell *s)
{
    int own = 0, n = 1;
    while (p->atom[own] != s->atom) own++;
    list[0] = own;
    for (int i = 0; i < p->n; i++)
        if (i != own && fmax(0, centre_distance(p, own, i) - s->radius) < p->reach[i])
            list[n++] = i;
    return n;
}

/* The first centre's share of the point at distances r[n]; product[n] is scratch. */
static double share_of_first(const fm__partition *p, const int *list, int n, const double *r,
                             double *product)
{
    product[0] = 1;
    for (int i = 1; i < n; i++) {
        const double s = share((r[0] - r[i]) * p->inverse[list[0] * p->n + list[i]]);
        if (s == 0) return 0;
        product[0] *= s;
        product[i] = 1 - s;
    }
    double sum = product[0];
    for (int i = 1; i < n; i++) {
        for (int j = 1; j < n && product[i] > PRODUCT_MIN; j++)
            if (j != i) product[i] *= share((r[i] - r[j]) * p->inverse[list[i] * p->n + list[j]]);
        sum += product[i];
    }
    return product[0] / sum;
}

static void divide(const fm__partition *p, const int *list, int n_list, int n, const double *x,
                   const double *y, const double *z, double *w, double *scratch)
{
    double *r = scratch, *product = scratch + n_list;
    for (int q = 0; q < n; q++) {
        for (int i = 0; i < n_list; i++) {
            const double *c  = p->xyz + 3 * list[i];
            const double  dx = x[q] - c[0], dy = y[q] - c[1], dz = z[q] - c[2];
            r[i] = sqrt(dx * dx + dy * dy + dz * dz);
        }
        w[q] *= share_of_first(p, list, n_list, r, product);
        if (fabs(w[q]) <= WEIGHT_MIN) w[q] = 0;
    }
}

int fm__partition_shell(const fm__partition *p, const fm__grid_shell *s, int n, const double *x,
                        const double *y, const double *z, double *w)
{
    int    *list    = malloc((size_t)p->n * sizeof *list);
    double *scratch = malloc(2 * (size_t)p->n * sizeof *scratch);
    FM_BUG_UNLESS(list && scratch);
    const int n_list  = find_list(list, p, s);
    double    nearest = INFINITY;
    for (int i = 1; i < n_list; i++) nearest = fmin(nearest, centre_distance(p, list[0], list[i]));
    const int is_divided = s->radius >= 0.5 * (1 - MU_MAX) * nearest + SPHERE_SLACK;
    if (is_divided) divide(p, list, n_list, n, x, y, z, w, scratch);
    free(list);
    free(scratch);
    return is_divided;
}
