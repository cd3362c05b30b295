/* SPDX-License-Identifier: Apache-2.0 */
/* The tasks of a grouped product, and how their bytes come into shared memory.
 *
 *     task = ROWS rows of one expert's weights  x  one block of its tokens
 *
 *              weights [ROWS][128 bytes of k]    tokens [NT][the same k]
 *                 cp.async │ ring of STAGES           │ rows gathered by index
 *                          v                          v
 *                     stage 0 | stage 1 | ...     AHEAD of them under way
 *
 * The ring goes on from task to task: while the last steps of one are multiplied, the first bytes
 * of the next are in flight. */
#ifndef FM_LLM_KERNEL_CUDA_EXPERTS_RING_CUH
#define FM_LLM_KERNEL_CUDA_EXPERTS_RING_CUH

#include "llm/kernel/cuda/experts/experts.h"
#include "llm/kernel/cuda/ptx/fragment.cuh"
#include "llm/kernel/cuda/ptx/wgmma.cuh"

enum {
    K_BYTES    = 128, /* of a weight row in one stage */
    TASK_GROUP = 8,   /* token blocks that go round together */
};

/* What a product looks like to the kernel. */
typedef struct {
    const uint8_t *w;
    const float   *scale;
    const uint8_t *x;
    const int32_t *x_row;
    uint16_t      *y; /* [n_pair, n] bf16; SwiGLU: [n_pair, n/2] */
    const int32_t *block, *n_block;
    int            n_row, n, k; /* n_row: of x, where x_row does not pick them */
    int            ldx, ldy;   /* elements between rows */
    int            scale_row0; /* rows before w that share its first factors; a multiple of 16 */
    int            n_expert;
} tile_args;

/* Everything a shape implies.  A thread for each row of weights, so a warp has
 * two m16 tiles.  TOGETHER: a warpgroup multiplies 128 rows of BF16 weights; else each
 * warp for itself. */
template <int FP8_, int NT_, int ROWS_, int STAGES_, bool TOGETHER_ = false>
struct tile_shape {
    static constexpr bool TOGETHER = TOGETHER_;
    enum {
        FP8          = FP8_,
        NT           = NT_,
        OWN_NT       = NT,
        ROWS         = ROWS_,
        STAGES       = STAGES_,
        AHEAD        = STAGES - 1,
        THREADS      = ROWS,
        IN_ORDER     = NT == 8, /* few blocks share an expert's weights */
        M16          = 2,
        N8           = NT / 8,
        K            = FP8 ? K_BYTES : K_BYTES / 2,
        WEIGHT_BYTES = ROWS * K_BYTES,
        X_BYTES      = 2 * K, /* of a token row in one stage */
        X_CHUNKS     = X_BYTES / 16,
        X_STEP       = THREADS / X_CHUNKS, /* token rows copied at once */
        X_COPIES     = (NT + X_STEP - 1) / X_STEP,
        STAGE_BYTES  = WEIGHT_BYTES + NT * X_BYTES,
        BYTES        = STAGES * STAGE_BYTES,
    };
};

typedef struct {
    int expert, row0, pair0, n_pair;
    int part;              /* of PARTS */
    int shared0, n_shared; /* more pairs, of which each part has its rows only */
} tile_task;

/* The list is read from L2: before fm_grid_wait() L1 may remember another one. */
template <class S> FM_DEVICE int count_blocks(const tile_args &a)
{
    return a.block ? *(const volatile int32_t *)a.n_block : (a.n_row + S::NT - 1) / S::NT;
}

template <class S> FM_DEVICE int row_tiles(const tile_args &a)
{
    return (a.n + S::ROWS - 1) / S::ROWS;
}

/* Token block and first row of weights of task t.  Tasks go round by eight token
 * blocks at a time, so that blocks of one expert find its weights in L2.  Tasks in
 * order need not know the number of blocks. */
template <class S> FM_DEVICE int block_of_task(const tile_args &a, int t, int n_block, int &row0)
{
    const int tiles = row_tiles<S>(a), per_group = TASK_GROUP * tiles;
    const int group = t / per_group, in = t - group * per_group;
    if (S::IN_ORDER) {
        row0 = t % tiles * S::ROWS;
        return t / tiles;
    }
    const int width = min((int)TASK_GROUP, n_block - group * TASK_GROUP);
    row0            = in / width * S::ROWS;
    return group * TASK_GROUP + in % width;
}

template <class S> FM_DEVICE tile_task task_at(const tile_args &a, int t, int n_block)
{
    tile_task k = {};
    const int b = block_of_task<S>(a, t, n_block, k.row0);
    k.pair0     = b * S::NT;
    if (a.block) {
        const volatile int32_t *at = a.block + 3 * (int64_t)b;
        k.expert                   = at[0];
        k.pair0                    = at[1];
        k.n_pair                   = at[2];
    } else {
        k.n_pair = min((int)S::NT, a.n_row - k.pair0);
    }
    return k;
}

/* Where this thread's copies of a task begin. */
template <class S> struct tile_source {
    const uint8_t *w;
    int            n_w;                /* rows of w from there on */
    int            x_row[S::X_COPIES]; /* -1: none */
};

template <class S>
FM_DEVICE void source_begin(tile_source<S> &s, const tile_args &a, const tile_task &task)
{
    const int     tid   = threadIdx.x;
    const int64_t pitch = (int64_t)a.k * (S::FP8 ? 1 : 2);
    const int64_t row   = (int64_t)task.expert * a.n + task.row0 + tid / 8;
    s.w                 = a.w + row * pitch + tid % 8 * 16;
    s.n_w               = a.n - task.row0 - tid / 8;
#pragma unroll
    for (int i = 0; i < S::X_COPIES; i++) {
        const int r  = tid / S::X_CHUNKS + i * S::X_STEP;
        const int at = task.pair0 + r;
        s.x_row[i]   = r >= task.n_pair ? -1 : a.x_row ? a.x_row[at] : at;
    }
}

