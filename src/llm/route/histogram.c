/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/route/histogram.h"

static const double bound[FM_HISTOGRAM_BOUNDS] = {
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60, 120, 300, 600};

void fm_histogram_add(fm_histogram *h, double seconds)
{
    int i = 0;
    while (i < FM_HISTOGRAM_BOUNDS && seconds > bound[i]) i++;
    h->count[i]++;
    h->sum += seconds;
}

int64_t fm_histogram_n(const fm_histogram *h)
{
    int64_t n = 0;
    for (int i = 0; i <= FM_HISTOGRAM_BOUNDS; i++) n += h->count[i];
    return n;
}

double fm_histogram_quantile(const fm_histogram *h, double share)
{
    const double want = share * (double)fm_histogram_n(h);
    int64_t      n    = 0;
    if (want <= 0) return 0;
    for (int i = 0; i < FM_HISTOGRAM_BOUNDS; i++)
        if ((double)(n += h->count[i]) >= want) return bound[i];
    return bound[FM_HISTOGRAM_BOUNDS - 1];
}

void fm_histogram_write(fm_str *out, const fm_histogram *h, const char *name, const char *labels)
{
    int64_t n = 0;
    for (int i = 0; i < FM_HISTOGRAM_BOUNDS; i++)
        fm_str_printf(out, "%s_bucket{%s,le=\"%g\"} %lld\n", name, labels, bound[i],
                      (long long)(n += h->count[i]));
    fm_str_printf(out, "%s_bucket{%s,le=\"+Inf\"} %lld\n%s_sum{%s} %.6f\n%s_count{%s} %lld\n", name,
                  labels, (long long)fm_histogram_n(h), name, labels, h->sum, name, labels,
                  (long long)fm_histogram_n(h));
}
