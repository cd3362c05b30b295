/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/integral/boys.h"

#include <math.h>

/* Below this the series converges within 150 terms; above, the recursion upwards
 * loses nothing for the orders that integrals need. */
static const double UPWARD_FROM = 40;

static double series(int m, double T)
{
    double term = 1.0 / (2 * m + 1), sum = term;
    for (int i = 1; term > 1e-18 * sum; i++) {
        term *= 2 * T / (2 * m + 2 * i + 1);
        sum += term;
    }
    return exp(-T) * sum;
}

void fm_boys(double *F, int m_max, double T)
{
    const double e = exp(-T);
    if (T < UPWARD_FROM) {
        F[m_max] = series(m_max, T);
        for (int m = m_max; m > 0; m--) F[m - 1] = (2 * T * F[m] + e) / (2 * m - 1);
        return;
    }
    F[0] = 0.5 * sqrt(acos(-1) / T);
    for (int m = 0; m < m_max; m++) F[m + 1] = ((2 * m + 1) * F[m] - e) / (2 * T);
}
