/* SPDX-License-Identifier: Apache-2.0 */
/* A row's experts, by one warp.  Lane l has experts l, l + 32, …; the k largest
 * are taken in k rounds over keys that sort like the scores, and of equal keys
 * the lowest expert wins. */
#ifndef FM_LLM_KERNEL_CUDA_ROUTE_ROW_CUH
#define FM_LLM_KERNEL_CUDA_ROUTE_ROW_CUH

#include "llm/kernel/cuda/ptx/ptx.cuh"
#include "llm/kernel/cuda/route/route.h"
#include "llm/kernel/rows/exp.h"

enum { NO_EXPERT = 0x7fffffff };

/* Unsigned integers in the order of floats; 0 is below -inf. */
FM_DEVICE uint32_t key_of(float x)
{
    const uint32_t u = fm_bits_of_f32(x);
    return u & 0x80000000u ? ~u : u | 0x80000000u;
}

static const uint32_t key_of_minus_inf = 0x007fffffu;

/* The sum in the CPU's order: 16 lanes by e mod 16, ascending, then folded. */
template <int R> FM_DEVICE float sum_over_experts(const float p[R])
{
    float sum = 0;
#pragma unroll
    for (int r = 0; r < R; r++) {
        sum += p[r];
        sum += fm_shfl_down(p[r], 16);
    }
#pragma unroll
    for (int half = 8; half; half /= 2) sum += fm_shfl_down(sum, half);
    return __shfl_sync(FM_WARP, sum, 0);
}

/* Logits -> probabilities; experts that do not exist get 0. */
template <int R> FM_DEVICE void softmax(float x[R], int lane, int n_expert)
{
    float most = -INFINITY;
#pragma unroll
    for (int r = 0; r < R; r++)
        if (lane + 32 * r < n_expert) most = fmaxf(most, x[r]);
    most = fm_warp_max(most);
#pragma unroll
    for (int r = 0; r < R; r++) x[r] = lane + 32 * r < n_expert ? fm_exp(x[r] - most) : 0.0f;
    const float scale = 1.0f / sum_over_experts<R>(x);
#pragma unroll
    for (int r = 0; r < R; r++) x[r] *= scale;
}

template <int R> FM_DEVICE void sigmoid(float x[R])
{
#pragma unroll
    for (int r = 0; r < R; r++) x[r] = 1.0f / (1.0f + fm_exp(-x[r]));
}

/* Which lane has the largest key, and of those with equal keys the lowest number. */
FM_DEVICE int winner(uint32_t key, int number)
{
    const uint32_t most = __reduce_max_sync(FM_WARP, key);
    return (int)__reduce_min_sync(FM_WARP, key == most ? (uint32_t)number : (uint32_t)NO_EXPERT);
}

typedef struct {
    float first, second;
} two_best;

FM_DEVICE two_best with(two_best b, float x)
{
    b.second = fmaxf(b.second, fminf(b.first, x));
    b.first  = fmaxf(b.first, x);
    return b;
}

/* A bit for each of the top_group best groups; `choice` [n_expert] is shared.
 * `share` neighbouring lanes have a group. */
FM_DEVICE uint32_t best_groups(const fm_cuda_route_args &a, const float *choice, int share,
                               int lane)
{
    const int per = a.n_expert / a.n_group, mine = per / share, group = lane / share;
    two_best  best = {-INFINITY, -INFINITY};
    if (group < a.n_group)
        for (int i = 0; i < mine; i++) best = with(best, choice[lane * mine + i]);
    for (int lanes = 1; lanes < share; lanes *= 2) {
        const float first  = fm_shfl_xor(best.first, lanes),
                    second = fm_shfl_xor(best.second, lanes);
        best               = with(with(best, first), second);
    }
    const float score = a.method == FM_ROUTE_NOAUX_TC ? best.first + best.second : best.first;
    uint32_t    key = group < a.n_group ? key_of(score) : 0, kept = 0;
    for (int i = 0; i < a.top_group; i++) {
        const int g = winner(key, group);
        kept |= 1u << g;
        if (group == g) key = key_of_minus_inf;
    }
    return kept;
}

/* What a warp needs in shared memory. */
template <int R> struct route_space {
    float   p[32 * R], choice[32 * R], chosen[FM_MAX_TOP_K + 1];
    int32_t expert[FM_MAX_TOP_K]; /* -1: the row is not there */
};

