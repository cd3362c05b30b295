/* SPDX-License-Identifier: Apache-2.0 */
/* Seconds, counted in buckets with fixed bounds, as Prometheus wants them. */
#ifndef FM_LLM_ROUTE_HISTOGRAM_H
#define FM_LLM_ROUTE_HISTOGRAM_H

#include <stdint.h>

#include "base/str.h"

enum { FM_HISTOGRAM_BOUNDS = 18 };

typedef struct {
    int64_t count[FM_HISTOGRAM_BOUNDS + 1]; /* not cumulative; the last is above all bounds */
    double  sum;
} fm_histogram; /* {0} is empty */

void    fm_histogram_add(fm_histogram *h, double seconds);
int64_t fm_histogram_n(const fm_histogram *h);
/* The bound below which `share` of the values lie; 0 where there are none. */
double fm_histogram_quantile(const fm_histogram *h, double share);
/* NAME_bucket{LABELS,le="…"} and so on; labels without braces. */
void fm_histogram_write(fm_str *out, const fm_histogram *h, const char *name, const char *labels);

#endif
