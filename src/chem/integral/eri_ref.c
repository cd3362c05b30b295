/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/integral/eri_ref.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chem/integral/harmonic.h"
#include "chem/integral/hermite.h"

enum { N_HERMITE = (2 * FM_L_MAX + 1) * (2 * FM_L_MAX + 2) * (2 * FM_L_MAX + 3) / 6 };

/* E[components of a][components of b][hermite] of one pair of primitives, without coefficients */
static void expand_components(double *E, const fm_gauss_pair *g, const fm_shell *a,
                              const fm_shell *b)
{
    double    ta[FM_CARTESIAN_MAX * FM_CARTESIAN_MAX], tb[FM_CARTESIAN_MAX * FM_CARTESIAN_MAX];
    int       tuv[N_HERMITE][3];
    const int na = fm_components(a->l, a->is_pure), ca = fm_components(a->l, 0);
    const int nb = fm_components(b->l, b->is_pure), cb = fm_components(b->l, 0);
    const int nh = fm_hermites(a->l + b->l);
    fm_shell_transform(ta, a->l, a->is_pure);
    fm_shell_transform(tb, b->l, b->is_pure);
    fm_hermite_list(tuv, a->l + b->l);
    memset(E, 0, (size_t)(na * nb * nh) * sizeof *E);
    for (int s = 0; s < ca; s++)
        for (int t = 0; t < cb; t++)
            for (int h = 0; h < nh; h++) {
                const fm_monomial m = fm_cartesian(a->l, s), n = fm_cartesian(b->l, t);
                if (tuv[h][0] > m.i + n.i || tuv[h][1] > m.j + n.j || tuv[h][2] > m.k + n.k)
                    continue;
                const double e = g->E[0][m.i][n.i][tuv[h][0]] * g->E[1][m.j][n.j][tuv[h][1]] *
                                 g->E[2][m.k][n.k][tuv[h][2]];
                for (int i = 0; i < na; i++)
                    for (int j = 0; j < nb; j++)
                        E[(i * nb + j) * nh + h] += ta[i * ca + s] * tb[j * cb + t] * e;
            }
}

/* The same with the coefficients of every contraction. */
static void contract(double *E, const double *e, double pre, const fm_shell *a, int p,
                     const fm_shell *b, int q)
{
    const int na = fm_components(a->l, a->is_pure), nb = fm_components(b->l, b->is_pure);
    const int nh = fm_hermites(a->l + b->l), all_b = b->n_contr * nb;
    for (int s = 0; s < a->n_contr; s++)
        for (int t = 0; t < b->n_contr; t++) {
            const double f = pre * a->coef[s * a->n_prim + p] * b->coef[t * b->n_prim + q];
            for (int i = 0; i < na; i++)
                for (int j = 0; j < nb; j++)
                    for (int h = 0; h < nh; h++)
                        E[((s * na + i) * all_b + t * nb + j) * nh + h] =
                            f * e[(i * nb + j) * nh + h];
        }
}

fm_status fm_hermite_pair_init(fm_hermite_pair *h, const fm_shell *a, const fm_shell *b)
{
    fm_hermite_pair r    = {.l         = a->l + b->l,
                            .n_product = fm_shell_functions(a) * fm_shell_functions(b),
                            .n_prim    = a->n_prim * b->n_prim};
    const size_t    step = (size_t)r.n_product * (size_t)fm_hermites(r.l);
    r.centre             = malloc((size_t)r.n_prim * sizeof *r.centre);
    r.E                  = malloc((size_t)r.n_prim * step * sizeof *r.E);
    double *e            = malloc(step * sizeof *e);
    if (!r.centre || !r.E || !e) {
        free(e);
        fm_hermite_pair_fini(&r);
        return fm_fail(FM_E_OOM, "no memory for the Hermite expansion of a shell pair");
    }
    for (int p = 0; p < a->n_prim; p++)
        for (int q = 0; q < b->n_prim; q++) {
            const int     k = p * b->n_prim + q;
            fm_gauss_pair g;
            fm_gauss_product(&g, a->xyz, a->exponent[p], a->l, b->xyz, b->exponent[q], b->l);
            expand_components(e, &g, a, b);
            contract(r.E + (size_t)k * step, e, g.pre, a, p, b, q);
            r.centre[k] = (fm_hermite_centre){g.p, {g.P[0], g.P[1], g.P[2]}};
        }
    free(e);
    *h = r;
    return FM_OK;
}

void fm_hermite_pair_fini(fm_hermite_pair *h)
{
    free(h->centre);
    free(h->E);
    *h = (fm_hermite_pair){0};
}

size_t fm_eri_ref_scratch(const fm_hermite_pair *bra, const fm_hermite_pair *ket)
{
    return (size_t)bra->n_product * (size_t)fm_hermites(ket->l) + FM_COULOMB_MAX;
}

/* half[product of bra][hermite of ket] = E_bra . R, signs of the ket included */
static void bra_half(double *half, const double *E, const fm_hermite_pair *bra,
                     const fm_hermite_pair *ket, const double *R)
{
    int       p[N_HERMITE][3], q[N_HERMITE][3];
    const int np = fm_hermites(bra->l), nq = fm_hermites(ket->l), n = bra->l + ket->l + 1;
    fm_hermite_list(p, bra->l);
    fm_hermite_list(q, ket->l);
    for (int ab = 0; ab < bra->n_product; ab++)
        for (int k = 0; k < nq; k++) {
            double sum = 0;
            for (int h = 0; h < np; h++)
                sum += E[ab * np + h] *
                       R[((p[h][0] + q[k][0]) * n + p[h][1] + q[k][1]) * n + p[h][2] + q[k][2]];
            half[ab * nq + k] = (q[k][0] + q[k][1] + q[k][2]) % 2 ? -sum : sum;
        }
}

static void add_ket(double *out, double f, const double *half, const double *E, int n_ab, int n_cd,
                    int nq)
{
    for (int ab = 0; ab < n_ab; ab++)
        for (int cd = 0; cd < n_cd; cd++) {
            double sum = 0;
            for (int k = 0; k < nq; k++) sum += half[ab * nq + k] * E[cd * nq + k];
            out[ab * n_cd + cd] += f * sum;
        }
}

void fm_eri_ref(double *out, const fm_hermite_pair *bra, const fm_hermite_pair *ket,
                double *scratch)
{
    const int np = fm_hermites(bra->l), nq = fm_hermites(ket->l);
    double   *R = scratch, *half = scratch + FM_COULOMB_MAX;
    memset(out, 0, (size_t)bra->n_product * (size_t)ket->n_product * sizeof *out);
    for (int i = 0; i < bra->n_prim; i++)
        for (int j = 0; j < ket->n_prim; j++) {
            const fm_hermite_centre *s = &bra->centre[i], *t = &ket->centre[j];
            const double d[3] = {s->P[0] - t->P[0], s->P[1] - t->P[1], s->P[2] - t->P[2]};
            const double f    = 2 * pow(acos(-1), 2.5) / (s->p * t->p * sqrt(s->p + t->p));
            fm_hermite_coulomb(R, bra->l + ket->l, s->p * t->p / (s->p + t->p), d);
            bra_half(half, bra->E + (size_t)i * (size_t)(bra->n_product * np), bra, ket, R);
            add_ket(out, f, half, ket->E + (size_t)j * (size_t)(ket->n_product * nq),
                    bra->n_product, ket->n_product, nq);
        }
}
