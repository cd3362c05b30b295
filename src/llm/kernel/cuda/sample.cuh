/* SPDX-License-Identifier: Apache-2.0 */
/* What the stages of sampling share. */
#ifndef FM_LLM_KERNEL_CUDA_SAMPLE_CUH
#define FM_LLM_KERNEL_CUDA_SAMPLE_CUH

#include "llm/kernel/cuda/rows_block.cuh"
#include "llm/kernel/cuda/sample.h"
#include "llm/sample/sample_internal.h"

enum { FM__PART = 8192, FM__CUT_THREADS = 1024 };

typedef unsigned long long fm__u64; /* as CUDA's atomics want it */

/* Scratch of one call; parts of a row are FM__PART tokens. */
typedef struct {
    fm__u64 *best;    /* [n_row, n_part] key of the largest logit */
    fm__u64 *z;       /* [n_row] sum of weights, fixed point */
    fm__cut *cut;     /* [n_row] */
    double  *race_t;  /* [n_row, n_part] smallest -log(u)/w ... */
    int32_t *race_id; /* ... and whose it is */
    int      n_part;
} fm__sample_scratch;

static const double fm__one = 0x1p45; /* weight 1 */

FM_DEVICE fm__u64 fm__fixed(float weight)
{
    return (fm__u64)((double)weight * fm__one + 0.5);
}

FM_DEVICE float fm__weight(float distance)
{
    return fm__exp_minus(fm__at_most_far(distance));
}

/* Larger logits have larger keys; of equal ones the lower id.  0: impossible. */
FM_DEVICE fm__u64 fm__logit_key(float x, int id)
{
    if (!(x > -INFINITY)) return 0;
    const uint32_t u = fm_bits_of_f32(x + 0.0f); /* -0 counts as 0 */
    const uint32_t o = u & 0x80000000u ? ~u : u | 0x80000000u;
    return (fm__u64)o << 32 | (uint32_t)~id;
}

FM_DEVICE int fm__id_of_key(fm__u64 key)
{
    return key ? (int)~(uint32_t)key : 0;
}

FM_DEVICE float fm__logit_of_key(fm__u64 key)
{
    const uint32_t o = (uint32_t)(key >> 32);
    return key ? fm_f32_from_bits(o & 0x80000000u ? o & 0x7fffffffu : ~o) : -INFINITY;
}

FM_DEVICE fm__u64 fm__best_of_row(const fm__sample_scratch &s, int row)
{
    fm__u64 best = 0;
    for (int i = 0; i < s.n_part; i++)
        best = max(best, s.best[(size_t)row * (size_t)s.n_part + (size_t)i]);
    return best;
}

FM_DEVICE bool fm__is_greedy(const fm_cuda_sampling &h)
{
    return h.temperature < 1e-6f;
}

FM_DEVICE bool fm__wants_logprob(const fm_cuda_sampling &h)
{
    return h.logprob || h.n_top > 0;
}

FM_DEVICE bool fm__is_cut(const fm_cuda_sampling &h, int vocab)
{
    return !fm__is_greedy(h) && ((h.top_k > 0 && h.top_k < vocab) || h.top_p < 1);
}

fm_status fm__sample_cut(const fm_cuda_sample_args *a, const fm__sample_scratch *s,
                         fm_stream stream);
fm_status fm__sample_top(const fm_cuda_sample_args *a, const fm__sample_scratch *s,
                         fm_stream stream);

#endif
