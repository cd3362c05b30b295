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

#include <stdint.h>

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

/* The first largest value; NaN counts as -inf; 0 if nothing exceeds -inf. */
int32_t fm__argmax(const float *x, int n);

/* Replaces logits [n] by distances (+inf: impossible) and fills w [n]; returns
 * Z.  `max` is the largest logit, > -inf. */
double fm__distances(float *x, float *w, int n, float max, float temperature);

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
