/* SPDX-License-Identifier: Apache-2.0 */
/* The grouped product behind both phases of the experts, for blocks of few tokens.
 *
 *     tasks ──ring.cuh──> stages ──product.cuh──> sums ──> here
 *
 * Thread blocks are persistent: each walks its share of the tasks, multiplies
 * stage after stage, and stores SwiGLU of the sums or the sums themselves. */
#ifndef FM_LLM_KERNEL_CUDA_EXPERTS_TILE_CUH
#define FM_LLM_KERNEL_CUDA_EXPERTS_TILE_CUH

#include "llm/kernel/cuda/experts/product.cuh"

typedef enum { OUT_SUMS, OUT_SWIGLU } tile_out;

/* The factors of an m16 tile lie one after the other along k: a lane keeps one
 * of 32 steps, and those of the 32 steps after.  W1 and W3 alternate by tiles,
 * and a block of 128 rows may end between tiles. */
template <class S> struct tile_factors {
    int   at[S::M16];
    float here[S::M16], then[S::M16];
};

FM_DEVICE float factor_of_lane(const tile_args &a, int at, int step, int n_step)
{
    const int mine = step + (int)(threadIdx.x & 31);
    return mine < n_step ? a.scale[at + mine] : 0;
}

template <class S, tile_out OUT>
FM_DEVICE void factors_begin(tile_factors<S> &f, const tile_args &a, const tile_task &task,
                             int n_step)
{
    const int parts = OUT == OUT_SWIGLU ? 2 : 1, n = a.n / parts;
    const int deep = (a.scale_row0 + n + 127) / 128;
#pragma unroll
    for (int i = 0; i < S::M16; i++) {
        const int row = min((task.row0 + warp_row()) / parts + i / parts * 16, n - 1);
        const int at  = (task.expert * parts + i % parts) * deep + (a.scale_row0 + row) / 128;
        f.at[i]       = at * n_step;
        f.here[i]     = factor_of_lane(a, f.at[i], 0, n_step);
        f.then[i]     = factor_of_lane(a, f.at[i], 32, n_step);
    }
}

template <class S>
FM_DEVICE void factors_next(tile_factors<S> &f, const tile_args &a, int step, int n_step)
{
    if (step % 32 || step == 0) return;
#pragma unroll
    for (int i = 0; i < S::M16; i++) {
        f.here[i] = f.then[i];
        f.then[i] = factor_of_lane(a, f.at[i], step + 32, n_step);
    }
}

/* Two neighbouring outputs of one pair. */
FM_DEVICE void store_pair(const tile_args &a, int64_t pair, int row, float2 v)
{
    if (row < a.n) *(uint32_t *)(a.y + pair * a.ldy + row) = fm_bf16x2_of_f32(v.x, v.y);
}

template <class S>
FM_DEVICE void store_sums(const tile_args &a, const tile_task &task, const tile_sums<S> &c)
{
#pragma unroll
    for (int i = 0; i < S::M16; i++)
#pragma unroll
        for (int j = 0; j < S::N8; j++) {
            float2 pair[2];
            fm__pair_rows(pair, c.d[i] + 4 * j);
            const int token = 8 * j + fm__pair_token();
            const int row   = task.row0 + warp_row() + 16 * i + fm__pair_row();
            if (token < task.n_pair) {
                store_pair(a, task.pair0 + token, row, pair[0]);
                store_pair(a, task.pair0 + token, row + 8, pair[1]);
            }
        }
}

template <class S>
FM_DEVICE void store_swiglu(const tile_args &a, const tile_task &task, const tile_sums<S> &c)
{
#pragma unroll
    for (int j = 0; j < S::N8; j++) {
        float  m[4];
        float2 pair[2];
#pragma unroll
        for (int e = 0; e < 4; e++) m[e] = fm__gated(c.d[0][4 * j + e], c.d[1][4 * j + e]);
        fm__pair_rows(pair, m);
        const int token   = 8 * j + fm__pair_token();
        const int channel = (task.row0 + warp_row()) / 2 + fm__pair_row();
        uint16_t *y       = a.y + (int64_t)(task.pair0 + token) * a.ldy + channel;
        if (token < task.n_pair && channel < a.n / 2) {
            *(uint32_t *)y       = fm_bf16x2_of_f32(pair[0].x, pair[0].y);
            *(uint32_t *)(y + 8) = fm_bf16x2_of_f32(pair[1].x, pair[1].y);
        }
    }
}

