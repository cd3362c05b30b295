/* SPDX-License-Identifier: Apache-2.0 */
/* The dense product of E4M3 weights for more than a few rows of x.
 *
 *     thread block = 64 rows of w for each of GROUPS warpgroups  x  NT rows of x
 *     cluster      = CLUSTER of them below each other, with the same rows of x
 *
 *     feeder        asks for bytes           ring of stages of 128 k:
 *        │  tile copies, x to all of the cluster      w [64 GROUPS][128] e4m3
 *        v                                            x [2][NT][64]      bf16
 *     warpgroups    w: shared memory -> bf16 in registers ┐
 *                   x: read by the tensor cores           ┴> part, 8 wgmma of k16
 *                   sum = fmaf(part, factor, sum)
 *
 * Warpgroups meet at no barrier but those of the ring, so one of them converts and
 * scales while another's products run.  Reading x once for a cluster matters: L2
 * answers 5.4 TB/s, and x is read again for every 64 GROUPS rows of w.
 *
 * With SwiGLU a tile of 16 rows is 8 of gate and the 8 of up for the same channels:
 * both sums of a channel end in the same lane.
 *
 * Thread blocks are persistent, and the ring does not end with a task. */
#ifndef FM_LLM_KERNEL_CUDA_LINEAR_WIDE_CUH
#define FM_LLM_KERNEL_CUDA_LINEAR_WIDE_CUH

#include "llm/kernel/cuda/linear/factors.cuh"
#include "llm/kernel/cuda/linear/wide_ring.cuh"
#include "llm/kernel/cuda/ptx/wgmma.cuh"

/* Which 16 rows of the block a warp has. */
FM_DEVICE int own_tile()
{
    return threadIdx.x / 32;
}

/* Where a lane finds its bytes of a stage's first k16: the upper row of its tile. */
FM_DEVICE int weights_place(bool gated)
{
    const int lane = threadIdx.x & 31, warp = own_tile(), g = lane >> 2;
    const int row  = gated ? warp / 2 * 32 + warp % 2 * 8 : warp * 16;
    return fm__chunk<128>(row + g, 0) + (lane & 3) * 2;
}

/* A warp's m16k16 operands of half a stage. */
struct half_weights {
    uint32_t k16[4][4];
};

/* Pairs of bytes of the warp's tile, every k in its own place; FROM rows behind `place`. */
template <bool GATED, int FROM = 0>
FM_DEVICE void load_half(half_weights &w, const uint8_t *stage, int place, int half)
{
    const int lower = (GATED ? 16 : 8) * 128; /* bytes from a row to its lower half's */
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const uint8_t *at = stage + (place ^ (4 * half + i) << 4) + FROM * 128;
        w.k16[i][0]       = *(const uint16_t *)at;
        w.k16[i][1]       = *(const uint16_t *)(at + lower);
        w.k16[i][2]       = *(const uint16_t *)(at + 8);
        w.k16[i][3]       = *(const uint16_t *)(at + lower + 8);
    }
}

FM_DEVICE void convert_half(half_weights &w)
{
#pragma unroll
    for (int i = 0; i < 16; i++)
        w.k16[i / 4][i % 4] = fm_bf16x2_of_e4m3<0>(w.k16[i / 4][i % 4]);
}

template <class S>
FM_DEVICE void start_half(float (&part)[S::NT / 2], const half_weights &w, const uint8_t *stage,
                          int half)
{
    const fm_tile x = fm_tile_by_row(stage + S::W_BYTES + half * S::HALF_BYTES);
    fm_wgmma_fence();
#pragma unroll
    for (int i = 0; i < 4; i++)
        fm_wgmma_rs<S::NT>(part, w.k16[i], fm_tile_at(x, 32 * i), half + i > 0);
    fm_wgmma_commit();
}

/* part = w x for one stage, whose first half is converted; while it is multiplied, the
 * second is converted.  Leaves both running. */
template <class S, bool GATED, int FROM = 0>
FM_DEVICE void start_stage(float (&part)[S::NT / 2], half_weights (&w)[2], const uint8_t *stage,
                           int place)
{
    start_half<S>(part, w[0], stage, 0);
    fm_wgmma_wait<1>(); /* no wait: a barrier for the compiler, so that it does not convert first */
    load_half<GATED, FROM>(w[1], stage, place, 1);
    convert_half(w[1]);
    start_half<S>(part, w[1], stage, 1);
}

