/* SPDX-License-Identifier: Apache-2.0 */
/* The sum of a row's experts, by any launch. */
#ifndef FM_LLM_KERNEL_CUDA_ROWS_COMBINE_CUH
#define FM_LLM_KERNEL_CUDA_ROWS_COMBINE_CUH

#include "llm/kernel/cuda/rows/rows.h"
#include "llm/kernel/cuda/rows/block.cuh"

enum { FM__AT_ONCE = 8 };

FM_DEVICE float4 fm__sum4(float4 a, float4 b)
{
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

FM_DEVICE float4 fm__add_scaled(float4 sum, float w, float4 v)
{
    return make_float4(sum.x + w * v.x, sum.y + w * v.y, sum.z + w * v.z, sum.w + w * v.w);
}

/* Slots first .. first + FM__AT_ONCE of a row: all loads are issued before the first addition.
 * Column i is col + i * stride. */
template <int V>
FM_DEVICE void fm__add_slots(const fm_cuda_combine_args &a, float4 (&sum)[V], size_t row, int first,
                             int col, int stride)
{
    const size_t at = row * (size_t)a.top_k;
    int          pair[FM__AT_ONCE];
    float        w[FM__AT_ONCE];
    float4       v[FM__AT_ONCE][V];
#pragma unroll
    for (int i = 0; i < FM__AT_ONCE; i++) {
        const bool there = first + i < a.top_k;
        pair[i]          = there ? a.pair_of[at + (size_t)(first + i)] : -1;
        w[i]             = there ? a.weight[at + (size_t)(first + i)] : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < FM__AT_ONCE; i++)
#pragma unroll
        for (int j = 0; j < V; j++)
            if (pair[i] >= 0 && (V == 1 || col + j * stride < a.width))
                v[i][j] =
                    fm__load4(a.pair_out + (size_t)pair[i] * (size_t)a.width + col + j * stride);
#pragma unroll
    for (int i = 0; i < FM__AT_ONCE; i++)
#pragma unroll
        for (int j = 0; j < V; j++)
            if (pair[i] >= 0 && (V == 1 || col + j * stride < a.width))
                sum[j] = fm__add_scaled(sum[j], w[i], v[i][j]);
}

/* Four columns of a row, V times; the sum of the slots is complete before it is added to y.
 * Those of several that lie behind the row are left out; a single one lies in it. */
template <int V>
FM_DEVICE void fm__combined(float4 (&to)[V], const fm_cuda_combine_args &a, size_t row, int col,
                            int stride)
{
    const float4 zero = make_float4(0, 0, 0, 0);
    float4       had[V];
#pragma unroll
    for (int j = 0; j < V; j++) {
        const bool in = a.accumulate && (V == 1 || col + j * stride < a.width);
        had[j]        = in ? fm__load4(a.y + row * (size_t)a.width + col + j * stride) : zero;
        to[j]         = zero;
    }
    for (int first = 0; first < a.top_k; first += FM__AT_ONCE)
        fm__add_slots<V>(a, to, row, first, col, stride);
#pragma unroll
    for (int j = 0; j < V; j++)
        if (a.accumulate) to[j] = fm__sum4(had[j], to[j]);
}

#endif
