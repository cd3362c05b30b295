/* SPDX-License-Identifier: Apache-2.0 */
/* The sum of a row's experts, by any launch. */
#ifndef FM_LLM_KERNEL_CUDA_ROWS_COMBINE_CUH
#define FM_LLM_KERNEL_CUDA_ROWS_COMBINE_CUH

#include "llm/kernel/cuda/rows/rows.h"
#include "llm/kernel/cuda/rows/block.cuh"
#include "llm/weights/config.h"

enum { FM__AT_ONCE = 8 };

FM_DEVICE float4 fm__sum4(float4 a, float4 b)
{
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

FM_DEVICE float4 fm__add_scaled(float4 sum, float w, float4 v)
{
    return make_float4(sum.x + w * v.x, sum.y + w * v.y, sum.z + w * v.z, sum.w + w * v.w);
}

/* Of a row, in shared memory: its slots, filled up with pairs of -1. */
typedef struct {
    int   pair[FM_MAX_TOP_K + FM__AT_ONCE];
    float weight[FM_MAX_TOP_K + FM__AT_ONCE];
} fm__slots;

/* By all threads. */
FM_DEVICE void fm__slots_begin(fm__slots &s, const fm_cuda_combine_args &a, size_t row)
{
    const int    i  = (int)threadIdx.x;
    const size_t at = row * (size_t)a.top_k + (size_t)i;
    if (i < a.top_k + FM__AT_ONCE) {
        s.pair[i]   = i < a.top_k ? a.pair_of[at] : -1;
        s.weight[i] = i < a.top_k ? a.weight[at] : 0.0f;
    }
    __syncthreads();
}

/* Slots first .. first + FM__AT_ONCE: all loads are issued before the first addition.  Fours of
 * columns are `stride` apart. */
template <int V>
FM_DEVICE void fm__add_slots(float4 (&sum)[V], const fm__slots &s, const fm_cuda_combine_args &a,
                             int first, int col, int stride)
{
    uint2 v[FM__AT_ONCE][V];
#pragma unroll
    for (int i = 0; i < FM__AT_ONCE; i++)
#pragma unroll
        for (int j = 0; j < V; j++)
            if (s.pair[first + i] >= 0 && col + j * stride < a.width)
                v[i][j] = *(const uint2 *)(a.pair_out +
                                           (size_t)s.pair[first + i] * (size_t)a.width + col +
                                           j * stride);
#pragma unroll
    for (int i = 0; i < FM__AT_ONCE; i++)
#pragma unroll
        for (int j = 0; j < V; j++)
            if (s.pair[first + i] >= 0 && col + j * stride < a.width)
                sum[j] = fm__add_scaled(sum[j], s.weight[first + i], fm__widen4(v[i][j]));
}

/* V fours of columns of a row, zeros behind it; the sum of the slots is complete before it is
 * added to y. */
template <int V>
FM_DEVICE void fm__combined(float4 (&to)[V], const fm__slots &s, const fm_cuda_combine_args &a,
                            size_t row, int col, int stride)
{
    const float4 zero = make_float4(0, 0, 0, 0);
    float4       had[V];
#pragma unroll
    for (int j = 0; j < V; j++) {
        const bool in = a.accumulate && col + j * stride < a.width;
        had[j]        = in ? fm__load4(a.y + row * (size_t)a.width + col + j * stride) : zero;
        to[j]         = zero;
    }
    for (int first = 0; first < a.top_k; first += FM__AT_ONCE)
        fm__add_slots<V>(to, s, a, first, col, stride);
#pragma unroll
    for (int j = 0; j < V; j++)
        if (a.accumulate) to[j] = fm__sum4(had[j], to[j]);
}

#endif