/* The first half of a stage, as soon as its registers are free. */
template <bool GATED, int FROM = 0>
FM_DEVICE void prepare_stage(half_weights (&w)[2], const uint8_t *stage, int place)
{
    load_half<GATED, FROM>(w[0], stage, place, 0);
    convert_half(w[0]);
}

template <class S> FM_DEVICE void leave_stage(const wide_ring<S> &r, int slot)
{
    const int lane = threadIdx.x & 31;
    if (S::CLUSTER == 1 && lane == 0) fm_mbarrier_arrive(r.empty + slot);
    if (S::CLUSTER > 1 && lane < S::CLUSTER) fm_mbarrier_arrive_at(r.empty + slot, lane);
}

template <int N> FM_DEVICE void add_scaled(float (&sum)[N], const float (&part)[N], float2 factor)
{
#pragma unroll
    for (int i = 0; i < N; i++)
        sum[i] = fmaf(part[i], i % 4 < 2 ? factor.x : factor.y, sum[i]);
}

/* Two neighbouring channels of one row of y. */
FM_DEVICE void store_gated_pair(const fm_cuda_linear_args &a, int token, int channel, float2 v)
{
    if (token < a.m && channel < a.n / 2)
        *(uint32_t *)((uint16_t *)a.y + (int64_t)token * a.ldy + channel) =
            fm_bf16x2_of_f32(v.x, v.y);
}

/* The N tokens from token0 on. */
template <class S, bool GATED, int N>
FM_DEVICE void store(const fm_cuda_linear_args &a, int row0, int token0, const float (&sum)[N / 2])
{
    const int warp = own_tile();
#pragma unroll
    for (int j = 0; j < N / 8; j++) {
        const int    token = token0 + 8 * j + fm__pair_token();
        const float *d     = sum + 4 * j;
        float2       pair[2];
        if (GATED) {
            const float y[4] = {fm__gated(d[0], d[2]), fm__gated(d[1], d[3]), 0, 0};
            fm__pair_rows(pair, y);
            store_gated_pair(a, token, row0 / 2 + warp * 8 + fm__pair_row(), pair[0]);
        } else {
            const int row = row0 + warp * 16 + fm__pair_row();
            fm__pair_rows(pair, d);
            store_pair(a, 0, token, row, pair[0]);
            store_pair(a, 0, token, row + 8, pair[1]);
        }
    }
}

template <class S, bool GATED>
FM_DEVICE void multiply(wide_ring<S> ring, const fm_cuda_linear_args &a)
{
    const int   place = weights_place(GATED);
    int         left  = count_own_steps<S>(a);
    wide_walk<S> at    = walk_begin<S>(a);
    float       part[S::NT / 2], sum[S::NT / 2];
    half_weights w[2];
    fm_grid_wait();
    fm_grid_release();
    fm_mbarrier_wait(ring.full, 0);
    prepare_stage<GATED>(w, stage_of<S>(ring), place);
    while (left > 0) {
        tile_factors f;
        factors_begin(f, a, at.row0 + own_tile() * 16);
#pragma unroll
        for (int i = 0; i < S::NT / 2; i++) sum[i] = 0;
        for (int step = 0; step < at.n_step; step++) {
            const int slot = ring.slot;
            start_stage<S, GATED>(part, w, stage_of<S>(ring), place);
            ring_on<S>(ring);
            factors_need(f, step);
            if (--left > 0) fm_mbarrier_wait(ring.full + ring.slot, ring.parity);
            fm_wgmma_wait<1>();
            if (left > 0) prepare_stage<GATED>(w, stage_of<S>(ring), place);
            fm_wgmma_wait<0>();
            fm_wgmma_hold(part);
            leave_stage<S>(ring, slot);
            add_scaled(sum, part, factors_at(f, step));
        }
        store<S, GATED, S::NT>(a, at.row0, at.token0, sum);
        walk_to_next<S>(at, a);
    }
}

#endif
