/* SPDX-License-Identifier: Apache-2.0 */
/* Dense products of few rows of x: tile shapes, the ring of stages in shared memory, copies and
 * stores.
 *
 *     thread block = 16 * M16 rows of w  x  NT rows of x  x  all of k
 *
 *     ring of stages of BLOCKS blocks:    w [16 M16][128 k]   x [NT][128 k]
 *
 * With SwiGLU a tile of 16 rows is 8 of gate and the 8 of up for the same
 * channels: both sums of a channel end in the same lane.
 *
 * A small weight matrix is bound by latency: many thread blocks with little to
 * do each, all of it requested at once, and w requested before the kernel that
 * writes x has ended. */
#ifndef FM_LLM_KERNEL_CUDA_LINEAR_TILE_CUH
#define FM_LLM_KERNEL_CUDA_LINEAR_TILE_CUH

#include "llm/kernel/cuda/ptx/fragment.cuh"
#include "llm/kernel/cuda/linear/linear.h"

enum {
    LINEAR_THREADS = 128,
    LINEAR_K       = 128,
    X_ROW          = 2 * LINEAR_K,
    X_CHUNKS       = X_ROW / 16,
};

typedef enum { W_BF16, W_BF16_BY_K, W_E4M3, W_BF16_MMA } weight_kind;

/* Warp w has the tile of 16 rows w % M16; with E4M3 the other warps share that
 * tile's blocks of 128 k with it, with bf16 they only copy. */
template <weight_kind KIND_, int M16_, int NT_, int STAGES_, int THREADS_ = LINEAR_THREADS>
struct linear_shape {
    static constexpr weight_kind KIND = KIND_;
    enum {
        M16         = M16_,
        NT          = NT_,
        STAGES      = STAGES_,
        THREADS     = THREADS_,
        ROWS        = 16 * M16,
        N8          = NT / 8,
        SHARERS     = KIND == W_E4M3 || KIND == W_BF16_MMA ? THREADS / 32 / M16 : 1,
        BLOCKS      = KIND == W_E4M3 ? SHARERS : 1, /* of a stage */
        OWN         = (N8 + SHARERS - 1) / SHARERS, /* m16n8 sums of a warp, at most */
        W_WIDTH     = KIND == W_E4M3 ? 1 : 2,
        W_LINES     = KIND == W_BF16_BY_K ? LINEAR_K : ROWS, /* of a block, as it lies in memory */
        W_LINE      = (KIND == W_BF16_BY_K ? ROWS : LINEAR_K) * W_WIDTH,
        W_CHUNKS    = W_LINE / 16,
        W_PER_CHUNK = 16 / W_WIDTH,
        W_STEP      = THREADS / W_CHUNKS, /* lines copied at once */
        W_COPIES    = W_LINES / W_STEP,
        X_STEP      = THREADS / X_CHUNKS, /* tokens copied at once */
        X_COPIES    = NT / X_STEP,
        W_BYTES     = W_LINES * W_LINE,
        BLOCK_BYTES = W_BYTES + NT * X_ROW,
        STAGE_BYTES = BLOCKS * BLOCK_BYTES,
        RING_BYTES  = STAGES * STAGE_BYTES,
        PART_BYTES  = BLOCKS > 1 ? THREADS * N8 * 16 : 0, /* sums of one stage, by sharer */
        BYTES       = RING_BYTES + 2 * PART_BYTES,
    };
};

/* Where a thread block works. */
typedef struct {
    int row0, token0, batch;
} linear_place;

template <class S> FM_DEVICE linear_place place_of_block(int tile)
{
    const linear_place p = {tile * S::ROWS, (int)blockIdx.y * S::NT, (int)blockIdx.z};
    return p;
}

template <class S> FM_DEVICE linear_place place_of_block()
{
    return place_of_block<S>((int)blockIdx.x);
}

/* The warp's tile of rows, and its number among the warps that share the tile. */
template <class S> FM_DEVICE int warp_tile()
{
    return threadIdx.x / 32 % S::M16;
}

template <class S> FM_DEVICE int warp_sharer()
{
    return threadIdx.x / 32 / S::M16;
}

/* --- copies ------------------------------------------------------------------ */

/* Which row of w line `line` of all tiles is; in w, gate and up take turns of 16. */
FM_DEVICE int row_of_line(const fm_cuda_linear_args &a, int line)
{
    const int channel = line / 16 * 8 + line % 8;
    return a.swiglu ? channel / 16 * 32 + channel % 16 + (line & 8) * 2 : line;
}

/* Byte of chunk c of token r.  For wgmma, a block of x is two tiles of 64 k. */
template <class S> FM_DEVICE int x_place(int r, int c)
{
    if (S::KIND == W_E4M3) return S::W_BYTES + fm__chunk_pair<X_ROW>(r, c);
    return S::W_BYTES + c / 8 * S::NT * 128 + fm__chunk<128>(r, c % 8);
}

