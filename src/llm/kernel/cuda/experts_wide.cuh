/* SPDX-License-Identifier: Apache-2.0 */
/* The grouped product for many tokens of an expert: tokens are the 64-row operand
 * of a warpgroup, weights its N columns, so that a stage's bytes are read from
 * shared memory as seldom as the registers for the sums allow.
 *
 *     256 rows of weights x 128 tokens, two warpgroups of 64 tokens each
 *
 * A lane has two tokens and pairs of neighbouring rows of weights, gate and up of
 * a channel among them: d[4j..4j+1] are rows 8j + 2(lane%4) and the next of token
 * lane/4, d[4j+2..] of token lane/4 + 8.  The sums are the bits of the other
 * shapes: the same chain, with the factors of each product changed about. */
#ifndef FM_LLM_KERNEL_CUDA_EXPERTS_WIDE_CUH
#define FM_LLM_KERNEL_CUDA_EXPERTS_WIDE_CUH

#include "llm/kernel/cuda/experts_tile.cuh"

FM_DEVICE int own_group() { return threadIdx.x / 128; }

/* The lane's first token of the block. */
FM_DEVICE int own_token() { return threadIdx.x / 32 * 16 + (threadIdx.x & 31) / 4; }

template <class S> FM_DEVICE void start_tokens(float (&d)[S::ROWS / 2], const uint8_t *stage)
{
    const fm_tile w = fm_tile_by_row(stage);
    const fm_tile x = fm_tile_by_row(stage + S::WEIGHT_BYTES + own_group() * 64 * 128);
    fm_wgmma_fence();
#pragma unroll
    for (int k16 = 0; k16 < S::K / 16; k16++)
        fm_wgmma_ss<S::ROWS>(d, fm_tile_at(x, 32 * k16), fm_tile_at(w, 32 * k16));
    fm_wgmma_commit();
}

/* A warpgroup without tokens only copies. */
template <class S>
FM_DEVICE void multiply_tokens(float (&d)[S::ROWS / 2], tile_ring<S> &ring, const tile_args &a,
                               const tile_task &task)
{
    const bool has_tokens = own_group() * 64 < task.n_pair;
    for (int step = 0; step < ring.n_step; step++) {
        const uint8_t *stage = ring_next<S>(ring);
        if (has_tokens) start_tokens<S>(d, stage);
        copy_next<S>(ring, a);
        fm_wgmma_wait<S::FLIGHT>();
    }
    fm_wgmma_wait<0>();
    fm_wgmma_hold(d);
}

template <class S, tile_out OUT>
FM_DEVICE void store_tokens(const tile_args &a, const tile_task &task,
                            const float (&d)[S::ROWS / 2])
{
    const int row = task.row0 + (threadIdx.x & 3) * 2;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int token = own_token() + 8 * half;
        if (token >= task.n_pair) continue;
#pragma unroll
        for (int j = 0; j < S::ROWS / 8; j++)
            store_pair<OUT>(a, task.pair0 + token, row + 8 * j,
                            make_float2(d[4 * j + 2 * half], d[4 * j + 2 * half + 1]));
    }
}

/* Of each 32 rows, j = 0, 1 are gates and j = 2, 3 the same channels' ups. */
template <class S>
FM_DEVICE void store_gated_tokens(const tile_args &a, const tile_task &task,
                                  const float (&d)[S::ROWS / 2])
{
    const int first = task.row0 / 2 + (threadIdx.x & 3) * 2;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int token = own_token() + 8 * half;
        uint16_t *y     = (uint16_t *)a.y + (int64_t)(task.pair0 + token) * a.ldy;
        if (token >= task.n_pair) continue;
#pragma unroll
        for (int j = 0; j < S::ROWS / 8; j++) {
            if (j % 4 >= 2) continue;
            const int    channel = first + j / 4 * 16 + j % 4 * 8;
            const float *gate = d + 4 * j + 2 * half, *up = gate + 8;
            if (channel < a.n / 2)
                *(uint32_t *)(y + channel) =
                    fm_bf16x2_of_f32(fm__gated(gate[0], up[0]), fm__gated(gate[1], up[1]));
        }
    }
}

template <class S, tile_out OUT> FM_KERNEL(S::THREADS, 1) grouped_wide(const tile_args a)
{
    FM_SHARED_BYTES(bytes);
    tile_ring<S> ring;
    tile_task    task = ring_begin<S, false>(ring, a, bytes);
    for (int t = blockIdx.x; t < ring.n_task; t += gridDim.x) {
        if (t != (int)blockIdx.x) task = task_at<S>(a, t, ring.n_block);
        float d[S::ROWS / 2];
#pragma unroll
        for (int i = 0; i < S::ROWS / 2; i++) d[i] = 0;
        multiply_tokens<S>(d, ring, a, task);
        if (OUT == OUT_SWIGLU)
            store_gated_tokens<S>(a, task, d);
        else
            store_tokens<S, OUT>(a, task, d);
    }
}

template <class S, tile_out OUT> struct wide_kernel {
    using shape = S;
    static cudaError_t init() { return fm_allow_shared(grouped_wide<S, OUT>, S::BYTES); }
    static void        launch(const tile_args &a, int max_block, int n_sm, fm_stream stream)
    {
        const int64_t tasks = (int64_t)((a.n + S::ROWS - 1) / S::ROWS) * max_block;
        const int     grid  = tasks < n_sm ? (int)tasks : n_sm;
        FM_LAUNCH_EARLY((grouped_wide<S, OUT>), grid, S::THREADS, S::BYTES, stream, a);
    }
};

#endif
