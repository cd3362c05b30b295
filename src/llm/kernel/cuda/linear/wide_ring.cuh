/* SPDX-License-Identifier: Apache-2.0 */
/* The tasks of the wide dense product, and how their bytes come into shared memory. */
#ifndef FM_LLM_KERNEL_CUDA_LINEAR_WIDE_RING_CUH
#define FM_LLM_KERNEL_CUDA_LINEAR_WIDE_RING_CUH

#include "llm/kernel/cuda/ptx/cluster.cuh"
#include "llm/kernel/cuda/linear/tile.cuh"

enum { TOKEN_TILES = 8 }; /* scheduled together, so that they read w from L2 */

/* A warpgroup has TILES tiles of 64 rows. */
template <int GROUPS_, int NT_, int STAGES_, int CLUSTER_, int PER_SM_, int TILES_ = 1>
struct wide_shape {
    enum {
        GROUPS      = GROUPS_,
        NT          = NT_,
        STAGES      = STAGES_,
        CLUSTER     = fm_cluster_of(CLUSTER_),
        PER_SM      = PER_SM_,
        TILES       = TILES_,
        READERS     = 128 * GROUPS, /* threads */
        IS_DEEP     = GROUPS > 1,   /* registers are taken from the feeder's group */
        THREADS     = READERS + (IS_DEEP ? 128 : 32),
        ROWS        = 64 * GROUPS * TILES,
        SHARE       = NT / CLUSTER, /* tokens that a thread block multicasts to its cluster */
        W_BYTES     = ROWS * 128,
        HALF_BYTES  = NT * 128, /* 64 k of x */
        STAGE_BYTES = W_BYTES + 2 * HALF_BYTES,
        RING_BYTES  = STAGES * STAGE_BYTES,
        BYTES       = RING_BYTES + 2 * STAGES * (int)sizeof(fm_mbarrier),
    };
    static_assert(SHARE % 8 == 0, "a share of the tokens begins where the permutation does");
};

/* --- tasks ------------------------------------------------------------------- */

/* The walk of a thread block: which tile it has, and the step of 128 k. */
template <class S> struct wide_walk {
    int task, step, n_step;
    int row0, token0;
};

template <class S> FM_DEVICE int row_groups(const fm_cuda_linear_args &a)
{
    return (a.n + S::ROWS * S::CLUSTER - 1) / (S::ROWS * S::CLUSTER);
}

template <class S> FM_DEVICE int token_tiles(const fm_cuda_linear_args &a)
{
    return (a.m + S::NT - 1) / S::NT;
}

template <class S> FM_DEVICE int count_tasks(const fm_cuda_linear_args &a)
{
    return row_groups<S>(a) * token_tiles<S>(a);
}

/* Behind the end of k come zeros. */
FM_DEVICE int count_wide_steps(const fm_cuda_linear_args &a)
{
    return (a.k + LINEAR_K - 1) / LINEAR_K;
}

template <class S> FM_DEVICE void find_place(wide_walk<S> &w, const fm_cuda_linear_args &a)
{
    const int per_round = TOKEN_TILES * row_groups<S>(a);
    const int round = w.task / per_round, in = w.task - round * per_round;
    const int width = min((int)TOKEN_TILES, token_tiles<S>(a) - round * TOKEN_TILES);
    w.row0          = (in / width * S::CLUSTER + fm_cluster_rank()) * S::ROWS;
    w.token0        = (round * TOKEN_TILES + in % width) * S::NT;
}

template <class S> FM_DEVICE wide_walk<S> walk_begin(const fm_cuda_linear_args &a)
{
    wide_walk<S> w;
    w.task   = blockIdx.x / S::CLUSTER;
    w.step   = 0;
    w.n_step = count_wide_steps(a);
    find_place<S>(w, a);
    return w;
}

template <class S> FM_DEVICE void walk_to_next(wide_walk<S> &w, const fm_cuda_linear_args &a)
{
    w.step = 0;
    w.task += gridDim.x / S::CLUSTER;
    if (w.task < count_tasks<S>(a)) find_place<S>(w, a);
}