/* What this thread copies of every block: bytes from the beginning of w and x at
 * k = 0, places in the block, and which of its lines there are. */
template <class S> struct linear_source {
    const uint8_t *w, *x;
    int            w_at[S::W_COPIES], x_at[S::X_COPIES];
    uint32_t       w_in, x_in; /* a bit for each copy */
    int            w_to, x_to;
};

template <class S>
FM_DEVICE void source_w(linear_source<S> &s, const fm_cuda_linear_args &a, const linear_place &p)
{
    const int tid = threadIdx.x, c = tid % S::W_CHUNKS, el = c * S::W_PER_CHUNK;
    s.w    = (const uint8_t *)a.w + p.batch * a.w_stride * S::W_WIDTH;
    s.w_in = 0;
    s.w_to = fm__chunk<S::W_LINE>(tid / S::W_CHUNKS, c);
#pragma unroll
    for (int i = 0; i < S::W_COPIES; i++) {
        const int line = tid / S::W_CHUNKS + i * S::W_STEP;
        if (S::KIND == W_BF16_BY_K) {
            s.w_at[i] = (line * a.ldw + p.row0 + el) * S::W_WIDTH;
            s.w_in |= (uint32_t)(p.row0 + el < a.n) << i;
        } else {
            const int row0 = row_of_line(a, p.row0), row = row_of_line(a, p.row0 + line);
            s.w_at[i]      = ((row - row0) * a.ldw + el) * S::W_WIDTH;
            s.w_in |= (uint32_t)(p.row0 + line < a.n) << i;
        }
    }
    if (S::KIND != W_BF16_BY_K) s.w += (int64_t)row_of_line(a, p.row0) * a.ldw * S::W_WIDTH;
}

template <class S>
FM_DEVICE void source_x(linear_source<S> &s, const fm_cuda_linear_args &a, const linear_place &p)
{
    const int tid = threadIdx.x, c = tid % X_CHUNKS;
    s.x    = (const uint8_t *)(a.x + p.batch * a.x_stride + (int64_t)p.token0 * a.ldx);
    s.x_in = 0;
    s.x_to = x_place<S>(tid / X_CHUNKS, c);
#pragma unroll
    for (int i = 0; i < S::X_COPIES; i++) {
        const int token = tid / X_CHUNKS + i * S::X_STEP;
        s.x_at[i]       = (token * a.ldx + c * 8) * 2;
        s.x_in |= (uint32_t)(p.token0 + token < a.m) << i;
    }
}

template <class S>
FM_DEVICE void copy_w(uint8_t *block, const linear_source<S> &s, const fm_cuda_linear_args &a,
                      int at_k)
{
    const bool     by_k = S::KIND == W_BF16_BY_K;
    const int      tid = threadIdx.x, left = a.k - at_k;
    const uint8_t *w = s.w + (int64_t)at_k * (by_k ? a.ldw : 1) * S::W_WIDTH;
#pragma unroll
    for (int i = 0; i < S::W_COPIES; i++) {
        const int k = by_k ? tid / S::W_CHUNKS + i * S::W_STEP : tid % S::W_CHUNKS * S::W_PER_CHUNK;
        fm_cp_async16(block + s.w_to + i * S::W_STEP * S::W_LINE, w + s.w_at[i],
                      k < left && (s.w_in >> i & 1));
    }
}

template <class S>
FM_DEVICE void copy_x(uint8_t *block, const linear_source<S> &s, const fm_cuda_linear_args &a,
                      int at_k)
{
    const bool     in = at_k + (int)threadIdx.x % X_CHUNKS * 8 < a.k;
    const uint8_t *x  = s.x + 2 * at_k;
#pragma unroll
    for (int i = 0; i < S::X_COPIES; i++)
        fm_cp_async16(block + s.x_to + i * S::X_STEP * (S::KIND == W_E4M3 ? X_ROW : 128),
                      x + s.x_at[i], in && (s.x_in >> i & 1));
}

template <class S>
FM_DEVICE void copy_stage_w(uint8_t *stage, const linear_source<S> &s, const fm_cuda_linear_args &a,
                            int step)
{
#pragma unroll
    for (int b = 0; b < S::BLOCKS; b++)
        copy_w<S>(stage + b * S::BLOCK_BYTES, s, a, (step * S::BLOCKS + b) * LINEAR_K);
}

template <class S>
FM_DEVICE void copy_stage_x(uint8_t *stage, const linear_source<S> &s, const fm_cuda_linear_args &a,
                            int step)
{
#pragma unroll
    for (int b = 0; b < S::BLOCKS; b++)
        copy_x<S>(stage + b * S::BLOCK_BYTES, s, a, (step * S::BLOCKS + b) * LINEAR_K);
}

