/* SPDX-License-Identifier: Apache-2.0 */
/* The grouped product behind both phases of the experts, and behind dense
 * products of many rows with E4M3 weights (one expert that takes all rows).
 *
 *     task = 128 rows of one expert's weights  x  one block of its tokens
 *
 *              weights [128][128 bytes of k]     tokens [NT][the same k]
 *                 cp.async │ ring of STAGES           │ rows gathered by index
 *                          v                          v
 *     4 warps: ldmatrix, mma m16n8k16 (weights m16, tokens n8), k ascending
 *                          v
 *              SwiGLU or nothing, two rows per store
 *
 * Thread blocks are persistent and the ring does not end with a task: while the
 * last steps of one are multiplied, the first bytes of the next are on their
 * way.  Tasks go round by eight token blocks at a time, so that blocks of one
 * expert meet its weights in L2.
 *
 * A product of E4M3 weights is summed for 128 k, the extent of a factor, then
 * scaled and added. */
#ifndef FM_LLM_KERNEL_CUDA_EXPERTS_TILE_CUH
#define FM_LLM_KERNEL_CUDA_EXPERTS_TILE_CUH

#include "llm/kernel/cuda/experts.h"
#include "llm/kernel/cuda/fragment.cuh"

enum {
    TILE_ROWS    = 128,
    TILE_THREADS = 128,
    K_BYTES      = 128, /* of a weight row in one stage */
    WEIGHT_BYTES = TILE_ROWS * K_BYTES,
    TASK_GROUP   = 8, /* token blocks that go round together */
};

typedef enum { OUT_F32, OUT_BF16, OUT_SWIGLU } tile_out;

/* What a product looks like to the kernel. */
typedef struct {
    const uint8_t *w;
    const float   *scale;
    const uint8_t *x;
    const int32_t *x_row;
    void          *y; /* [n_pair, n] f32 or bf16; SwiGLU: [n_pair, n/2] bf16 */
    const int32_t *block, *n_block;
    int            n_row, n, k;
    int            ldx, ldy;   /* elements between rows */
    int            accumulate; /* OUT_F32: y += */
    int            scale_row0; /* rows before w that share its first factors; a multiple of 16 */
} tile_args;

/* Everything a shape implies.  M16: m16 tiles of a warp, 2 or 4; with 4, two
 * warps share the rows and two the tokens. */
template <int FP8_, int NT_, int M16_, int STAGES_> struct tile_shape {
    enum {
        FP8         = FP8_,
        NT          = NT_,
        M16         = M16_,
        STAGES      = STAGES_,
        K           = FP8 ? K_BYTES : K_BYTES / 2,
        ROW_WARPS   = TILE_ROWS / 16 / M16,
        WARP_NT     = NT * ROW_WARPS / 4,
        N8          = WARP_NT / 8,
        X_BYTES     = 2 * K, /* of a token row in one stage */
        X_CHUNKS    = X_BYTES / 16,
        X_STEP      = TILE_THREADS / X_CHUNKS, /* token rows copied at once */
        X_COPIES    = (NT + X_STEP - 1) / X_STEP,
        STAGE_BYTES = WEIGHT_BYTES + NT * X_BYTES,
        BYTES       = STAGES * STAGE_BYTES,
    };
};

typedef struct {
    int expert, row0, pair0, n_pair;
} tile_task;

template <class S> FM_DEVICE int count_blocks(const tile_args &a)
{
    return a.block ? *a.n_block : (a.n_row + S::NT - 1) / S::NT;
}

