/* SPDX-License-Identifier: Apache-2.0 */
/* Log-linear histograms: 16 buckets an octave, so a value read back is off by 3 % at most.  Counts
 * are 64 bits wide: they do not overflow, and nothing is ever dropped. */
#ifndef FM_TRACE_HISTOGRAM_H
#define FM_TRACE_HISTOGRAM_H

#include <stdint.h>

#include "trace/format.h"

static inline int fm_bucket_of(uint64_t ns)
{
    enum { SUB_BITS = 4 };
    if (ns < 1 << SUB_BITS) return (int)ns;
    const int octave = 63 - __builtin_clzll(ns);
    const int sub    = (int)(ns >> (octave - SUB_BITS)) & ((1 << SUB_BITS) - 1);
    const int at     = (octave - SUB_BITS + 1) << SUB_BITS | sub;
    return at < FM_TRACE_BUCKETS ? at : FM_TRACE_BUCKETS - 1;
}

double fm_bucket_middle(int bucket); /* ns */

/* The value below which a part q of all lies; 0 of an empty histogram. */
double fm_bucket_quantile(const uint64_t *bucket, double q);

/* The bin of an operation count and a byte count, neither of them 0. */
int fm_trace_bin_of(double bytes, double flops);

#endif
