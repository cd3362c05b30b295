/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/xc/functional_pw91.h"

#include <math.h>

#define PI 3.14159265358979323846

/* One interpolation G(rs) of Perdew and Wang, Phys. Rev. B 45, 13244 (1992). */
typedef struct {
    double a, alpha, beta[4];
} gas_fit;

/* Unpolarised, polarised, minus the stiffness; then f''(0). */
typedef struct {
    gas_fit g[3];
    double  f2;
} gas;

static const gas rounded = {{{0.031091, 0.21370, {7.5957, 3.5876, 1.6382, 0.49294}},
                             {0.015545, 0.20548, {14.1189, 6.1977, 3.3662, 0.62517}},
                             {0.016887, 0.11125, {10.357, 3.6231, 0.88026, 0.49671}}},
                            1.709921};
static const gas precise = {{{0.0310907, 0.21370, {7.5957, 3.5876, 1.6382, 0.49294}},
                             {0.01554535, 0.20548, {14.1189, 6.1977, 3.3662, 0.62517}},
                             {0.0168869, 0.11125, {10.357, 3.6231, 0.88026, 0.49671}}},
                            1.709920934161365617563962776245};

static double fit(const gas_fit *g, double rs)
{
    const double s = sqrt(rs);
    const double q =
        2 * g->a * (s * (g->beta[0] + s * (g->beta[1] + s * (g->beta[2] + s * g->beta[3]))));
    return -2 * g->a * (1 + g->alpha * rs) * log1p(1 / q);
}

static double gas_energy(const gas *c, double rs, double zeta)
{
    const double z4 = zeta * zeta * zeta * zeta;
    const double f  = (pow(1 + zeta, 4.0 / 3) + pow(1 - zeta, 4.0 / 3) - 2) / (pow(2, 4.0 / 3) - 2);
    const double e0 = fit(&c->g[0], rs), e1 = fit(&c->g[1], rs), stiffness = -fit(&c->g[2], rs);
    return e0 + stiffness * f / c->f2 * (1 - z4) + (e1 - e0) * f * z4;
}

/* H0, eq. 13 of Perdew et al., Phys. Rev. B 46, 6671 (1992), with the gas' energy e. */
static double gradient_part(double e, double phi3, double t2)
{
    const double alpha = 0.09, beta = 16 / PI * cbrt(3 * PI * PI) * 0.004235;
    const double ratio = 2 * alpha / beta;
    const double A     = ratio / expm1(-2 * alpha * e / (phi3 * beta * beta));
    const double x     = A * t2;
    return phi3 * beta * beta / (2 * alpha) * log1p(ratio * t2 * (1 + x) / (1 + x + x * x));
}

/* nu C_xc(rs) without its constant part, Rasolt and Geldart, Phys. Rev. B 34, 1325 (1986);
 * `cubic` is the last coefficient below the line. */
static double gradient_coefficient(double rs, double cubic)
{
    const double above = 2.568 + rs * (23.266 + rs * 0.007389);
    const double below = 1 + rs * (8.723 + rs * (0.472 + rs * cubic));
    return 16 / PI * cbrt(3 * PI * PI) * 1e-3 * above / below;
}

/* H1, eq. 15: libxc leaves the cubic term out of C_xc. */
static double short_range_difference(double rs, double phi, double phi3, double ks2_over_kf2,
                                     double t2)
{
    return (gradient_coefficient(rs, 0.07389) - gradient_coefficient(rs, 0)) * phi3 * t2 *
           exp(-100 * phi3 * phi * ks2_over_kf2 * t2);
}

/* Difference of the energies per volume. */
static double difference(double up, double down, double sigma)
{
    const double rho  = up + down;
    double       zeta = (up - down) / rho;
    zeta              = zeta > 1 ? 1 : zeta < -1 ? -1 : zeta;
    const double rs   = cbrt(3 / (4 * PI * rho));
    const double phi  = 0.5 * (pow(1 + zeta, 2.0 / 3) + pow(1 - zeta, 2.0 / 3));
    const double kf = cbrt(3 * PI * PI * rho), ks2 = 4 / PI * kf;
    const double t2 = sigma / (4 * phi * phi * ks2 * rho * rho), phi3 = phi * phi * phi;
    return rho * (gradient_part(gas_energy(&precise, rs, zeta), phi3, t2) -
                  gradient_part(gas_energy(&rounded, rs, zeta), phi3, t2) +
                  short_range_difference(rs, phi, phi3, ks2 / (kf * kf), t2));
}

/* The term is a millionth of the functional: differences of it are derivatives enough. */
static double by_up(double up, double down, double sigma)
{
    const double h = 1e-3 * up;
    return h > 0 ? (difference(up + h, down, sigma) - difference(up - h, down, sigma)) / (2 * h)
                 : 0;
}

static double by_sigma(double up, double down, double sigma)
{
    const double h = 1e-3 * sigma;
    return h > 0 ? (difference(up, down, sigma + h) - difference(up, down, sigma - h)) / (2 * h)
                 : 0;
}

void fm__pw91_refine(double factor, int n_spin, int n, const fm_functional_points *p)
{
    for (int i = 0; i < n; i++) {
        const double *s     = p->sigma + i * (2 * n_spin - 1);
        const double  up    = n_spin == 1 ? 0.5 * p->rho[i] : p->rho[2 * i];
        const double  down  = n_spin == 1 ? up : p->rho[2 * i + 1];
        const double  sigma = n_spin == 1 ? s[0] : s[0] + 2 * s[1] + s[2];
        const double  vs    = factor * by_sigma(up, down, sigma);
        p->energy[i] += factor * difference(up, down, sigma);
        if (n_spin == 1) {
            p->v_rho[i] += factor * by_up(up, down, sigma);
            p->v_sigma[i] += vs;
            continue;
        }
        p->v_rho[2 * i] += factor * by_up(up, down, sigma);
        p->v_rho[2 * i + 1] += factor * by_up(down, up, sigma);
        p->v_sigma[3 * i] += vs, p->v_sigma[3 * i + 1] += 2 * vs, p->v_sigma[3 * i + 2] += vs;
    }
}