template <int R>
FM_DEVICE void choose(const fm_cuda_route_args &a, uint32_t key[R], route_space<R> &s, int lane)
{
    float sum = 0;
    for (int i = 0; i < a.top_k; i++) {
        uint32_t best = 0;
        int      at   = 0;
#pragma unroll
        for (int r = 0; r < R; r++)
            if (key[r] > best) best = key[r], at = r;
        const int e = winner(best, lane + 32 * at);
#pragma unroll
        for (int r = 0; r < R; r++)
            if (lane + 32 * r == e) key[r] = key_of_minus_inf;
        sum += s.p[e];
        if (lane == 0) s.expert[i] = e, s.chosen[i] = s.p[e];
    }
    if (lane == 0) s.chosen[FM_MAX_TOP_K] = sum;
    __syncwarp();
}

template <int R>
FM_DEVICE void leave_out(const fm_cuda_route_args &a, route_space<R> &s, size_t at, int lane)
{
    for (int i = lane; i < a.top_k; i += 32) {
        s.expert[i]              = -1;
        a.expert[at + (size_t)i] = -1;
        a.weight[at + (size_t)i] = 0;
    }
}

/* What decides: the score, with its bias; of experts in lesser groups, nothing. */
template <int R>
FM_DEVICE void keys_of(const fm_cuda_route_args &a, uint32_t key[R], const float own[R],
                       const float *choice, int share, int lane)
{
    const bool     in_groups = a.method != FM_ROUTE_GREEDY && a.n_group > 1;
    const uint32_t kept      = in_groups ? best_groups(a, choice, share, lane) : ~0u;
    const float    inverse   = in_groups ? (float)a.n_group / (float)a.n_expert : 0.0f;
#pragma unroll
    for (int r = 0; r < R; r++) {
        const int e = lane + 32 * r, group = (int)(((float)e + 0.5f) * inverse);
        key[r] = e >= a.n_expert ? 0 : kept >> group & 1 ? key_of(own[r]) : key_of_minus_inf;
    }
}

/* The biases of a lane's experts: constants, read before the scores are there. */
template <int R>
FM_DEVICE void read_bias(const fm_cuda_route_args &a, float bias[R])
{
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int r = 0; r < R; r++)
        bias[r] = a.bias && lane + 32 * r < a.n_expert ? a.bias[lane + 32 * r] : 0.0f;
}

/* One row by one warp; `share` lanes have a group. */
template <int R>
FM_DEVICE void route_row(const fm_cuda_route_args &a, route_space<R> &s, const float bias[R],
                         int share, int row)
{
    const int    lane = (int)threadIdx.x % 32;
    const size_t at   = (size_t)row * (size_t)a.top_k;
    const int    live = a.n_live ? *a.n_live : a.n_row;
    float        x[R], own[R];
#pragma unroll
    for (int r = 0; r < R; r++) {
        const int e = lane + 32 * r;
        x[r]        = e < a.n_expert ? a.score[(size_t)row * (size_t)a.n_expert + (size_t)e] : 0.0f;
    }
    if (row >= live) return leave_out<R>(a, s, at, lane);
    if (a.func == FM_SCORE_SIGMOID)
        sigmoid<R>(x);
    else
        softmax<R>(x, lane, a.n_expert);
#pragma unroll
    for (int r = 0; r < R; r++) {
        own[r]                  = a.bias ? x[r] + bias[r] : x[r];
        s.p[lane + 32 * r]      = x[r];
        s.choice[lane + 32 * r] = own[r];
    }
    __syncwarp();
    uint32_t key[R];
    keys_of<R>(a, key, own, s.choice, share, lane);
    choose<R>(a, key, s, lane);
    for (int i = lane; i < a.top_k; i += 32) {
        const float w            = s.chosen[i];
        a.expert[at + (size_t)i] = s.expert[i];
        a.weight[at + (size_t)i] =
            (a.norm_top_k ? w / (s.chosen[FM_MAX_TOP_K] + 1e-20f) : w) * a.routed_scale;
    }
}

/* How many lanes can share a group evenly. */
static inline int lanes_of_group(const fm_cuda_route_args *a)
{
    int share = 1;
    while (a->n_group > 1 && 2 * share * a->n_group <= 32 &&
           a->n_expert / a->n_group % (2 * share) == 0)
        share *= 2;
    return share;
}

static inline fm_status route_check(const fm_cuda_route_args *a)
{
    FM_BUG_UNLESS(a->n_expert > 0 && a->top_k > 0 && a->top_k <= FM_MAX_TOP_K);
    FM_BUG_UNLESS(a->n_group <= 1 || a->n_expert % a->n_group == 0);
    if (a->n_expert > FM_CUDA_MAX_EXPERTS || a->n_group > FM_CUDA_MAX_GROUPS)
        return fm_fail(FM_E_NOSUP, "%d experts in %d groups: the GPU takes at most %d in %d",
                       a->n_expert, a->n_group, FM_CUDA_MAX_EXPERTS, FM_CUDA_MAX_GROUPS);
    return FM_OK;
}

#endif
