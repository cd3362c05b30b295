/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/rates.h"

#include <math.h>
#include <stdlib.h>

/* The median distance from the median of normal noise, times this, is its standard deviation. */
#define DEVIATIONS 1.4826

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double sorted_median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, ascending);
    return n % 2 ? x[n / 2] : 0.5 * (x[n / 2 - 1] + x[n / 2]);
}

/* Sorts x. */
static fm_rate describe(double *x, int n)
{
    if (n <= 0) return (fm_rate){0};
    const double median = sorted_median(x, n);
    double      *off    = malloc((size_t)n * sizeof *off);
    FM_BUG_UNLESS(off != NULL);
    for (int i = 0; i < n; i++) off[i] = fabs(x[i] - median);
    const double spread = DEVIATIONS * sorted_median(off, n);
    free(off);
    return (fm_rate){.median = median, .spread = spread, .best = x[n - 1], .n = n};
}

fm_rate fm_rate_of(double *x, int n) { return describe(x, n); }

fm_rate fm_rate_of_times(double *x, int n)
{
    fm_rate r = describe(x, n);
    if (n > 0) r.best = x[0];
    return r;
}

const char *fm_factor_name(fm_factor f)
{
    static const char *const name[] = {
#define X(id, text) text,
        FM_FACTOR_MAP(X)
#undef X
    };
    FM_BUG_UNLESS(f >= 0 && f < FM_N_FACTOR);
    return name[f];
}

fm_status fm_rates_init(fm_rates *r, int n_rank, int has_link, int has_gpu_link)
{
    const size_t n    = (size_t)n_rank;
    fm_rates     made = {.n_rank = n_rank, .rank = calloc(n, sizeof *made.rank)};
    if (has_link) made.link = calloc(n * n, sizeof *made.link);
    if (has_gpu_link) made.gpu_link = calloc(n * n, sizeof *made.gpu_link);
    if (!made.rank || (has_link && !made.link) || (has_gpu_link && !made.gpu_link)) {
        fm_rates_fini(&made);
        return fm_fail(FM_E_OOM, "rates of %d ranks", n_rank);
    }
    *r = made;
    return FM_OK;
}

void fm_rates_fini(fm_rates *r)
{
    free(r->rank);
    free(r->link);
    free(r->gpu_link);
    *r = (fm_rates){0};
}
