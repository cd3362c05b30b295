/* SPDX-License-Identifier: Apache-2.0 */
/* The tasks of an E4M3 product, and the producer warpgroup that brings their bytes into shared
 * memory.
 *
 *     task = ROWS rows of one expert's weights  x  a block of up to NT of its pairs
 *
 *     stage (128 k):  w [ROWS][128]   TMA
 *                     x [NT][128]     TMA, each block of a cluster a part of it, to all of them;
 *                                     GATHER: cp.async, rows picked by x_row
 *                     scales [NT]     cp.async, one for each row of x
 *
 * Thread blocks of a cluster have the same pairs and neighbouring rows of weights.  They are
 * persistent; the ring goes on from task to task. */
#ifndef FM_LLM_KERNEL_CUDA_FP8_RING_CUH
#define FM_LLM_KERNEL_CUDA_FP8_RING_CUH

#include "llm/kernel/cuda/fp8/fp8.h"
#include "llm/kernel/cuda/ptx/cluster.cuh"
#include "llm/kernel/cuda/ptx/fragment.cuh"
#include "llm/kernel/cuda/ptx/wgmma_e4m3.cuh"

enum { BLOCK_GROUP = 8 }; /* blocks of pairs that go round together, so that they read w from L2 */

/* GROUPS warpgroups multiply TILES tiles of 64 rows each. */
template <int NT_, int GROUPS_, int TILES_, int STAGES_, int CLUSTER_, bool GATHER_,
          bool BY_TOKEN_ = false>
struct fp8_shape {
    static constexpr bool GATHER = GATHER_, BY_TOKEN = BY_TOKEN_; /* which is the 64-row operand */
    static constexpr bool ALONE = false; /* a warpgroup has all rows of weights (tokens.cuh) */
    enum {
        NT          = NT_,
        GROUPS      = GROUPS_,
        TILES       = TILES_,
        STAGES      = STAGES_,
        CLUSTER     = fm_cluster_of(CLUSTER_),
        THREADS     = 128 * (GROUPS + 1),
        ROWS        = BY_TOKEN ? 128 * TILES : 64 * GROUPS * TILES,
        REGISTERS   = GROUPS == 3 ? 160 : 240,     /* of a thread that multiplies, if deep */
        IS_DEEP     = BY_TOKEN || NT * TILES > 96, /* registers are taken from the producer */
        BOX         = NT < 32 ? NT : 32,           /* rows of x that one copy brings */
        BOX_BYTES   = BOX * 128,
        W_BYTES     = ROWS * 128,
        X_BYTES     = NT * 128,
        STAGE_BYTES = W_BYTES + X_BYTES,
        RING_BYTES  = STAGES * STAGE_BYTES,
        SCALE_BYTES = STAGES * NT * 4,
        BYTES       = RING_BYTES + SCALE_BYTES + 2 * STAGES * (int)sizeof(fm_mbarrier),
        X_COPIES    = GATHER ? (NT + 15) / 16 : 1, /* of 16 bytes, by a thread of 128 */
        SCALES      = (NT + 127) / 128,
    };
    static_assert(BYTES <= 227 << 10, "shared memory of a multiprocessor");
    static_assert(!GATHER || CLUSTER == 1, "gathered rows are not multicast");
};

/* --- tasks ------------------------------------------------------------------- */

typedef struct {
    int expert, row0, pair0, n_pair;
} fp8_task;

/* The list is read from L2: before fm_grid_wait() L1 may remember another one. */
template <class S> FM_DEVICE int count_blocks(const fm_cuda_fp8_args &a)
{
    return a.block ? *(const volatile int32_t *)a.n_block : (a.n_row + S::NT - 1) / S::NT;
}

/* CLUSTER tiles of rows are one step of the walk. */
template <class S> FM_DEVICE int row_groups(const fm_cuda_fp8_args &a)
{
    return (a.n + S::ROWS * S::CLUSTER - 1) / (S::ROWS * S::CLUSTER);
}

template <class S> FM_DEVICE int count_tasks(const fm_cuda_fp8_args &a, int n_block)
{
    return n_block * row_groups<S>(a);
}

