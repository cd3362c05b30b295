/* SPDX-License-Identifier: Apache-2.0 */
/* The dense product of E4M3 weights: every 128 k are a chain of their own from
 * zero, scaled and added in order.
 *
 *     sharer s of a tile multiplies block s of every stage     mma.m16n8k16
 *     their sums meet in shared memory one step later:
 *         sum = fmaf(part of block 0, factor, sum), then block 1, ...
 *
 * Blocks do not wait for each other, so a stage takes no longer than one of
 * them, and weights are made bf16 once. */
#ifndef FM_LLM_KERNEL_CUDA_LINEAR_E4M3_CUH
#define FM_LLM_KERNEL_CUDA_LINEAR_E4M3_CUH

#include "llm/kernel/cuda/linear/factors.cuh"
#include "llm/kernel/cuda/linear/tile.cuh"

template <class S> struct block_sums {
    float d[S::N8][4];
};

template <class S> FM_DEVICE void multiply(block_sums<S> &part, const uint8_t *block)
{
#pragma unroll
    for (int i = 0; i < S::N8 * 4; i++) part.d[i / 4][i % 4] = 0;
#pragma unroll
    for (int k32 = 0; k32 < LINEAR_K / 32; k32++) {
        uint32_t w[2][4];
        fm__weights_e4m3<S::W_LINE>(w, block, 16 * warp_tile<S>(), 2 * k32);
#pragma unroll
        for (int half = 0; half < 2; half++)
#pragma unroll
            for (int j = 0; j < S::N8; j++) {
                uint32_t b[2];
                fm__tokens_e4m3<X_ROW>(b, block + S::W_BYTES, 8 * j, 2 * k32 + half);
                fm_mma_bf16_16816(part.d[j], w[half], b);
            }
    }
}

FM_DEVICE void add_scaled(float d[4], float4 part, float2 factor)
{
    d[0] = fmaf(part.x, factor.x, d[0]);
    d[1] = fmaf(part.y, factor.x, d[1]);
    d[2] = fmaf(part.z, factor.y, d[2]);
    d[3] = fmaf(part.w, factor.y, d[3]);
}

/* Where a sharer leaves its sums of a stage: [sharer][tile][N8][lane] */
template <class S> FM_DEVICE float4 *parts_of(float4 *part, int step, int sharer)
{
    return part + step % 2 * (S::PART_BYTES / 16) +
           (sharer * S::M16 + warp_tile<S>()) * S::N8 * 32 + (threadIdx.x & 31);
}

template <class S> FM_DEVICE void leave(float4 *part, const block_sums<S> &c, int step)
{
    float4 *to = parts_of<S>(part, step, warp_sharer<S>());
#pragma unroll
    for (int j = 0; j < S::N8; j++)
        to[j * 32] = make_float4(c.d[j][0], c.d[j][1], c.d[j][2], c.d[j][3]);
}

template <class S>
FM_DEVICE void add_parts(linear_sums<S> &c, float4 *part, tile_factors &f, int step)
{
    float4 d[S::SHARERS][S::OWN];
    if (!has_sum<S>(0)) return;
    factors_need(f, step * S::SHARERS);
#pragma unroll
    for (int s = 0; s < S::SHARERS; s++)
#pragma unroll
        for (int i = 0; i < S::OWN; i++)
            d[s][i] = parts_of<S>(part, step, s)[min(sum_column<S>(i), S::N8 - 1) * 32];
#pragma unroll
    for (int s = 0; s < S::SHARERS; s++) {
        const float2 factor = factors_at(f, step * S::SHARERS + s);
#pragma unroll
        for (int i = 0; i < S::OWN; i++) add_scaled(c.d + 4 * i, d[s][i], factor);
    }
}

template <class S>
FM_DEVICE void add_block(linear_sums<S> &c, const block_sums<S> &block, float2 factor)
{
#pragma unroll
    for (int j = 0; j < S::OWN; j++) {
        const float *d = block.d[j];
        add_scaled(c.d + 4 * j, make_float4(d[0], d[1], d[2], d[3]), factor);
    }
}

template <class S> FM_KERNEL(S::THREADS, 256 / S::THREADS) linear_e4m3(const fm_cuda_linear_args a)
{
    FM_SHARED_BYTES(ring);
    float4            *part   = (float4 *)(ring + S::RING_BYTES);
    const int          n_step = count_steps<S>(a);
    const linear_place p      = place_of_block<S>();
    linear_source<S>   from;
    tile_factors       factor;
    linear_sums<S>     c;
    factors_begin(factor, a, p.row0 + warp_tile<S>() * 16);
    copy_first<S>(ring, from, a, p, S::STAGES - 1);
    clear<S>(c);
    for (int step = 0; step < n_step; step++) {
        block_sums<S> block;
        fm_cp_async_wait<S::STAGES - 2>();
        __syncthreads(); /* this stage has landed; the one before is free, its sums are there */
        copy_next<S>(ring, from, a, step + S::STAGES - 1);
        if (S::SHARERS > 1 && step > 0) add_parts<S>(c, part, factor, step - 1);
        multiply<S>(block, ring + step % S::STAGES * S::STAGE_BYTES +
                               warp_sharer<S>() * S::BLOCK_BYTES);
        if (S::SHARERS > 1) {
            leave<S>(part, block, step);
        } else {
            factors_need(factor, step);
            add_block<S>(c, block, factors_at(factor, step));
        }
    }
    if (S::SHARERS > 1) {
        __syncthreads();
        add_parts<S>(c, part, factor, n_step - 1);
    }
    store<S>(a, p, c);
}

#endif
