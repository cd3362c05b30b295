/* SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE
#include "trace_report/welch.h"

#include <math.h>

/* The continued fraction of the incomplete beta function, by Lentz's method. */
static double fraction(double x, double a, double b)
{
    enum { MOST = 300 };
    const double tiny = 1e-300, close = 1e-12;
    double       c = 1, d = 1 - (a + b) * x / (a + 1);
    d        = 1 / (fabs(d) < tiny ? tiny : d);
    double f = d;
    for (int m = 1; m < MOST; m++) {
        const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        const double odd  = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        double       step = 1;
        for (int k = 0; k < 2; k++) {
            const double e = k ? odd : even;
            d              = 1 + e * d;
            c              = 1 + e / c;
            d              = 1 / (fabs(d) < tiny ? tiny : d);
            c              = fabs(c) < tiny ? tiny : c;
            step           = c * d;
            f *= step;
        }
        if (fabs(step - 1) < close) break;
    }
    return f;
}

/* I_x(a, b), regularised. */
static double beta_part(double x, double a, double b)
{
    if (x <= 0 || x >= 1) return x <= 0 ? 0 : 1;
    const double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    if (x < (a + 1) / (a + b + 2)) return front * fraction(x, a, b) / a;
    return 1 - front * fraction(1 - x, b, a) / b;
}

double fm_welch_p(fm_moments a, fm_moments b)
{
    if (a.n < 2 || b.n < 2) return 1;
    const double va = a.variance / a.n, vb = b.variance / b.n, v = va + vb;
    const double difference = a.mean - b.mean;
    if (!(v > 0)) return difference == 0 ? 1 : 0;
    const double freedom = v * v / (va * va / (a.n - 1) + vb * vb / (b.n - 1));
    return beta_part(freedom / (freedom + difference * difference / v), freedom / 2, 0.5);
}
