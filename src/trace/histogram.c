/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/histogram.h"

#include <math.h>

enum { PER_OCTAVE = 16, FIRST_BIN = -2 }; /* 2^-2 operations per byte */

double fm_bucket_middle(int bucket)
{
    if (bucket < PER_OCTAVE) return bucket;
    const int octave = bucket / PER_OCTAVE - 1, sub = bucket % PER_OCTAVE;
    return ldexp(PER_OCTAVE + sub + 0.5, octave);
}

double fm_bucket_quantile(const uint64_t *bucket, double q)
{
    uint64_t all = 0, below = 0;
    for (int i = 0; i < FM_TRACE_BUCKETS; i++) all += bucket[i];
    if (!all) return 0;
    const double want = q * (double)all;
    int          last = 0;
    for (int i = 0; i < FM_TRACE_BUCKETS; i++) {
        if (!bucket[i]) continue;
        below += bucket[i];
        last = i;
        if ((double)below >= want) break;
    }
    return fm_bucket_middle(last);
}

int fm_trace_bin_of(double bytes, double flops)
{
    if (!(flops > 0)) return 0;
    if (!(bytes > 0)) return FM_TRACE_BINS - 1;
    const int at = ilogb(flops / bytes) - FIRST_BIN;
    return at < 0 ? 0 : at < FM_TRACE_BINS ? at : FM_TRACE_BINS - 1;
}
