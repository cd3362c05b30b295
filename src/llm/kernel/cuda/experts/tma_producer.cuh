/* SPDX-License-Identifier: Apache-2.0 */
/* A grouped product with a producer warpgroup, which loads by TMA, and consumer warpgroups:
 *
 *     weights [ROWS][128 bytes of k] by a tile map    tokens by the map, or row by row
 *            │ full            ring of STAGES stages             empty ^
 *            v                                                         │
 *     GROUPS warpgroups multiply, each at its own pace, and store
 *
 * This file is the producer.  The ring goes on from task to task. */
#ifndef FM_LLM_KERNEL_CUDA_EXPERTS_TMA_PRODUCER_CUH
#define FM_LLM_KERNEL_CUDA_EXPERTS_TMA_PRODUCER_CUH

#include "llm/kernel/cuda/ptx/cluster.cuh"
#include "llm/kernel/cuda/experts/ring.cuh"

/* REGISTERS: of a thread that multiplies, FEW of one that copies; they add up to what a
 * kernel begins with.  PARTS thread blocks, a cluster, have a part each of a task's tokens
 * and share its weights. */
template <int FP8_, int OWN_NT_, int ROWS_, int STAGES_, int GROUPS_, int REGISTERS_, int FEW_,
          int PARTS_ = 1>
struct wide_shape {
    static_assert(PARTS_ <= 2, "no more than one box is left over");
    enum {
        FP8          = FP8_,
        PARTS        = PARTS_,
        CLUSTER      = fm_cluster_of(PARTS),
        OWN_NT       = OWN_NT_, /* tokens of a thread block */
        NT           = OWN_NT * PARTS,
        ROWS         = ROWS_,
        STAGES       = STAGES_,
        GROUPS       = GROUPS_,
        REGISTERS    = REGISTERS_,
        FEW          = FEW_,
        THREADS      = 128 * (GROUPS + 1),
        IN_ORDER     = 0,
        M16          = 2,
        N8           = OWN_NT / 8,
        K            = FP8 ? K_BYTES : K_BYTES / 2,
        HALVES       = FP8 ? 2 : 1, /* tiles of 128 bytes that the k of a stage fill */
        BOX          = OWN_NT < 64 ? OWN_NT : 64, /* tokens that come together or stay away */
        BOX_BYTES    = BOX * 128,
        WEIGHT_BYTES = ROWS * K_BYTES,
        HALF_BYTES   = OWN_NT * 128,
        STAGE_BYTES  = WEIGHT_BYTES + HALVES * HALF_BYTES,
        SHARE        = ROWS / CLUSTER, /* rows of weights that a thread block multicasts */
        PIECE        = SHARE > 256 ? SHARE / 2 : SHARE, /* of them, by one copy */
        BYTES        = STAGES * STAGE_BYTES,
        X_CHUNKS     = 8 * HALVES, /* of a token in one stage */
        X_STEP       = 128 / X_CHUNKS,
        X_COPIES     = OWN_NT / X_STEP,
        ROWS_EACH    = (OWN_NT + 127) / 128,
    };
};

template <class S> struct wide_shared {
    fm_mbarrier full[S::STAGES], empty[S::STAGES];
    int         row[S::OWN_NT]; /* of x, for the task that is being loaded */
};

/* Where an end of the ring is. */
typedef struct {
    int at, parity;
} wide_place;

template <class S> FM_DEVICE void place_next(wide_place &p)
{
    if (++p.at < S::STAGES) return;
    p.at = 0;
    p.parity ^= 1;
}

/* Which warpgroup this is, in a way that tells the compiler that a warp agrees. */
FM_DEVICE int own_group() { return __shfl_sync(FM_WARP, (int)threadIdx.x / 128, 0); }

/* The thread block's way through rounds of tasks.  Blocks of an expert differ in size, its last
 * one most, and even strides could meet the same kind again and again: each round begins one
 * cluster further. */
typedef struct {
    int first, own; /* task of a round, and this thread block's from there on */
} task_walk;

template <class S> FM_DEVICE void walk_on(task_walk &w)
{
    w.first += gridDim.x;
    w.own = (w.own + S::PARTS) % gridDim.x;
}

/* A task as the list has it; behind the last one, a task without pairs.  Blocks of a cluster
 * have neighbouring numbers. */
