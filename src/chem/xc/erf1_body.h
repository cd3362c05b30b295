/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of erf1.h in plain C whose loops over partners become vectors.  A file
 * per instruction set defines MADD(a, b, c) = a b + c and includes this one. */
#include "chem/xc/erf1.h"
#include "chem/xc/exp_body.h"

/* Chebyshev fit of erfc for x >= 0, relative error below 1.2e-7. */
static inline double erfc_fit(double x)
{
    const double t = 1 / MADD(0.5, x, 1.0);
    double       p = 0.17087277;
    p              = MADD(p, t, -0.82215223);
    p              = MADD(p, t, 1.48851587);
    p              = MADD(p, t, -1.13520398);
    p              = MADD(p, t, 0.27886807);
    p              = MADD(p, t, -0.18628806);
    p              = MADD(p, t, 0.09678418);
    p              = MADD(p, t, 0.37409196);
    p              = MADD(p, t, 1.00002368);
    p              = MADD(p, t, -1.26551223);
    return t * exp_negative(MADD(-x, x, p));
}

static inline double step(double mu)
{
    const double size    = mu < 0 ? -mu : mu;
    const double cut     = size > FM_ERF1_MU_MAX ? FM_ERF1_MU_MAX : size;
    const double half    = 0.5 * erfc_fit(cut / (1 - cut * cut) * (1 / 0.30));
    const double smooth  = mu > 0 ? half : 1 - half;
    const double beyond  = mu > 0 ? 0 : 1;
    const double linear  = MADD(-1.88063178008, mu, 0.5);
    const double outside = size > FM_ERF1_MU_MAX ? beyond : smooth;
    return size < 1e-6 ? linear : outside;
}

static void steps(double *restrict s, double          r_own, const double *restrict r,
                  const double *restrict inverse, int n)
{
    for (int j = 0; j < n; j++) s[j] = step((r_own - r[j]) * inverse[j]);
}

static double product(const double *s, int n)
{
    double part[FM_ERF1_LANES], all = 1;
    for (int k = 0; k < FM_ERF1_LANES; k++) part[k] = 1;
    for (int j = 0; j < n; j += FM_ERF1_LANES)
        for (int k = 0; k < FM_ERF1_LANES; k++) part[k] *= s[j + k];
    for (int k = 0; k < FM_ERF1_LANES; k++) all *= part[k];
    return all;
}