/* The place in the stage of a row of weights.  A warpgroup reads two tiles of 64
 * rows, of which a warp has 16 each: rows change places by sixteens, so that it
 * has the same 32 rows as a warp that multiplies for itself. */
template <class S> FM_DEVICE int weight_place(int row)
{
    if (!S::TOGETHER) return row;
    return row / 128 * 128 + row / 16 % 2 * 64 + row % 128 / 32 * 16 + row % 16;
}

/* The byte of a token's chunk in the stage. */
template <class S> FM_DEVICE int token_place(int r, int c)
{
    return S::FP8 ? fm__chunk_pair<S::X_BYTES>(r, c) : fm__chunk<S::X_BYTES>(r, c);
}

template <class S>
FM_DEVICE void copy_weights(uint8_t *stage, const tile_source<S> &s, const tile_args &a, int step)
{
    const int     tid   = threadIdx.x;
    const int64_t pitch = (int64_t)a.k * (S::FP8 ? 1 : 2);
    const bool    in_w  = step * K_BYTES + tid % 8 * 16 < pitch;
    const int     rows  = S::THREADS / 8;
#pragma unroll
    for (int i = 0; i < S::ROWS / rows; i++)
        fm_cp_async16(stage + fm__chunk<K_BYTES>(weight_place<S>(tid / 8 + rows * i), tid % 8),
                      s.w + rows * i * pitch + step * K_BYTES, in_w && rows * i < s.n_w);
}

template <class S>
FM_DEVICE void copy_tokens(uint8_t *stage, const tile_source<S> &s, const tile_args &a, int step)
{
    const int  tid = threadIdx.x;
    const int  c = tid % S::X_CHUNKS, at = step * S::X_BYTES + c * 16;
    const bool in_x = at < 2 * a.k;
#pragma unroll
    for (int i = 0; i < S::X_COPIES; i++) {
        const int r = tid / S::X_CHUNKS + i * S::X_STEP;
        if (S::NT % S::X_STEP && r >= S::NT) break;
        fm_cp_async16(stage + S::WEIGHT_BYTES + token_place<S>(r, c),
                      a.x + (int64_t)max(s.x_row[i], 0) * a.ldx * 2 + at, in_x && s.x_row[i] >= 0);
    }
}

/* The ring, and the walk of this thread block through its tasks: the filling
 * end runs AHEAD steps ahead of the product. */
template <class S> struct tile_ring {
    uint8_t       *bytes;
    int            n_block, n_task, n_step;
    int            task, step, fill; /* next to be loaded, and into which stage */
    int            read;             /* the stage that is multiplied next */
    tile_source<S> from;
};

template <class S>
FM_DEVICE void copy_next(tile_ring<S> &r, const tile_args &a, bool with_weights = true)
{
    if (r.task < r.n_task) {
        if (r.step == 0 && r.task != (int)blockIdx.x)
            source_begin<S>(r.from, a, task_at<S>(a, r.task, r.n_block));
        uint8_t *stage = r.bytes + r.fill * S::STAGE_BYTES;
        if (with_weights) copy_weights<S>(stage, r.from, a, r.step);
        copy_tokens<S>(stage, r.from, a, r.step);
        if (++r.step == r.n_step) {
            r.step = 0;
            r.task += gridDim.x;
        }
    }
    if (++r.fill == S::STAGES) r.fill = 0;
    fm_cp_async_commit();
}

FM_DEVICE void wait_for_predecessor()
{
    fm_grid_wait();
    fm_grid_release();
}

/* Gives the first task of the thread block.  Where tasks are in order, its place in
 * the list is asked for together with the list's length.  EARLY: only tokens come from
 * the kernel before, and the first weights are asked for while it still runs. */
template <class S, bool EARLY>
FM_DEVICE tile_task ring_begin(tile_ring<S> &r, const tile_args &a, uint8_t *bytes)
{
    tile_task first = {};
    int       early = 0;
    if (!EARLY) wait_for_predecessor();
    if (S::IN_ORDER) first = task_at<S>(a, blockIdx.x, 0);
    r.bytes   = bytes;
    r.n_block = count_blocks<S>(a);
    r.n_task  = r.n_block * row_tiles<S>(a);
    r.n_step  = (a.k + S::K - 1) / S::K;
    r.task    = blockIdx.x;
    r.step = r.fill = r.read = 0;
    if (r.task < r.n_task) {
        if (!S::IN_ORDER) first = task_at<S>(a, r.task, r.n_block);
        source_begin<S>(r.from, a, first);
        for (; EARLY && early < min((int)S::AHEAD, r.n_step); early++)
            copy_weights<S>(bytes + early * S::STAGE_BYTES, r.from, a, early);
    }
    if (EARLY) wait_for_predecessor();
    for (int i = 0; i < S::AHEAD; i++) copy_next<S>(r, a, i >= early);
    return first;
}

/* The stage that is multiplied next.  It has landed, and the one that copy_next()
 * fills is free: each thread waited for its own part of the product there. */
template <class S> FM_DEVICE const uint8_t *ring_next(tile_ring<S> &r)
{
    fm_cp_async_wait<S::AHEAD - 1>();
    if (S::TOGETHER) fm_tile_fence();
    __syncthreads();
    const uint8_t *stage = r.bytes + r.read * S::STAGE_BYTES;
    if (++r.read == S::STAGES) r.read = 0;
    return stage;
}

#endif