template <class S>
FM_DEVICE tile_task listed_task(const tile_args &a, const task_walk &w, int n_block)
{
    const int t = w.first + w.own;
    tile_task k = {};
    if (t < n_block * row_tiles<S>(a) * S::PARTS) k = task_at<S>(a, t / S::PARTS, n_block);
    k.part = t % S::PARTS;
    return k;
}

/* What a thread block has of it: whole boxes of tokens are parted evenly, and of an odd one
 * each block has a part of the rows. */
template <class S> FM_DEVICE tile_task own_part(const tile_task &listed)
{
    tile_task k = listed;
    if (S::PARTS == 1) return k;
    const int boxes = (k.n_pair + S::BOX - 1) / S::BOX, each = boxes / S::PARTS * S::BOX;
    if (boxes % S::PARTS) {
        k.shared0  = k.pair0 + each * S::PARTS;
        k.n_shared = k.n_pair - each * S::PARTS;
    }
    k.pair0 += k.part * each;
    k.n_pair = min(k.n_pair - k.part * each, each);
    return k;
}

FM_DEVICE int count_tokens(const tile_task &k) { return k.n_pair + k.n_shared; }

/* The pair of token r of the thread block, those it shares being the last. */
FM_DEVICE int pair_at(const tile_task &k, int r)
{
    return r + (r < k.n_pair ? k.pair0 : k.shared0 - k.n_pair);
}

/* Of every task: weights that others of the cluster need come by, also without own tokens. */
template <class S> FM_DEVICE int count_steps(const tile_args &a) { return (a.k + S::K - 1) / S::K; }

/* A share of the weights, to all of the cluster. */
template <class S>
FM_DEVICE void ask_for_weights(uint8_t *stage, const fm_tile_map *w, int step, int row,
                               fm_mbarrier *full)
{
    const int first = S::CLUSTER == 1 ? 0 : fm_cluster_rank() * S::SHARE;
#pragma unroll
    for (int i = first; i < first + S::SHARE; i += S::PIECE)
        if (S::CLUSTER == 1)
            fm_bulk_tile(stage + i * K_BYTES, w, step * K_BYTES, row + i, full);
        else
            fm_bulk_tile_to_all(stage + i * K_BYTES, w, step * K_BYTES, row + i, full, S::CLUSTER);
}

/* One thread's part of a stage: the weights, and tokens that lie one after the other. */
template <class S, bool GATHER>
FM_DEVICE void ask_for_stage(uint8_t *stage, const tile_args &a, const tile_task &task, int step,
                             const fm_tile_map *w, const fm_tile_map *x, fm_mbarrier *full)
{
    const int boxes = GATHER ? 0 : (count_tokens(task) + S::BOX - 1) / S::BOX;
    fm_mbarrier_expect(full, S::WEIGHT_BYTES + boxes * S::HALVES * S::BOX_BYTES);
    ask_for_weights<S>(stage, w, step, task.expert * a.n + task.row0, full);
    for (int i = 0; i < boxes * S::HALVES; i++) {
        const int half = i % S::HALVES, box = i / S::HALVES;
        fm_bulk_tile(stage + S::WEIGHT_BYTES + half * S::HALF_BYTES + box * S::BOX_BYTES, x,
                     (step * S::HALVES + half) * 128, pair_at(task, box * S::BOX), full);
    }
}

/* Rows of x for the task's tokens, by 128 threads.  A box is filled up with the last of them;
 * -1: no box there. */
template <class S>
FM_DEVICE void rows_begin(int (&row)[S::ROWS_EACH], const tile_args &a, const tile_task &task)
{
    const int n = count_tokens(task);
#pragma unroll
    for (int i = 0; i < S::ROWS_EACH; i++) {
        const int r = threadIdx.x % 128 + 128 * i, at = pair_at(task, min(r, n - 1));
        row[i]      = -1;
        if (r / S::BOX * S::BOX < n) row[i] = a.x_row ? a.x_row[at] : at;
    }
}

template <class S> FM_DEVICE void rows_share(int *shared, const int (&row)[S::ROWS_EACH])
{
    fm_barrier(1, 128);
#pragma unroll
    for (int i = 0; i < S::ROWS_EACH; i++) {
        const int r = threadIdx.x % 128 + 128 * i;
        if (r < S::OWN_NT) shared[r] = row[i];
    }
    fm_barrier(1, 128);
}

