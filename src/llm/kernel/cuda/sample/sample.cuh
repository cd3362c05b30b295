/* SPDX-License-Identifier: Apache-2.0 */
/* What the stages of sampling share. */
#ifndef FM_LLM_KERNEL_CUDA_SAMPLE_SAMPLE_CUH
#define FM_LLM_KERNEL_CUDA_SAMPLE_SAMPLE_CUH

#include "llm/kernel/cuda/ptx/pinned.cuh"
#include "llm/kernel/cuda/rows/block.cuh"
#include "llm/kernel/cuda/sample/sample.h"
#include "llm/sample/sample_internal.h"

/* One row as the sampler sees it. */
typedef struct {
    const float *logits; /* [vocab] */
    int          vocab;
    float        most, temperature;
} fm__row;

/* --- weights ------------------------------------------------------------------- */

static const double fm__one = 0x1p45; /* weight 1 in fixed point */

/* weight * 2^45, to nearest: the float's bits moved into place. */
FM_DEVICE fm__u64 fm__fixed(float weight)
{
    const uint32_t u = fm_bits_of_f32(weight), mantissa = (u & 0x7fffffu) | 0x800000u;
    const int      up = (int)(u >> 23) - 127 - 23 + 45;
    if (up >= 0) return (fm__u64)mantissa << up;
    return up < -25 ? 0 : (mantissa + (1u << (-up - 1))) >> -up;
}

FM_DEVICE float fm__weight(float distance)
{
    return fm__exp_minus(fm__at_most_far(distance));
}

/* A logit of +inf leaves no probability to finite ones. */
FM_DEVICE float fm__distance_in(const fm__row &r, float x)
{
    if (!(r.most < INFINITY)) return x == INFINITY ? 0.0f : INFINITY;
    if (r.temperature != 1.0f) return fm__distance(x, r.most, r.temperature);
    const float d = r.most - x;
    return d >= 0 ? d : INFINITY;
}

/* Tokens i .. i+3 of a row; what is not there is impossible. */
FM_DEVICE float4 fm__logits4(const float *x, int i, int vocab)
{
    if (vocab % 4 == 0 && i < vocab) return fm__load4(x + i);
    return make_float4(i < vocab ? x[i] : -INFINITY, i + 1 < vocab ? x[i + 1] : -INFINITY,
                       i + 2 < vocab ? x[i + 2] : -INFINITY, i + 3 < vocab ? x[i + 3] : -INFINITY);
}

/* --- the largest logit ---------------------------------------------------------- */

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

/* The largest logit of a part or a row, and whether some logit is NaN or infinite. */
typedef struct {
    fm__u64 key;
    bool    is_odd;
} fm__best;

/* In one word: a token's key has bit 31 set, since ids are below 2^18, so that bit can
 * say it. */
static const fm__u64 fm__odd_bit = (fm__u64)1 << 31;

FM_DEVICE fm__u64 fm__pack_best(const fm__best &b)
{
    return (b.key & ~fm__odd_bit) | (b.is_odd ? fm__odd_bit : 0);
}

FM_DEVICE void fm__add_best(fm__best *to, fm__u64 packed)
{
    const fm__u64 key = packed & ~fm__odd_bit;
    to->key           = max(to->key, key ? key | fm__odd_bit : 0);
    to->is_odd        = to->is_odd || (packed & fm__odd_bit);
}

/* By a whole warp. */
FM_DEVICE fm__best fm__best_of_warp(fm__best b)
{
    for (int lanes = 16; lanes; lanes /= 2)
        b.key = max(b.key, __shfl_xor_sync(FM_WARP, b.key, lanes));
    b.is_odd = __any_sync(FM_WARP, b.is_odd);
    return b;
}

FM_DEVICE fm__best fm__best_of_row(const fm__sample_scratch &s, int row)
{
    fm__best best = {0, false};
    for (int i = (int)threadIdx.x % 32; i < s.n_part; i += 32)
        fm__add_best(&best, s.best[(size_t)row * (size_t)s.n_part + (size_t)i]);
    return fm__best_of_warp(best);
}

FM_DEVICE fm__rings fm__rings_of_warp(fm__rings r)
{
    for (int lanes = 16; lanes; lanes /= 2) {
        r.z += __shfl_xor_sync(FM_WARP, r.z, lanes);
#pragma unroll
        for (int k = 0; k < FM__RINGS; k++) {
            r.n[k] += __shfl_xor_sync(FM_WARP, r.n[k], lanes);
            r.sum[k] += __shfl_xor_sync(FM_WARP, r.sum[k], lanes);
        }
    }
    return r;
}

/* --- what a row wants ------------------------------------------------------------ */

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

/* Is the sum of weights needed, or what is near? */
FM_DEVICE bool fm__needs_rings(const fm_cuda_sampling &h, int vocab)
{
    return fm__is_cut(h, vocab) || fm__wants_logprob(h);
}

FM_DEVICE float fm__ring(int k)
{
    return k == 0 ? 1.0f : k == 1 ? 4.0f : 12.0f;
}

FM_DEVICE fm__row fm__row_of(const fm_cuda_sample_args &a, int row, const fm_cuda_sampling &h,
                             fm__u64 best)
{
    return {a.logits + (size_t)row * (size_t)a.vocab, a.vocab, fm__logit_of_key(best),
            fm__is_greedy(h) ? 1.0f : h.temperature};
}

/* Every token is in the race, so it is run while logits are read first. */
FM_DEVICE bool fm__races_at_once(const fm_cuda_sampling &h, int vocab)
{
    return !fm__is_greedy(h) && !fm__is_cut(h, vocab) && !(h.min_p > 0);
}

/* Scores below this are surely worse than the best one: see scan.cu. */
FM_DEVICE float fm__line_below(float best)
{
    return best - (2e-3f + 2e-6f * fabsf(best));
}

/* A row's token, by one thread.  The next pass reads a.id, so a valid id is written even if the
 * logits are not finite; the host gets -1 then. */
FM_DEVICE void fm__answer(const fm_cuda_sample_args &a, int row, int id, float logprob, bool is_odd)
{
    a.id[row]      = id;
    a.logprob[row] = logprob;
    if (!a.told_id) return;
    fm_pinned_store((uint32_t *)&a.told_id[row], is_odd ? (uint32_t)-1 : (uint32_t)id);
    fm_pinned_store((uint32_t *)&a.told_logprob[row], fm_bits_of_f32(logprob));
}

fm_status fm__sample_scan(const fm_cuda_sample_args *a, const fm__sample_scratch *s,
                          fm_stream stream);
fm_status fm__sample_weigh(const fm_cuda_sample_args *a, const fm__sample_scratch *s,
                           fm_stream stream);
fm_status fm__sample_choose(const fm_cuda_sample_args *a, const fm__sample_scratch *s,
                            fm_stream stream);

#endif