template <class S> FM_DEVICE fp8_task task_at(const fm_cuda_fp8_args &a, int t, int n_block)
{
    const int per_group = BLOCK_GROUP * row_groups<S>(a);
    const int group = t / per_group, in = t - group * per_group;
    const int width = min((int)BLOCK_GROUP, n_block - group * BLOCK_GROUP);
    const int b     = group * BLOCK_GROUP + in % width;
    fp8_task  k     = {0, (in / width * S::CLUSTER + fm_cluster_rank()) * S::ROWS, b * S::NT, 0};
    k.n_pair        = min((int)S::NT, a.n_row - k.pair0);
    if (a.block) {
        const volatile int32_t *at = a.block + 3 * (int64_t)b;
        k.expert                   = at[0];
        k.pair0                    = at[1];
        k.n_pair                   = at[2];
    }
    return k;
}

/* The thread block's way through rounds of tasks.  Blocks differ in size, and even strides could
 * meet the same kind again and again: each round begins one task further. */
typedef struct {
    int first, own, every;
} task_walk;

template <class S> FM_DEVICE task_walk walk_begin()
{
    const task_walk w = {0, (int)blockIdx.x / S::CLUSTER, (int)gridDim.x / S::CLUSTER};
    return w;
}

FM_DEVICE int walk_task(const task_walk &w) { return w.first + w.own; }

FM_DEVICE void walk_on(task_walk &w)
{
    w.first += w.every;
    w.own = w.own + 1 == w.every ? 0 : w.own + 1;
}

/* --- the ring ---------------------------------------------------------------- */

template <class S> struct fp8_ring {
    uint8_t     *bytes;
    float       *scale;        /* [STAGES][NT] */
    fm_mbarrier *full, *empty; /* [STAGES] */
    int          slot, parity; /* the stage that comes next, and the phase of its barriers */
    int          pair; /* of a stage, where the pairs begin that are multiplied here */
};

/* The producers of a stage: one thread for TMA, and 128 for what they copy themselves. */
template <class S> FM_DEVICE fp8_ring<S> ring_begin(uint8_t *bytes)
{
    fp8_ring<S> r;
    r.bytes = bytes;
    r.scale = (float *)(bytes + S::RING_BYTES);
    r.full  = (fm_mbarrier *)(bytes + S::RING_BYTES + S::SCALE_BYTES);
    r.empty = r.full + S::STAGES;
    r.slot = r.parity = r.pair = 0;
    if (threadIdx.x == 0) {
        for (int i = 0; i < S::STAGES; i++) {
            fm_mbarrier_init(r.full + i, 1 + 128);
            fm_mbarrier_init(r.empty + i, S::GROUPS * 4 * S::CLUSTER); /* every warp */
        }
        fm_cluster_show_barriers();
    }
    fm_cluster_sync();
    return r;
}

template <class S> FM_DEVICE void ring_on(fp8_ring<S> &r)
{
    if (++r.slot < S::STAGES) return;
    r.slot = 0;
    r.parity ^= 1;
}

template <class S> FM_DEVICE uint8_t *stage_of(const fp8_ring<S> &r)
{
    return r.bytes + r.slot * S::STAGE_BYTES;
}

/* A warp has consumed a stage: its producers, in any block of the cluster, may fill it again. */
template <class S> FM_DEVICE void ring_release(const fp8_ring<S> &r, int slot)
{
    const int lane = threadIdx.x & 31;
    if (S::CLUSTER == 1 && lane == 0) fm_mbarrier_arrive(r.empty + slot);
    if (S::CLUSTER > 1 && lane < S::CLUSTER) fm_mbarrier_arrive_at(r.empty + slot, lane);
}

/* --- the producer ------------------------------------------------------------ */

/* Rows of x that a thread copies of a task; -1: none. */
template <class S> struct fp8_source {
    int token[S::X_COPIES]; /* 16 bytes of each */
    int scale[S::SCALES];
};

template <class S>
FM_DEVICE int row_of_token(const fm_cuda_fp8_args &a, const fp8_task &task, int token)
{
    if (token >= task.n_pair) return -1;
    return a.x_row ? a.x_row[task.pair0 + token] : task.pair0 + token;
}

template <class S>
FM_DEVICE void source_begin(fp8_source<S> &s, const fm_cuda_fp8_args &a, const fp8_task &task)
{
    const int tid = threadIdx.x % 128;
#pragma unroll
    for (int i = 0; i < S::X_COPIES && S::GATHER; i++)
        s.token[i] = row_of_token<S>(a, task, tid / 8 + 16 * i);
#pragma unroll
    for (int i = 0; i < S::SCALES; i++) s.scale[i] = row_of_token<S>(a, task, tid + 128 * i);
}

