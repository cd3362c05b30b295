/* SPDX-License-Identifier: Apache-2.0 */
/* The stages of fm_sample() and the scratch they share.
 *
 *     logits ──distances──> d = (max - logit)/T >= 0, w = exp(-d), Z = sum w
 *        d   ──cut──> the last token that top-k and top-p keep
 *        w   ──draw──> a token
 *
 * Distances order the vocabulary best first: equal distances go by lower id.
 * Everything is plain C in a fixed order, so the bits are the same on every
 * ISA level and do not depend on the C library's exp. */
#ifndef FM_LLM_SAMPLE_SAMPLE_INTERNAL_H
#define FM_LLM_SAMPLE_SAMPLE_INTERNAL_H

#include <math.h>
#include <stdint.h>

#include "base/number.h"
#include "base/rng.h"
#include "llm/sample/sample.h"

enum { FM__RADIX = 2048 };

struct fm_sampler {
    int      vocab;
    int32_t *count;  /* [vocab] how often a token was generated; zero between calls */
    float   *weight; /* [vocab] */
    int32_t  bucket_count[FM__RADIX];
    double   bucket_sum[FM__RADIX];
};

/* Replaces logits [n] by distances (+inf: impossible) and fills w [n]; returns
 * Z.  `max` is the largest logit, > -inf. */
double fm__distances(float *x, float *w, int n, float max, float temperature);

/* exp(-d) underflows to zero here. */
FM_HD static inline float fm__at_most_far(float d)
{
    return d < 88.0f ? d : 88.0f;
}

/* exp(-d) for 0 <= d <= 88, to 2 ulp; 0 below the smallest normal number.  Our
 * own, because the C library picks its code by CPU, and the last bit with it. */
FM_HD static inline float fm__exp_minus(float d)
{
    const float log2e = 0x1.715476p+0f, ln2_hi = 0x1.62e4p-1f, ln2_lo = 0x1.7f7d1cp-20f;
    const float round = 0x1.8p23f; /* adding it leaves the nearest integer in the low bits */
    const float t     = -d * log2e + round;
    const float k     = t - round;
    const float r     = (-d - k * ln2_hi) - k * ln2_lo; /* |r| <= ln2/2 */

    float p = 1.0f / 720;
    p       = p * r + 1.0f / 120;
    p       = p * r + 1.0f / 24;
    p       = p * r + 1.0f / 6;
    p       = p * r + 0.5f;
    p       = p * r + 1.0f;
    p       = p * r + 1.0f;

    /* 2^k; an exponent of -127 is a zero, so the far tail needs no branch. */
    return p * fm_f32_from_bits((fm_bits_of_f32(t) << 23) + 0x3f800000u);
}

/* (max - x)/T, and +inf for what is impossible: -inf and NaN. */
FM_HD static inline float fm__distance(float x, float max, float temperature)
{
    const float d = (max - x) / temperature;
    return d >= 0 ? d : INFINITY;
}

/* The last token of the best-first order that is kept. */
typedef struct {
    float   distance;
    int32_t id;
} fm__cut;

/* Token i of the order stays if i < top_k and the weights before it sum to at
 * most `limit`; both over the unfiltered distribution. */
fm__cut fm__cut_at(fm_sampler *s, const float *distance, int top_k, double limit);

/* One stream of numbers per seed and position (the finaliser of a 64-bit hash),
 * one number in (0,1), never 0 or 1, per token. */
FM_HD static inline uint64_t fm__stream(uint64_t seed, int position)
{
    uint64_t h = seed + 0x9e3779b97f4a7c15u * ((uint64_t)(uint32_t)position + 1);
    h          = (h ^ h >> 30) * 0xbf58476d1ce4e5b9u;
    h          = (h ^ h >> 27) * 0x94d049bb133111ebu;
    return h ^ h >> 31;
}

FM_HD static inline double fm__uniform(uint64_t stream, int32_t id)
{
    return ((double)fm_rng_u32(stream, (uint64_t)id) + 0.5) * 0x1p-32;
}

/* The best n, kept sorted while scanning; their distances become
 * log-probabilities at the end. */
void fm__report_top(const float *distance, int vocab, int n, double log_z, fm_sampled *out);

typedef struct {
    const float *distance, *weight; /* [n] */
    int          n;
    fm__cut      cut;
    float        min_weight;
    uint64_t     seed;
    int          position;
} fm__draw_params;

int32_t fm__draw(const fm__draw_params *p);

#endif