/* All steps of one task; the ring's other end stays ahead. */
template <class S>
FM_DEVICE void multiply_task_bf16(tile_sums<S> &c, tile_ring<S> &ring, const tile_args &a)
{
    for (int step = 0; step < ring.n_step; step++) {
        const uint8_t *stage = ring_next<S>(ring);
        copy_next<S>(ring, a);
        multiply_bf16<S>(c, stage);
    }
}

/* The same by a warpgroup, for the first N of NT tokens. */
template <class S, int N>
FM_DEVICE void multiply_task_wide(tile_sums<S> &c, tile_ring<S> &ring, const tile_args &a)
{
    for (int step = 0; step < ring.n_step; step++) {
        start_bf16_wide<S, N>(c, ring_next<S>(ring));
        copy_next<S>(ring, a);
        fm_wgmma_wait<0>();
    }
#pragma unroll
    for (int i = 0; i < S::M16; i++) fm_wgmma_hold(c.d[i]);
}

template <class S, tile_out OUT>
FM_DEVICE void multiply_task_e4m3(tile_sums<S> &c, tile_ring<S> &ring, const tile_args &a,
                                  const tile_task &task)
{
    tile_factors<S> f;
    factors_begin<S, OUT>(f, a, task, ring.n_step);
    for (int step = 0; step < ring.n_step; step++) {
        const uint8_t *stage = ring_next<S>(ring);
        copy_next<S>(ring, a);
        factors_next<S>(f, a, step, ring.n_step);
        tile_sums<S> part;
        clear<S>(part);
        multiply_e4m3<S>(part, stage);
#pragma unroll
        for (int i = 0; i < S::M16; i++)
            add_scaled(c.d[i], part.d[i], __shfl_sync(FM_WARP, f.here[i], step % 32));
    }
}

template <class S, tile_out OUT>
FM_DEVICE void multiply_task(tile_sums<S> &c, tile_ring<S> &ring, const tile_args &a,
                             const tile_task &task)
{
    if constexpr (S::FP8)
        multiply_task_e4m3<S, OUT>(c, ring, a, task);
    else if constexpr (!S::TOGETHER)
        multiply_task_bf16<S>(c, ring, a);
    else if (task.n_pair <= S::NT / 2)
        multiply_task_wide<S, S::NT / 2>(c, ring, a);
    else
        multiply_task_wide<S, S::NT>(c, ring, a);
}

template <class S, tile_out OUT, int PER_SM>
FM_KERNEL(S::THREADS, PER_SM)
grouped_tiles(const tile_args a)
{
    FM_SHARED_BYTES(bytes);
    tile_ring<S> ring;
    tile_task    task = ring_begin<S, OUT == OUT_SUMS>(ring, a, bytes);
    for (int t = blockIdx.x; t < ring.n_task; t += gridDim.x) {
        const int       after = t + gridDim.x; /* asked for now, known when this one is done */
        const tile_task next  = after < ring.n_task ? task_at<S>(a, after, ring.n_block) : task;
        tile_sums<S>    c;
        clear<S>(c);
        multiply_task<S, OUT>(c, ring, a, task);
        if (OUT == OUT_SWIGLU)
            store_swiglu<S>(a, task, c);
        else
            store_sums<S>(a, task, c);
        task = next;
    }
}

/* A task has a thread block of its own, which the hardware schedules as multiprocessors become
 * free: PER_SM at a time on each, as many as registers and ring allow. */
template <class S, tile_out OUT, int PER_SM> struct tile_kernel {
    using shape = S;
    static cudaError_t init() { return fm_allow_shared(grouped_tiles<S, OUT, PER_SM>, S::BYTES); }
    static fm_status   launch(const tile_args &a, int max_block, int, fm_stream stream)
    {
        const int tasks = (a.n + S::ROWS - 1) / S::ROWS * max_block;
        FM_LAUNCH_EARLY((grouped_tiles<S, OUT, PER_SM>), tasks, S::THREADS, S::BYTES, stream, a);
        return fm_cuda_launched("experts");
    }
};

#endif
