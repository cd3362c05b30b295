/* SPDX-License-Identifier: Apache-2.0 */
/* Twelve independent chains of multiply-adds, the best of a few runs. */
#include <time.h>

#include "bench/eri_peak.h"
#include "chem/integral/vec.h"

enum { CHAINS = 12, STEPS = 200000, RUNS = 20 };

static double once(volatile double *sink)
{
    struct timespec a, b;
    vd              x[CHAINS], f = vd_set(0.999), g = vd_set(1e-3);
    for (int k = 0; k < CHAINS; k++) x[k] = vd_set(k);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
    for (int s = 0; s < STEPS; s++)
        for (int k = 0; k < CHAINS; k++) x[k] = vd_fma(x[k], f, g);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
    for (int k = 0; k < CHAINS; k++) *sink += vd_sum(x[k]);
    return (double)STEPS * CHAINS * VEC /
           ((double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec));
}

double PEAK_NAME(void)
{
    volatile double sink = 0;
    double          best = 0;
    for (int r = 0; r < RUNS; r++) {
        const double x = once(&sink);
        if (x > best) best = x;
    }
    return best;
}