/* One thread: the weights, and rows of x that lie one after the other. */
template <class S>
FM_DEVICE void ask_for_stage(const fp8_ring<S> &r, const fm_cuda_fp8_args &a, const fp8_task &task,
                             int step, const fm_tile_map *w, const fm_tile_map *x)
{
    const int    boxes = S::GATHER ? 0 : (task.n_pair + S::BOX - 1) / S::BOX;
    uint8_t     *stage = stage_of<S>(r), *to = stage + S::W_BYTES;
    fm_mbarrier *full = r.full + r.slot;
    fm_mbarrier_expect(full, S::W_BYTES + boxes * S::BOX_BYTES);
#pragma unroll
    for (int i = 0; i < S::ROWS; i += 128)
        fm_bulk_tile(stage + i * 128, w, step * 128, task.expert * a.n + task.row0 + i, full);
    for (int i = fm_cluster_rank(); i < boxes; i += S::CLUSTER) {
        if (S::CLUSTER == 1)
            fm_bulk_tile(to + i * S::BOX_BYTES, x, step * 128, task.pair0 + i * S::BOX, full);
        else
            fm_bulk_tile_to_all(to + i * S::BOX_BYTES, x, step * 128, task.pair0 + i * S::BOX, full,
                                S::CLUSTER);
    }
}

template <class S>
FM_DEVICE void copy_tokens(uint8_t *to, const fp8_source<S> &s, const fm_cuda_fp8_args &a, int step)
{
    const int  tid = threadIdx.x % 128, first = tid / 8, c = tid % 8, at = step * 128 + c * 16;
    const bool in = at < a.k; /* else zeros: weights are, and 0 x NaN is not 0 */
#pragma unroll
    for (int i = 0; i < S::X_COPIES; i++)
        if (first + 16 * i < S::NT)
            fm_cp_async16(to + fm__chunk<128>(first + 16 * i, c),
                          a.x + (int64_t)max(s.token[i], 0) * a.k + (in ? at : 0),
                          in && s.token[i] >= 0);
}

template <class S>
FM_DEVICE void copy_scales(const fp8_ring<S> &r, const fp8_source<S> &s, const fm_cuda_fp8_args &a,
                           int step, int n_step)
{
    const int tid = threadIdx.x % 128;
#pragma unroll
    for (int i = 0; i < S::SCALES; i++)
        if (tid + 128 * i < S::NT)
            fm_cp_async4(r.scale + r.slot * S::NT + tid + 128 * i,
                         a.x_scale + (int64_t)max(s.scale[i], 0) * n_step + step, s.scale[i] >= 0);
}

/* Which warpgroup this is, in a way that tells the compiler that a warp agrees. */
FM_DEVICE int own_group() { return __shfl_sync(FM_WARP, (int)threadIdx.x / 128, 0); }
FM_DEVICE int own_warp() { return threadIdx.x / 32 % 4; }

/* By a warpgroup that multiplies. */
template <class S> FM_DEVICE void wait_for_stage(const fp8_ring<S> &r)
{
    fm_mbarrier_wait(r.full + r.slot, r.parity);
    if (S::GATHER) fm_tile_fence(); /* what threads copied is shown to wgmma */
}

FM_DEVICE int count_steps(const fm_cuda_fp8_args &a) { return (a.k + 127) / 128; }

/* 128 threads. */
template <class S>
FM_DEVICE void bring_tasks(fp8_ring<S> r, const fm_cuda_fp8_args &a, int n_block,
                           const fm_tile_map *w, const fm_tile_map *x)
{
    const int n_task = count_tasks<S>(a, n_block), n_step = count_steps(a);
    const int tid = threadIdx.x % 128;
    for (task_walk walk = walk_begin<S>(); walk.first < n_task; walk_on(walk)) {
        if (walk_task(walk) >= n_task) continue;
        const fp8_task task = task_at<S>(a, walk_task(walk), n_block);
        fp8_source<S>  from;
        source_begin<S>(from, a, task);
        for (int step = 0; step < n_step; step++, ring_on<S>(r)) {
            fm_mbarrier_wait(r.empty + r.slot, r.parity ^ 1);
            if (tid == 0) ask_for_stage<S>(r, a, task, step, w, x);
            copy_scales<S>(r, from, a, step, n_step);
            if (S::GATHER) copy_tokens<S>(stage_of<S>(r) + S::W_BYTES, from, a, step);
            fm_mbarrier_arrive_copied(r.full + r.slot);
        }
    }
}

#endif
