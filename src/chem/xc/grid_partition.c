/* SPDX-License-Identifier: Apache-2.0 */
/* Erf1 partition: a point belongs to atom i with the share p_i / sum_j p_j, where
 * p_i is the product over the other atoms j of
 *     s(mu) = erfc(x) / 2,   x = mu / (1 - mu^2) / 0.30,   mu = (r_i - r_j) / R_ij
 * cut to 0 and 1 beyond |mu| = 0.725 (after Stratmann, Scuseria, Frisch 1996). */
#include <math.h>
#include <stdlib.h>

#include "chem/xc/erf1.h"
#include "chem/xc/grid_internal.h"

#define SPHERE_SLACK 0.002 /* bohr */
#define WEIGHT_MIN 1e-13
#define RANGE_EPS 1e-10
#define PRODUCT_MIN 1e-16 /* an atom with less has no part in the sum */

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

/* The centres that divide one shell, the shell's own first, and scratch for a point. */
typedef struct {
    int                    n, n_padded;
    int                   *centre;  /* [n] */
    double                *inverse; /* [n][n_padded] 1 / distance, 0 in the padding */
    double                *r, *own, *other, *product; /* [n_padded] each */
    double                *numbers;                   /* what these point into */
    const fm_erf1_kernels *kernels;
} company;

static void find_centres(company *c, const fm__partition *p, const fm__grid_shell *s)
{
    int own = 0;
    while (p->atom[own] != s->atom) own++;
    c->n              = 0;
    c->centre[c->n++] = own;
    for (int i = 0; i < p->n; i++)
        if (i != own && fmax(0, centre_distance(p, own, i) - s->radius) < p->reach[i])
            c->centre[c->n++] = i;
}

static void open_company(company *c, const fm__partition *p, const fm__grid_shell *s)
{
    const size_t most = ((size_t)p->n + FM_ERF1_LANES - 1) / FM_ERF1_LANES * FM_ERF1_LANES;
    c->kernels        = fm_erf1_kernels_pick();
    c->centre         = malloc((size_t)p->n * sizeof *c->centre);
    c->numbers        = calloc(((size_t)p->n + 4) * most, sizeof *c->numbers);
    FM_BUG_UNLESS(c->centre && c->numbers);
    find_centres(c, p, s);
    c->n_padded = (c->n + FM_ERF1_LANES - 1) / FM_ERF1_LANES * FM_ERF1_LANES;
    c->r        = c->numbers;
    c->own = c->r + most, c->other = c->own + most, c->product = c->other + most;
    c->inverse = c->product + most;
    for (int i = 0; i < c->n; i++)
        for (int j = 0; j < c->n; j++)
            c->inverse[i * c->n_padded + j] = p->inverse[c->centre[i] * p->n + c->centre[j]];
}

static void close_company(company *c)
{
    free(c->centre);
    free(c->numbers);
}

/* Steps of centre i against all others; its own and the padding count as 1. */
static void steps_of(double *s, const company *c, int i)
{
    c->kernels->steps(s, c->r[i], c->r, c->inverse + i * c->n_padded, c->n_padded);
    s[i] = 1;
    for (int j = c->n; j < c->n_padded; j++) s[j] = 1;
}

/* The share of the shell's own centre in the point at distances c->r. */
static double own_share(const company *c)
{
    steps_of(c->own, c, 0);
    const double own = c->kernels->product(c->own, c->n_padded);
    if (own == 0) return 0;
    double sum = own;
    for (int i = 1; i < c->n; i++) {
        if (1 - c->own[i] <= PRODUCT_MIN) continue; /* the own centre takes all of it */
        steps_of(c->other, c, i);
        sum += c->kernels->product(c->other, c->n_padded);
    }
    return own / sum;
}

static void divide(const fm__partition *p, company *c, int n, const double *x, const double *y,
                   const double *z, double *w)
{
    for (int q = 0; q < n; q++) {
        for (int i = 0; i < c->n; i++) {
            const double *u  = p->xyz + 3 * c->centre[i];
            const double  dx = x[q] - u[0], dy = y[q] - u[1], dz = z[q] - u[2];
            c->r[i] = sqrt(dx * dx + dy * dy + dz * dz);
        }
        w[q] *= own_share(c);
        if (fabs(w[q]) <= WEIGHT_MIN) w[q] = 0;
    }
}

int fm__partition_shell(const fm__partition *p, const fm__grid_shell *s, int n, const double *x,
                        const double *y, const double *z, double *w)
{
    company c;
    open_company(&c, p, s);
    double nearest = INFINITY;
    for (int i = 1; i < c.n; i++)
        nearest = fmin(nearest, centre_distance(p, c.centre[0], c.centre[i]));
    const int is_divided = s->radius >= 0.5 * (1 - FM_ERF1_MU_MAX) * nearest + SPHERE_SLACK;
    if (is_divided) divide(p, &c, n, x, y, z, w);
    close_company(&c);
    return is_divided;
}
