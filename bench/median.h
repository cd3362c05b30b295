/* SPDX-License-Identifier: Apache-2.0 */
/* The median of repeated measurements, which outliers do not change. */
#ifndef FM_BENCH_MEDIAN_H
#define FM_BENCH_MEDIAN_H

#include <stdlib.h>

static inline int fm_ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts x; n is at least 1. */
static inline double fm_median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, fm_ascending);
    return x[n / 2];
}

#endif
