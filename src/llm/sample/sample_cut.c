/* SPDX-License-Identifier: Apache-2.0 */
/* Where top-k and top-p cut the best-first order, by radix selection: the bits
 * of a non-negative float sort like the float, so three histograms narrow the
 * boundary down to tokens of one and the same distance.  Nothing is sorted. */
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "llm/sample/sample_internal.h"

typedef struct {
    int    top_k;
    double limit;
    int    n_before;   /* tokens that come before the boundary bucket ... */
    double sum_before; /* ... and their weight */
} search;

/* Only keys that begin with `prefix` count; the next `width` bits choose the bucket. */
static void fill_buckets(fm_sampler *s, const float *distance, uint32_t prefix, int shift,
                         int width)
{
    memset(s->bucket_count, 0, sizeof s->bucket_count);
    memset(s->bucket_sum, 0, sizeof s->bucket_sum);
    const uint32_t mask = (1u << width) - 1;
    for (int i = 0; i < s->vocab; i++) {
        const uint32_t key = fm_bits_of_f32(distance[i]);
        if (key >> (shift + width) != prefix) continue;
        s->bucket_count[key >> shift & mask]++;
        s->bucket_sum[key >> shift & mask] += (double)s->weight[i];
    }
}

/* The bucket in which the order is cut, or the last one in use. */
static int boundary(search *q, const fm_sampler *s, int n_bucket)
{
    int last = n_bucket - 1;
    while (last > 0 && !s->bucket_count[last]) last--;
    for (int b = 0; b < last; b++) {
        if (q->n_before + s->bucket_count[b] >= q->top_k) return b;
        if (q->sum_before + s->bucket_sum[b] > q->limit) return b;
        q->n_before += s->bucket_count[b];
        q->sum_before += s->bucket_sum[b];
    }
    return last;
}

/* How many of n tokens with the same weight stay; the first always does. */
static int kept_of_tie(const search *q, int n, double weight)
{
    int keep = n;
    if (q->top_k - q->n_before < keep) keep = q->top_k - q->n_before;
    if (weight > 0) {
        const double fit = floor((q->limit - q->sum_before) / weight) + 1;
        if (fit < keep) keep = (int)fit;
    }
    return keep > 1 ? keep : 1;
}

fm__cut fm__cut_at(fm_sampler *s, const float *distance, int top_k, double limit)
{
    static const struct { int shift, width; } level[] = {{20, 11}, {10, 10}, {0, 10}};
    search   q   = {.top_k = top_k, .limit = limit};
    uint32_t key = 0;
    int      b   = 0;
    for (int l = 0; l < 3; l++) {
        fill_buckets(s, distance, key, level[l].shift, level[l].width);
        b   = boundary(&q, s, 1 << level[l].width);
        key = key << level[l].width | (uint32_t)b;
    }

    const float d    = fm_f32_from_bits(key);
    const int   n    = s->bucket_count[b];
    int         keep = kept_of_tie(&q, n, s->bucket_sum[b] / n), i = -1;
    while (keep) keep -= distance[++i] == d;
    return (fm__cut){d, i};
}