/* Where the rows that a thread copies from begin, in 16 bytes; -1: none. */
template <class S>
FM_DEVICE void rows_take(int (&from)[S::X_COPIES], const int *shared, const tile_args &a)
{
#pragma unroll
    for (int i = 0; i < S::X_COPIES; i++) {
        const int row = shared[threadIdx.x % 128 / S::X_CHUNKS + i * S::X_STEP];
        from[i]       = row < 0 ? -1 : row * (a.ldx / 8);
    }
}

template <class S>
FM_DEVICE void gather_stage(uint8_t *stage, const int (&from)[S::X_COPIES], const tile_args &a,
                            int step, fm_mbarrier *full)
{
    const int      c = threadIdx.x % S::X_CHUNKS, at = step * S::X_CHUNKS + c;
    const int      first = threadIdx.x % 128 / S::X_CHUNKS;
    const bool     in_x  = at * 8 < a.k; /* else zeros: weights are, and 0 x NaN is not 0 */
    const uint8_t *x     = a.x + (in_x ? at * 16 : 0);
    uint8_t       *to    = stage + S::WEIGHT_BYTES + c / 8 * S::HALF_BYTES;
#pragma unroll
    for (int i = 0; i < S::X_COPIES; i++)
        if (from[i] >= 0)
            fm_cp_async16(to + fm__chunk<128>(first + i * S::X_STEP, c % 8),
                          x + (int64_t)from[i] * 16, in_x);
    fm_mbarrier_arrive_copied(full);
}

/* Prefetch: the next task is read before this one begins, its row numbers when half of this one is
 * loaded, so both are in registers when it ends. */
template <class S, bool GATHER>
FM_DEVICE void bring_tasks(uint8_t *bytes, wide_shared<S> &own, const tile_args &a, int n_block,
                           const fm_tile_map *w, const fm_tile_map *x)
{
    const bool asks   = threadIdx.x % 128 == 0;
    const int  n_step = count_steps<S>(a);
    wide_place p      = {0, 0};
    task_walk  walk   = {0, (int)blockIdx.x};
    tile_task  listed = listed_task<S>(a, walk, n_block);
    int        row[S::ROWS_EACH], from[S::X_COPIES];
    if (!GATHER && !asks) return;
    if (GATHER) rows_begin<S>(row, a, own_part<S>(listed));
    while (listed.n_pair) {
        const tile_task task = own_part<S>(listed);
        walk_on<S>(walk);
        listed = listed_task<S>(a, walk, n_block);
        if (GATHER) rows_share<S>(own.row, row);
        if (GATHER) rows_take<S>(from, own.row, a);
        for (int step = 0; step < n_step; step++, place_next<S>(p)) {
            uint8_t *stage = bytes + p.at * S::STAGE_BYTES;
            fm_mbarrier_wait(&own.empty[p.at], !p.parity);
            if (asks) ask_for_stage<S, GATHER>(stage, a, task, step, w, x, &own.full[p.at]);
            if (GATHER) gather_stage<S>(stage, from, a, step, &own.full[p.at]);
            if (GATHER && step == n_step / 2) rows_begin<S>(row, a, own_part<S>(listed));
        }
    }
}

/* Called by consumer warpgroups. Rows that threads copied by cp.async need a proxy fence before
 * wgmma reads them: the thread that issues wgmma makes it. */
template <bool GATHER> FM_DEVICE void wait_for_stage(fm_mbarrier *full, int parity)
{
    fm_mbarrier_wait(full, parity);
    if (GATHER) fm_tile_fence();
}

/* All lanes of a warp have consumed a stage: arrives at its `empty` barrier in every block of the
 * cluster. */
template <class S> FM_DEVICE void release(fm_mbarrier *empty)
{
    const int lane = threadIdx.x % 32;
    if (S::CLUSTER == 1 && lane == 0) fm_mbarrier_arrive(empty);
    if (S::CLUSTER > 1 && lane < S::CLUSTER) fm_mbarrier_arrive_at(empty, lane);
}

/* Of a ring with `stages`: arrivals that fill one, and that empty it. */
FM_DEVICE void barriers_begin(fm_mbarrier *full, fm_mbarrier *empty, int stages, int n_full,
                              int n_empty)
{
    if (threadIdx.x == 0) {
        for (int i = 0; i < stages; i++) {
            fm_mbarrier_init(&full[i], n_full);
            fm_mbarrier_init(&empty[i], n_empty);
        }
        fm_cluster_show_barriers();
    }
    fm_cluster_sync();
}

#endif