template <class S> FM_DEVICE tile_task task_at(const tile_args &a, int t, int n_block)
{
    const int row_tiles = (a.n + TILE_ROWS - 1) / TILE_ROWS;
    const int group = t / (TASK_GROUP * row_tiles), in = t - group * TASK_GROUP * row_tiles;
    const int width = min((int)TASK_GROUP, n_block - group * TASK_GROUP);
    const int b     = group * TASK_GROUP + in % width;
    tile_task k     = {0, in / width * TILE_ROWS, b * S::NT, 0};
    if (a.block) {
        k.expert = a.block[3 * b];
        k.pair0  = a.block[3 * b + 1];
        k.n_pair = a.block[3 * b + 2];
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

template <class S>
FM_DEVICE void copy_stage(uint8_t *stage, const tile_source<S> &s, const tile_args &a, int step)
{
    const int     tid   = threadIdx.x;
    const int64_t pitch = (int64_t)a.k * (S::FP8 ? 1 : 2);
    const bool    in_w  = step * K_BYTES + tid % 8 * 16 < pitch;
#pragma unroll
    for (int i = 0; i < TILE_ROWS / 16; i++)
        fm_cp_async16(stage + fm__chunk<K_BYTES>(tid / 8 + 16 * i, tid % 8),
                      s.w + 16 * i * pitch + step * K_BYTES, in_w && 16 * i < s.n_w);

    const int  c = tid % S::X_CHUNKS, at = step * S::X_BYTES + c * 16;
    const bool in_x = at < 2 * a.k;
#pragma unroll
    for (int i = 0; i < S::X_COPIES; i++) {
        const int r = tid / S::X_CHUNKS + i * S::X_STEP;
        if (S::NT % S::X_STEP && r >= S::NT) break;
        uint8_t *to = stage + WEIGHT_BYTES +
                      (S::FP8 ? fm__chunk_pair<S::X_BYTES>(r, c) : fm__chunk<S::X_BYTES>(r, c));
        fm_cp_async16(to, a.x + (int64_t)max(s.x_row[i], 0) * a.ldx * 2 + at,
                      in_x && s.x_row[i] >= 0);
    }
}

/* The ring, and the walk of this thread block through its tasks: the filling
 * end runs STAGES - 1 steps ahead of the product. */
template <class S> struct tile_ring {
    uint8_t       *bytes;
    int            n_block, n_task, n_step;
    int            task, step, fill; /* what is asked for next, and into which stage */
    int            read;             /* the stage that is multiplied next */
    tile_source<S> from;
};

template <class S> FM_DEVICE void copy_next(tile_ring<S> &r, const tile_args &a)
{
    if (r.task < r.n_task) {
        if (r.step == 0) source_begin<S>(r.from, a, task_at<S>(a, r.task, r.n_block));
        copy_stage<S>(r.bytes + r.fill * S::STAGE_BYTES, r.from, a, r.step);
        if (++r.step == r.n_step) {
            r.step = 0;
            r.task += gridDim.x;
        }
    }
    if (++r.fill == S::STAGES) r.fill = 0;
    fm_cp_async_commit();
}

template <class S> FM_DEVICE void ring_begin(tile_ring<S> &r, const tile_args &a, uint8_t *bytes)
{
    r.bytes   = bytes;
    r.n_block = count_blocks<S>(a);
    r.n_task  = r.n_block * ((a.n + TILE_ROWS - 1) / TILE_ROWS);
    r.n_step  = (a.k + S::K - 1) / S::K;
    r.task    = blockIdx.x;
    r.step = r.fill = r.read = 0;
    for (int i = 0; i < S::STAGES - 1; i++) copy_next<S>(r, a);
}

template <class S> struct tile_sums {
    float d[S::M16][S::N8][4];
};

template <class S> FM_DEVICE void clear(tile_sums<S> &c)
{
#pragma unroll
    for (int i = 0; i < S::M16 * S::N8 * 4; i++) (&c.d[0][0][0])[i] = 0;
}

template <class S> FM_DEVICE int warp_row()
{
    return threadIdx.x / 32 % S::ROW_WARPS * 16 * S::M16;
}

template <class S> FM_DEVICE int warp_token()
{
    return threadIdx.x / 32 / S::ROW_WARPS * S::WARP_NT;
}

template <class S> FM_DEVICE void multiply_bf16(tile_sums<S> &c, const uint8_t *stage)
{
#pragma unroll
    for (int k32 = 0; k32 < S::K / 32; k32++) {
        uint32_t b[S::N8][4];
#pragma unroll
        for (int j = 0; j < S::N8; j++)
            fm__tokens_bf16<S::X_BYTES>(b[j], stage + WEIGHT_BYTES, warp_token<S>() + 8 * j,
                                        4 * k32);
#pragma unroll
        for (int half = 0; half < 2; half++)
#pragma unroll
            for (int i = 0; i < S::M16; i++) {
                uint32_t w[4];
                fm__weights_bf16<K_BYTES>(w, stage, warp_row<S>() + 16 * i, 4 * k32 + 2 * half);
#pragma unroll
                for (int j = 0; j < S::N8; j++) fm_mma_bf16_16816(c.d[i][j], w, b[j] + 2 * half);
            }
    }
}

template <class S> FM_DEVICE void multiply_e4m3(tile_sums<S> &c, const uint8_t *stage)
{
#pragma unroll
    for (int k32 = 0; k32 < S::K / 32; k32++) {
        uint32_t w[S::M16][2][4];
#pragma unroll
        for (int i = 0; i < S::M16; i++)
            fm__weights_e4m3<K_BYTES>(w[i], stage, warp_row<S>() + 16 * i, 2 * k32);
#pragma unroll
        for (int half = 0; half < 2; half++)
#pragma unroll
            for (int j = 0; j < S::N8; j++) {
                uint32_t b[2];
                fm__tokens_e4m3<S::X_BYTES>(b, stage + WEIGHT_BYTES, warp_token<S>() + 8 * j,
                                            2 * k32 + half);
#pragma unroll
                for (int i = 0; i < S::M16; i++) fm_mma_bf16_16816(c.d[i][j], w[i][half], b);
            }
    }
}

/* The factors of one step, of each m16 tile: W1 and W3 alternate, and a block of
 * 128 rows may end between tiles. */
template <class S> struct tile_factors {
    float of[S::M16];
};

template <class S, tile_out OUT>
FM_DEVICE void factors(tile_factors<S> &f, const tile_args &a, const tile_task &task, int step,
                       int n_step)
{
    if (!S::FP8) return;
    const int parts = OUT == OUT_SWIGLU ? 2 : 1, n = a.n / parts;
    const int deep = (a.scale_row0 + n + 127) / 128;
#pragma unroll
    for (int i = 0; i < S::M16; i++) {
        const int     row = min((task.row0 + warp_row<S>()) / parts + i / parts * 16, n - 1);
        const int64_t at  = ((int64_t)task.expert * parts + i % parts) * deep +
                           (a.scale_row0 + row) / 128;
        f.of[i] = a.scale[at * n_step + step];
    }
}

template <class S>
FM_DEVICE void add_scaled(tile_sums<S> &c, const tile_sums<S> &part, const tile_factors<S> &f)
{
#pragma unroll
    for (int i = 0; i < S::M16; i++)
#pragma unroll
        for (int j = 0; j < S::N8 * 4; j++)
            (&c.d[i][0][0])[j] = fmaf((&part.d[i][0][0])[j], f.of[i], (&c.d[i][0][0])[j]);
}

/* Two neighbouring outputs of one pair. */
template <tile_out OUT>
FM_DEVICE void store_pair(const tile_args &a, int64_t pair, int row, float2 v)
{
    if (row >= a.n) return;
    if (OUT == OUT_BF16) {
        *(uint32_t *)((uint16_t *)a.y + pair * a.ldy + row) = fm_bf16x2_of_f32(v.x, v.y);
    } else {
        float2 *y = (float2 *)((float *)a.y + pair * a.ldy + row);
        *y        = a.accumulate ? make_float2(y->x + v.x, y->y + v.y) : v;
    }
}

template <class S, tile_out OUT>
FM_DEVICE void store_sums(const tile_args &a, const tile_task &task, const tile_sums<S> &c)
{
#pragma unroll
    for (int i = 0; i < S::M16; i++)
#pragma unroll
        for (int j = 0; j < S::N8; j++) {
            float2 pair[2];
            fm__pair_rows(pair, c.d[i][j]);
            const int token = warp_token<S>() + 8 * j + fm__pair_token();
            const int row   = task.row0 + warp_row<S>() + 16 * i + fm__pair_row();
            if (token < task.n_pair) {
                store_pair<OUT>(a, task.pair0 + token, row, pair[0]);
                store_pair<OUT>(a, task.pair0 + token, row + 8, pair[1]);
            }
        }
}

template <class S>
FM_DEVICE void store_swiglu(const tile_args &a, const tile_task &task, const tile_sums<S> &c)
{
#pragma unroll
    for (int i = 0; i < S::M16; i += 2)
#pragma unroll
        for (int j = 0; j < S::N8; j++) {
            float  m[4];
            float2 pair[2];
#pragma unroll
            for (int e = 0; e < 4; e++) m[e] = fm__gated(c.d[i][j][e], c.d[i + 1][j][e]);
            fm__pair_rows(pair, m);
            const int token   = warp_token<S>() + 8 * j + fm__pair_token();
            const int channel = (task.row0 + warp_row<S>() + 16 * i) / 2 + fm__pair_row();
            uint16_t *y       = (uint16_t *)a.y + (int64_t)(task.pair0 + token) * a.ldy + channel;
            if (token < task.n_pair && channel < a.n / 2) {
                *(uint32_t *)y       = fm_bf16x2_of_f32(pair[0].x, pair[0].y);
                *(uint32_t *)(y + 8) = fm_bf16x2_of_f32(pair[1].x, pair[1].y);
            }
        }
}

/* All steps of one task; the ring's other end stays ahead. */
template <class S, tile_out OUT>
FM_DEVICE void multiply_task(tile_sums<S> &c, tile_ring<S> &ring, const tile_args &a,
                             const tile_task &task)
{
    tile_factors<S> next;
    factors<S, OUT>(next, a, task, 0, ring.n_step);
    for (int step = 0; step < ring.n_step; step++) {
        fm_cp_async_wait<S::STAGES - 2>();
        __syncthreads(); /* this stage has landed, and the one before it is free */
        copy_next<S>(ring, a);
        const uint8_t *stage = ring.bytes + ring.read * S::STAGE_BYTES;
        if (S::FP8) {
            const tile_factors<S> now = next;
            if (step + 1 < ring.n_step) factors<S, OUT>(next, a, task, step + 1, ring.n_step);
            tile_sums<S> part;
            clear<S>(part);
            multiply_e4m3<S>(part, stage);
            add_scaled<S>(c, part, now);
        } else if (warp_token<S>() < task.n_pair) { /* half a tile may be empty */
            multiply_bf16<S>(c, stage);
        }
        if (++ring.read == S::STAGES) ring.read = 0;
    }
}

template <class S, tile_out OUT, int PER_SM>
FM_KERNEL(TILE_THREADS, PER_SM)
grouped_tiles(const tile_args a)
{
    FM_SHARED_BYTES(bytes);
    tile_ring<S> ring;
    fm_grid_wait();
    fm_grid_release();
    ring_begin<S>(ring, a, bytes);
    for (int t = blockIdx.x; t < ring.n_task; t += gridDim.x) {
        const tile_task task = task_at<S>(a, t, ring.n_block);
        tile_sums<S>    c;
        clear<S>(c);
        multiply_task<S, OUT>(c, ring, a, task);
        if (OUT == OUT_SWIGLU)
            store_swiglu<S>(a, task, c);
        else
            store_sums<S, OUT>(a, task, c);
    }
}

/* One kernel with the blocks of a multiprocessor that its registers and its
 * ring allow. */
template <class S, tile_out OUT, int PER_SM> struct tile_kernel {
    static cudaError_t init() { return fm_allow_shared(grouped_tiles<S, OUT, PER_SM>, S::BYTES); }
    static void        launch(const tile_args &a, int max_block, int n_sm, fm_stream stream)
    {
        const int     row_tiles = (a.n + TILE_ROWS - 1) / TILE_ROWS;
        const int64_t tasks     = (int64_t)row_tiles * max_block;
        const int     resident  = n_sm * PER_SM;
        const int     grid      = tasks < resident ? (int)tasks : resident;
        FM_LAUNCH_EARLY((grouped_tiles<S, OUT, PER_SM>), grid, TILE_THREADS, S::BYTES, stream, a);
    }
};

#endif
