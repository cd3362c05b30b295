/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/integral/hermite.h"

#include <math.h>

#include "chem/integral/boys.h"

static double E_or_0(const double *e, int t, int top) { return t < 0 || t > top ? 0 : e[t]; }

/* E_t^(i+1,j) = E_(t-1)^ij / 2p + (P-A) E_t^ij + (t+1) E_(t+1)^ij, the same for j with P-B */
static void expand(double E[FM_HERMITE_I][FM_HERMITE_J][FM_HERMITE_T], int l_a, int l_b, double p,
                   double pa, double pb)
{
    E[0][0][0] = 1;
    for (int i = 0; i <= l_a; i++)
        for (int j = 0; j <= l_b; j++) {
            if (i + j == 0) continue;
            const double *from = j ? E[i][j - 1] : E[i - 1][j], shift = j ? pb : pa;
            for (int t = 0; t <= i + j; t++)
                E[i][j][t] = E_or_0(from, t - 1, i + j - 1) / (2 * p) +
                             shift * E_or_0(from, t, i + j - 1) +
                             (t + 1) * E_or_0(from, t + 1, i + j - 1);
        }
}

void fm_gauss_product(fm_gauss_pair *g, const double A[3], double a, int l_a, const double B[3],
                      double b, int l_b)
{
    double d2 = 0;
    g->a      = a;
    g->b      = b;
    g->p      = a + b;
    for (int x = 0; x < 3; x++) {
        const double d = A[x] - B[x];
        g->P[x]        = (a * A[x] + b * B[x]) / g->p;
        d2 += d * d;
        expand(g->E[x], l_a, l_b, g->p, -b / g->p * d, a / g->p * d);
    }
    g->pre = exp(-a * b / g->p * d2);
}

void fm_hermite_list(int (*tuv)[3], int l)
{
    int n = 0;
    for (int t = 0; t <= l; t++)
        for (int u = 0; u <= l - t; u++)
            for (int v = 0; v <= l - t - u; v++, n++) {
                tuv[n][0] = t;
                tuv[n][1] = u;
                tuv[n][2] = v;
            }
}

/* R^n_(t+1,u,v) = t R^(n+1)_(t-1,u,v) + X R^(n+1)_tuv, one order n from the one above, in place:
 * from the highest total order down, so that what is read is still the order above. */
static void lower(double *R, int l, int top, double R0, const double d[3])
{
    const int s[3] = {(l + 1) * (l + 1), l + 1, 1};
    for (int sum = top; sum > 0; sum--)
        for (int t = 0; t <= sum; t++)
            for (int u = 0; u <= sum - t; u++) {
                const int o[3] = {t, u, sum - t - u};
                const int x = o[2] ? 2 : o[1] ? 1 : 0, at = t * s[0] + u * s[1] + o[2];
                R[at] = d[x] * R[at - s[x]] + (o[x] > 1 ? (o[x] - 1) * R[at - 2 * s[x]] : 0);
            }
    R[0] = R0;
}

void fm_hermite_coulomb(double *R, int l, double alpha, const double d[3])
{
    double F[FM_COULOMB_L + 1], f = 1;
    fm_boys(F, l, alpha * (d[0] * d[0] + d[1] * d[1] + d[2] * d[2]));
    for (int n = 0; n <= l; n++, f *= -2 * alpha) F[n] *= f;
    for (int n = l; n >= 0; n--) lower(R, l, l - n, F[n], d);
}
