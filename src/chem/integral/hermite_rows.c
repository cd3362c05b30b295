/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/integral/hermite_rows.h"

#include <math.h>
#include <stdlib.h>

#include "chem/integral/eri_classes.h"
#include "chem/integral/harmonic.h"

enum { N_HERMITE = (2 * FM_L_MAX + 1) * (2 * FM_L_MAX + 2) * (2 * FM_L_MAX + 3) / 6 };
enum { N_TRANSFORM = FM_CARTESIAN_MAX * FM_CARTESIAN_MAX };

typedef struct {
    int         ca, cb, nb;
    double      ta[N_TRANSFORM], tb[N_TRANSFORM];
    fm_monomial ma[FM_CARTESIAN_MAX], mb[FM_CARTESIAN_MAX];
} components;

static void components_init(components *c, int l_a, int l_b, int is_pure)
{
    c->ca = fm_components(l_a, 0);
    c->cb = fm_components(l_b, 0);
    c->nb = fm_components(l_b, is_pure && l_b > 1);
    fm_shell_transform(c->ta, l_a, is_pure);
    fm_shell_transform(c->tb, l_b, is_pure);
    for (int k = 0; k < c->ca; k++) c->ma[k] = fm_cartesian(l_a, k);
    for (int k = 0; k < c->cb; k++) c->mb[k] = fm_cartesian(l_b, k);
}

/* Sum over the cartesian terms of a product; how many there are when g is NULL. */
static double element(const components *c, int row, const int tuv[3], const fm_gauss_pair *g)
{
    double sum = 0;
    for (int s = 0; s < c->ca; s++)
        for (int t = 0; t < c->cb; t++) {
            const double      f = c->ta[row / c->nb * c->ca + s] * c->tb[row % c->nb * c->cb + t];
            const fm_monomial m = c->ma[s], n = c->mb[t];
            if (fabs(f) < 1e-12 || tuv[0] > m.i + n.i || tuv[1] > m.j + n.j || tuv[2] > m.k + n.k)
                continue;
            sum += !g ? 1
                      : f * g->E[0][m.i][n.i][tuv[0]] * g->E[1][m.j][n.j][tuv[1]] *
                            g->E[2][m.k][n.k][tuv[2]];
        }
    return sum;
}

fm_status fm_hermite_rows_init(fm_hermite_rows *r, int l_a, int l_b, int is_pure)
{
    const int       nh = fm_hermites(l_a + l_b);
    int             tuv[N_HERMITE][3];
    components      c;
    fm_hermite_rows x = {.l_a = l_a, .l_b = l_b, .is_pure = is_pure};
    components_init(&c, l_a, l_b, is_pure);
    fm_hermite_list(tuv, l_a + l_b);
    x.n_row           = fm_components(l_a, is_pure && l_a > 1) * c.nb;
    const size_t most = (size_t)x.n_row * (size_t)nh;
    x.row             = malloc(((size_t)x.n_row + 1) * sizeof *x.row);
    x.hermite         = malloc(most * sizeof *x.hermite);
    x.offset          = malloc(most * sizeof *x.offset);
    x.order           = malloc(most * sizeof *x.order);
    if (!x.row || !x.hermite || !x.offset || !x.order) {
        fm_hermite_rows_fini(&x);
        return fm_fail(FM_E_OOM, "no memory for the Hermite coefficients of a class");
    }
    for (int row = 0; row < x.n_row; row++) {
        x.row[row] = x.n;
        for (int h = 0; h < nh; h++) {
            if (element(&c, row, tuv[h], NULL) == 0) continue;
            x.hermite[x.n] = h;
            x.offset[x.n]  = tuv[h][0] * FM_STRIDE_T + tuv[h][1] * FM_STRIDE_U + tuv[h][2];
            x.order[x.n++] = (int8_t)(tuv[h][0] + tuv[h][1] + tuv[h][2]);
        }
    }
    x.row[x.n_row] = x.n;
    *r             = x;
    return FM_OK;
}

void fm_hermite_rows_fini(fm_hermite_rows *r)
{
    free(r->row);
    free(r->hermite);
    free(r->offset);
    free(r->order);
    *r = (fm_hermite_rows){0};
}

void fm_hermite_rows_fill(const fm_hermite_rows *r, double *E, const fm_gauss_pair *g)
{
    int        tuv[N_HERMITE][3];
    components c;
    components_init(&c, r->l_a, r->l_b, r->is_pure);
    fm_hermite_list(tuv, r->l_a + r->l_b);
    for (int row = 0; row < r->n_row; row++)
        for (int k = r->row[row]; k < r->row[row + 1]; k++)
            E[k] = element(&c, row, tuv[r->hermite[k]], g);
}
