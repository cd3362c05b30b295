/* SPDX-License-Identifier: Apache-2.0 */
/* The wide dense product for very many rows of x: a warpgroup has two tiles of 64 rows of
 * w, one after the other, so that x comes half as often.  A warp's 32 rows lie together:
 * with SwiGLU the first tile is gate and the second up of the same channels. */
#ifndef FM_LLM_KERNEL_CUDA_LINEAR_WIDE_TWO_CUH
#define FM_LLM_KERNEL_CUDA_LINEAR_WIDE_TWO_CUH

#include "llm/kernel/cuda/linear/wide.cuh"

/* Of a warp's two tiles of 16 rows: this lane's of 32 steps.  Registers are short, so they
 * are found and waited for when these steps begin. */
template <bool GATED>
FM_DEVICE void read_factors(float (&f)[2], const fm_cuda_linear_args &a, int row0, int step,
                            int n_step)
{
    const int parts = GATED ? 2 : 1, n = a.n / parts, deep = (a.scale_row0 + n + 127) / 128;
    const int mine = min(step + (int)(threadIdx.x & 31), n_step - 1);
#pragma unroll
    for (int t = 0; t < 2; t++) {
        const int row = min(row0 / parts + (GATED ? 0 : 16 * t), n - 1);
        f[t] = a.scale[((a.scale_row0 + row) / 128 + (GATED ? t * deep : 0)) * n_step + mine];
    }
}

template <int N> FM_DEVICE void add_scaled(float (&sum)[N], const float (&part)[N], float factor)
{
    add_scaled(sum, part, make_float2(factor, factor));
}

/* The warp's first row of the block. */
FM_DEVICE int own_rows() { return threadIdx.x / 32 * 32; }

/* Eight tokens of the 32 rows, the lane's first token and row given. */
FM_DEVICE void store_two(const fm_cuda_linear_args &a, int token, int row, const float *upper,
                         const float *lower)
{
    float2 pair[2];
    fm__pair_rows(pair, upper);
    store_pair(a, 0, token, row, pair[0]);
    store_pair(a, 0, token, row + 8, pair[1]);
    fm__pair_rows(pair, lower);
    store_pair(a, 0, token, row + 16, pair[0]);
    store_pair(a, 0, token, row + 24, pair[1]);
}

FM_DEVICE void store_two_gated(const fm_cuda_linear_args &a, int token, int channel,
                               const float *gate, const float *up)
{
    float  y[4];
    float2 pair[2];
#pragma unroll
    for (int i = 0; i < 4; i++) y[i] = fm__gated(gate[i], up[i]);
    fm__pair_rows(pair, y);
    store_gated_pair(a, token, channel, pair[0]);
    store_gated_pair(a, token, channel + 8, pair[1]);
}

template <class S, bool GATED>
FM_DEVICE void store(const fm_cuda_linear_args &a, const wide_walk<S> &at,
                     const float (&sum)[2][S::NT / 2])
{
    const int row = at.row0 + own_rows();
#pragma unroll
    for (int j = 0; j < S::NT / 8; j++) {
        const int    token = at.token0 + 8 * j + fm__pair_token();
        const float *d0 = sum[0] + 4 * j, *d1 = sum[1] + 4 * j;
        if (GATED)
            store_two_gated(a, token, row / 2 + fm__pair_row(), d0, d1);
        else
            store_two(a, token, row + fm__pair_row(), d0, d1);
    }
}

template <class S, bool GATED>
FM_DEVICE void multiply_two(wide_ring<S> ring, const fm_cuda_linear_args &a)
{
    const int   lane  = threadIdx.x & 31;
    const int   place = fm__chunk<128>(own_rows() + (lane >> 2), 0) + (lane & 3) * 2;
    int         left  = count_own_steps<S>(a);
    wide_walk<S> at    = walk_begin<S>(a);
    float       part[S::NT / 2], sum[2][S::NT / 2];
    half_weights w[2];
    fm_grid_wait();
    fm_grid_release();
    fm_mbarrier_wait(ring.full, 0);
    prepare_stage<false>(w, stage_of<S>(ring), place);
    while (left > 0) {
        float f[2] = {0, 0};
#pragma unroll
        for (int i = 0; i < S::NT / 2; i++) sum[0][i] = sum[1][i] = 0;
        for (int step = 0; step < at.n_step; step++) {
            const int slot = ring.slot;
            if (step % 32 == 0) read_factors<GATED>(f, a, at.row0 + own_rows(), step, at.n_step);
            start_stage<S, false>(part, w, stage_of<S>(ring), place);
            fm_wgmma_wait<1>();
            prepare_stage<false, 16>(w, stage_of<S>(ring), place);
            fm_wgmma_wait<0>();
            fm_wgmma_hold(part);
            add_scaled(sum[0], part, __shfl_sync(FM_WARP, f[0], step % 32));
            start_stage<S, false, 16>(part, w, stage_of<S>(ring), place);
            ring_on<S>(ring);
            if (--left > 0) fm_mbarrier_wait(ring.full + ring.slot, ring.parity);
            fm_wgmma_wait<1>();
            if (left > 0) prepare_stage<false>(w, stage_of<S>(ring), place);
            fm_wgmma_wait<0>();
            fm_wgmma_hold(part);
            leave_stage<S>(ring, slot);
            add_scaled(sum[1], part, __shfl_sync(FM_WARP, f[1], step % 32));
        }
        store<S, GATED>(a, at, sum);
        walk_to_next<S>(at, a);
    }
}

#endif