template <class S> FM_DEVICE void walk_on(wide_walk<S> &w, const fm_cuda_linear_args &a)
{
    if (++w.step == w.n_step) walk_to_next<S>(w, a);
}

template <class S> FM_DEVICE int count_own_steps(const fm_cuda_linear_args &a)
{
    const int first = blockIdx.x / S::CLUSTER, every = gridDim.x / S::CLUSTER;
    return (count_tasks<S>(a) - first + every - 1) / every * count_wide_steps(a);
}

/* --- the ring ---------------------------------------------------------------- */

template <class S> struct wide_ring {
    uint8_t     *bytes;
    fm_mbarrier *full, *empty; /* [STAGES] */
    int          slot, parity; /* the stage that comes next, and the phase of its barrier */
};

template <class S> FM_DEVICE wide_ring<S> ring_begin(uint8_t *bytes)
{
    wide_ring<S> r;
    r.bytes = bytes;
    r.full  = (fm_mbarrier *)(bytes + S::RING_BYTES);
    r.empty = r.full + S::STAGES;
    r.slot = r.parity = 0;
    if (threadIdx.x == 0) {
        for (int i = 0; i < S::STAGES; i++) {
            fm_mbarrier_init(r.full + i, 1);
            fm_mbarrier_init(r.empty + i, S::GROUPS * 4 * S::CLUSTER); /* every warp */
        }
        fm_cluster_show_barriers();
    }
    fm_cluster_sync();
    return r;
}

template <class S> FM_DEVICE void ring_on(wide_ring<S> &r)
{
    if (++r.slot < S::STAGES) return;
    r.slot = 0;
    r.parity ^= 1;
}

template <class S> FM_DEVICE uint8_t *stage_of(const wide_ring<S> &r)
{
    return r.bytes + r.slot * S::STAGE_BYTES;
}

/* Announces the whole stage. */
template <class S>
FM_DEVICE void bring_weights(const wide_ring<S> &r, const wide_walk<S> &at, const fm_tile_map *w)
{
    fm_mbarrier_expect(r.full + r.slot, S::STAGE_BYTES);
    fm_bulk_tile(stage_of<S>(r), w, at.step * LINEAR_K, at.row0, r.full + r.slot);
}

template <class S>
FM_DEVICE void bring_tokens(const wide_ring<S> &r, const wide_walk<S> &at, const fm_tile_map *x)
{
    const int first = fm_cluster_rank() * S::SHARE;
    uint8_t  *to    = stage_of<S>(r) + S::W_BYTES + first * 128;
#pragma unroll
    for (int half = 0; half < 2; half++)
        if (S::CLUSTER == 1)
            fm_bulk_tile(to + half * S::HALF_BYTES, x, at.step * X_ROW + half * 128,
                         at.token0 + first, r.full + r.slot);
        else
            fm_bulk_tile_to_all(to + half * S::HALF_BYTES, x, at.step * X_ROW + half * 128,
                                at.token0 + first, r.full + r.slot, S::CLUSTER);
}

/* One thread: w at once, x when it is there. */
template <class S>
FM_DEVICE void feed(wide_ring<S> ring, const fm_cuda_linear_args &a, const fm_tile_map *w,
                    const fm_tile_map *x)
{
    const int   n     = count_own_steps<S>(a);
    wide_walk<S> early = walk_begin<S>(a), at = early;
    wide_ring<S> first = ring;
    for (int i = 0; i < n && i < S::STAGES; i++) {
        bring_weights<S>(first, early, w);
        walk_on<S>(early, a);
        ring_on<S>(first);
    }
    fm_grid_wait();
    for (int i = 0; i < n; i++) {
        if (i >= S::STAGES) {
            fm_mbarrier_wait(ring.empty + ring.slot, ring.parity ^ 1);
            bring_weights<S>(ring, at, w);
        }
        bring_tokens<S>(ring, at, x);
        walk_on<S>(at, a);
        ring_on<S>(ring);
    }
}

#endif