template <class S> FM_DEVICE int count_steps(const fm_cuda_linear_args &a)
{
    return (a.k + S::BLOCKS * LINEAR_K - 1) / (S::BLOCKS * LINEAR_K);
}

/* The first `ahead` stages: w at once, x when it is there. */
template <class S>
FM_DEVICE void copy_first(uint8_t *ring, linear_source<S> &s, const fm_cuda_linear_args &a,
                          const linear_place &p, int ahead)
{
    const int n_step = count_steps<S>(a);
    source_w<S>(s, a, p);
    for (int i = 0; i < ahead && i < n_step; i++)
        copy_stage_w<S>(ring + i * S::STAGE_BYTES, s, a, i);
    source_x<S>(s, a, p);
    fm_grid_wait();
    fm_grid_release();
    for (int i = 0; i < ahead; i++) {
        if (i < n_step) copy_stage_x<S>(ring + i * S::STAGE_BYTES, s, a, i);
        fm_cp_async_commit();
    }
}

template <class S>
FM_DEVICE void copy_next(uint8_t *ring, const linear_source<S> &s, const fm_cuda_linear_args &a,
                         int step)
{
    uint8_t *stage = ring + step % S::STAGES * S::STAGE_BYTES;
    if (step < count_steps<S>(a)) {
        copy_stage_w<S>(stage, s, a, step);
        copy_stage_x<S>(stage, s, a, step);
    }
    fm_cp_async_commit();
}

/* --- sums -------------------------------------------------------------------- */

/* d[4i..4i+3]: the m16n8 sums of the warp's tile and tokens 8j, j = sum_column(i). */
template <class S> struct linear_sums {
    float d[S::OWN * 4];
};

template <class S> FM_DEVICE void clear(linear_sums<S> &c)
{
#pragma unroll
    for (int i = 0; i < S::OWN * 4; i++) c.d[i] = 0;
}

template <class S> FM_DEVICE int sum_column(int i)
{
    return warp_sharer<S>() + i * S::SHARERS;
}

template <class S> FM_DEVICE bool has_sum(int i)
{
    return warp_sharer<S>() < S::SHARERS && sum_column<S>(i) < S::N8;
}

/* Two neighbouring outputs of one row of y. */
FM_DEVICE void store_pair(const fm_cuda_linear_args &a, int batch, int token, int row, float2 v)
{
    if (token >= a.m || row >= a.n) return;
    const int64_t at = batch * a.y_stride + (int64_t)token * a.ldy + row;
    if (a.y_bf16) {
        *(uint32_t *)((uint16_t *)a.y + at) = fm_bf16x2_of_f32(v.x, v.y);
    } else {
        float2 *y = (float2 *)((float *)a.y + at);
        *y        = a.accumulate ? make_float2(y->x + v.x, y->y + v.y) : v;
    }
}

template <class S>
FM_DEVICE void store_sums(const fm_cuda_linear_args &a, const linear_place &p,
                          const linear_sums<S> &c)
{
#pragma unroll
    for (int i = 0; i < S::OWN; i++) {
        float2 pair[2];
        if (!has_sum<S>(i)) continue;
        fm__pair_rows(pair, c.d + 4 * i);
        const int token = p.token0 + sum_column<S>(i) * 8 + fm__pair_token();
        const int row   = p.row0 + warp_tile<S>() * 16 + fm__pair_row();
        store_pair(a, p.batch, token, row, pair[0]);
        store_pair(a, p.batch, token, row + 8, pair[1]);
    }
}

/* d has gate in its first two, up in its last two: two tokens of one channel. */
template <class S>
FM_DEVICE void store_gated(const fm_cuda_linear_args &a, const linear_place &p,
                           const linear_sums<S> &c)
{
#pragma unroll
    for (int i = 0; i < S::OWN; i++) {
        const float *d    = c.d + 4 * i;
        const float  y[4] = {fm__gated(d[0], d[2]), fm__gated(d[1], d[3]), 0, 0};
        float2       pair[2];
        if (!has_sum<S>(i)) continue;
        fm__pair_rows(pair, y);
        const int token   = p.token0 + sum_column<S>(i) * 8 + fm__pair_token();
        const int channel = p.row0 / 2 + warp_tile<S>() * 8 + fm__pair_row();
        if (token < a.m && channel < a.n / 2)
            *(uint32_t *)((uint16_t *)a.y + (int64_t)token * a.ldy + channel) =
                fm_bf16x2_of_f32(pair[0].x, pair[0].y);
    }
}

template <class S>
FM_DEVICE void store(const fm_cuda_linear_args &a, const linear_place &p, const linear_sums<S> &c)
{
    if (a.swiglu)
        store_gated<S>(a, p, c);
    else
        store_sums<S>(a, p, c);
}

#endif
