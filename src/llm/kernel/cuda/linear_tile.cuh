/* SPDX-License-Identifier: Apache-2.0 */
/* The dense product for few rows of x.
 *
 *     thread block = 16 * M16 rows of w  x  NT rows of x  x  all of k
 *
 *     ring of stages of 128 k:   w [16 M16][128 k]   x [NT][128 k]
 *     warp i multiplies k 32i..32i+31 of every stage
 *     ((warp 0 + warp 1) + warp 2) + warp 3, through shared memory
 *
 * A small weight matrix is bound by latency: many thread blocks with little to
 * do each, all of it requested at once, and w requested before the kernel that
 * writes x has ended. */
#ifndef FM_LLM_KERNEL_CUDA_LINEAR_TILE_CUH
#define FM_LLM_KERNEL_CUDA_LINEAR_TILE_CUH

#include "llm/kernel/cuda/fragment.cuh"
#include "llm/kernel/cuda/linear.h"

enum { LINEAR_THREADS = 128, LINEAR_K = 128, X_ROW = 2 * LINEAR_K };

typedef enum { W_BF16, W_BF16_BY_K, W_E4M3 } weight_kind;

template <weight_kind KIND_, int M16_, int NT_, int STAGES_> struct linear_shape {
    static constexpr weight_kind KIND = KIND_;
    enum {
        M16         = M16_,
        NT          = NT_,
        STAGES      = STAGES_,
        ROWS        = 16 * M16,
        N8          = NT / 8,
        W_WIDTH     = KIND == W_E4M3 ? 1 : 2,
        W_LINES     = KIND == W_BF16_BY_K ? LINEAR_K : ROWS, /* of the tile, as it lies in memory */
        W_LINE      = (KIND == W_BF16_BY_K ? ROWS : LINEAR_K) * W_WIDTH,
        W_CHUNKS    = W_LINE / 16,
        W_BYTES     = W_LINES * W_LINE,
        STAGE_BYTES = W_BYTES + NT * X_ROW,
        RING_BYTES  = STAGES * STAGE_BYTES,
        SUM_BYTES   = 4 * M16 * N8 * 512,
        BYTES       = RING_BYTES > SUM_BYTES ? RING_BYTES : SUM_BYTES,
    };
};

/* Where a thread block works. */
typedef struct {
    int row0, token0, batch;
} linear_place;

template <class S>
FM_DEVICE void copy_w(uint8_t *stage, const fm_cuda_linear_args &a, const linear_place &p, int step)
{
    const bool     by_k = S::KIND == W_BF16_BY_K;
    const uint8_t *w    = (const uint8_t *)a.w + p.batch * a.w_stride * S::W_WIDTH;
    const int line0 = by_k ? step * LINEAR_K : p.row0, along0 = by_k ? p.row0 : step * LINEAR_K;
    const int lines = by_k ? a.k : a.n, along = by_k ? a.n : a.k;
#pragma unroll
    for (int i = 0; i < S::W_LINES * S::W_CHUNKS; i += LINEAR_THREADS) {
        const int  at = i + threadIdx.x, r = at / S::W_CHUNKS, c = at % S::W_CHUNKS;
        const int  el = along0 + c * (16 / S::W_WIDTH);
        const bool in = line0 + r < lines && el < along;
        fm_cp_async16(stage + fm__chunk<S::W_LINE>(r, c),
                      w + (in ? ((int64_t)(line0 + r) * a.ldw + el) * S::W_WIDTH : 0), in);
    }
}

template <class S>
FM_DEVICE void copy_x(uint8_t *stage, const fm_cuda_linear_args &a, const linear_place &p, int step)
{
    const uint16_t *x = a.x + p.batch * a.x_stride;
#pragma unroll
    for (int i = 0; i < S::NT * X_ROW / 16; i += LINEAR_THREADS) {
        const int  at = i + threadIdx.x, r = at / (X_ROW / 16), c = at % (X_ROW / 16);
        const int  el = step * LINEAR_K + c * 8;
        const bool in = p.token0 + r < a.m && el < a.k;
        uint8_t   *to = stage + S::W_BYTES +
                      (S::KIND == W_E4M3 ? fm__chunk_pair<X_ROW>(r, c) : fm__chunk<X_ROW>(r, c));
        fm_cp_async16(to, x + (in ? (int64_t)(p.token0 + r) * a.ldx + el : 0), in);
    }
}

template <class S> struct linear_sums {
    float d[S::M16][S::N8][4];
};

template <class S> FM_DEVICE void clear(linear_sums<S> &c)
{
#pragma unroll
    for (int i = 0; i < S::M16 * S::N8 * 4; i++) (&c.d[0][0][0])[i] = 0;
}

/* Weights [k][n]: rows row0..row0+15, k k0..k0+15, as one m16k16 operand. */
template <int ROW_BYTES>
FM_DEVICE void weights_by_k(uint32_t a[4], const uint8_t *tile, int row0, int k0)
{
    const int lane = threadIdx.x & 31;
    fm_ldmatrix_x4_trans(a, tile + fm__chunk<ROW_BYTES>(k0 + (lane & 7) + (lane >> 4) * 8,
                                                        row0 / 8 + (lane >> 3 & 1)));
}

/* This warp's 32 k of a stage, bf16. */
template <class S> FM_DEVICE void multiply_bf16(linear_sums<S> &c, const uint8_t *stage)
{
    const int warp = threadIdx.x / 32;
    uint32_t  b[S::N8][4];
#pragma unroll
    for (int j = 0; j < S::N8; j++)
        fm__tokens_bf16<X_ROW>(b[j], stage + S::W_BYTES, 8 * j, 4 * warp);
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
        for (int i = 0; i < S::M16; i++) {
            uint32_t w[4];
            if (S::KIND == W_BF16_BY_K)
                weights_by_k<S::W_LINE>(w, stage, 16 * i, 32 * warp + 16 * half);
            else
                fm__weights_bf16<S::W_LINE>(w, stage, 16 * i, 4 * warp + 2 * half);
#pragma unroll
            for (int j = 0; j < S::N8; j++) fm_mma_bf16_16816(c.d[i][j], w, b[j] + 2 * half);
        }
}

/* Of each m16 tile, for one stage: a block of 128 rows may end between tiles. */
template <class S> struct linear_factors {
    float of[S::M16];
};

/* The same for e4m3: a stage is the extent of a factor, so it is scaled at once. */
template <class S>
FM_DEVICE void multiply_e4m3(linear_sums<S> &c, const uint8_t *stage,
                             const linear_factors<S> &factor)
{
    const int warp = threadIdx.x / 32;
#pragma unroll
    for (int i = 0; i < S::M16; i++) {
        uint32_t w[2][4];
        fm__weights_e4m3<S::W_LINE>(w, stage, 16 * i, 2 * warp);
#pragma unroll
        for (int j = 0; j < S::N8; j++) {
            float part[4] = {0, 0, 0, 0};
#pragma unroll
            for (int half = 0; half < 2; half++) {
                uint32_t b[2];
                fm__tokens_e4m3<X_ROW>(b, stage + S::W_BYTES, 8 * j, 2 * warp + half);
                fm_mma_bf16_16816(part, w[half], b);
            }
#pragma unroll
            for (int e = 0; e < 4; e++)
                c.d[i][j][e] = fmaf(part[e], factor.of[i], c.d[i][j][e]);
        }
    }
}

/* The four warps' sums of fragment f, in the order of the warps. */
template <class S> FM_DEVICE void add_warps(float d[4], const float4 *part, int f)
{
    const int lane = threadIdx.x & 31;
    float4    sum  = part[f * 32 + lane];
#pragma unroll
    for (int warp = 1; warp < 4; warp++) {
        const float4 p = part[(warp * S::M16 * S::N8 + f) * 32 + lane];
        sum            = make_float4(sum.x + p.x, sum.y + p.y, sum.z + p.z, sum.w + p.w);
    }
    d[0] = sum.x;
    d[1] = sum.y;
    d[2] = sum.z;
    d[3] = sum.w;
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
FM_DEVICE void store_sums(const fm_cuda_linear_args &a, const linear_place &p, const float4 *part)
{
    for (int f = threadIdx.x / 32; f < S::M16 * S::N8; f += 4) {
        float  d[4];
        float2 pair[2];
        add_warps<S>(d, part, f);
        fm__pair_rows(pair, d);
        const int token = p.token0 + f % S::N8 * 8 + fm__pair_token();
        const int row   = p.row0 + f / S::N8 * 16 + fm__pair_row();
        store_pair(a, p.batch, token, row, pair[0]);
        store_pair(a, p.batch, token, row + 8, pair[1]);
    }
}

/* Gate and up are neighbouring fragments. */
template <class S>
FM_DEVICE void store_swiglu(const fm_cuda_linear_args &a, const linear_place &p, const float4 *part)
{
    for (int f = threadIdx.x / 32; f < S::M16 / 2 * S::N8; f += 4) {
        const int i = f / S::N8 * 2, j = f % S::N8;
        float     gate[4], up[4];
        float2    pair[2];
        add_warps<S>(gate, part, i * S::N8 + j);
        add_warps<S>(up, part, (i + 1) * S::N8 + j);
#pragma unroll
        for (int e = 0; e < 4; e++) gate[e] = fm__gated(gate[e], up[e]);
        fm__pair_rows(pair, gate);
        const int token   = p.token0 + 8 * j + fm__pair_token();
        const int channel = (p.row0 + 16 * i) / 2 + fm__pair_row();
        uint16_t *y       = (uint16_t *)a.y + (int64_t)token * a.ldy + channel;
        if (token < a.m && channel < a.n / 2) {
            *(uint32_t *)y       = fm_bf16x2_of_f32(pair[0].x, pair[0].y);
            *(uint32_t *)(y + 8) = fm_bf16x2_of_f32(pair[1].x, pair[1].y);
        }
    }
}

template <class S>
FM_DEVICE void store(const fm_cuda_linear_args &a, const linear_place &p, const linear_sums<S> &c,
                     float4 *part)
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x & 31;
#pragma unroll
    for (int f = 0; f < S::M16 * S::N8; f++) {
        const float *d = c.d[f / S::N8][f % S::N8];

        part[(warp * S::M16 * S::N8 + f) * 32 + lane] = make_float4(d[0], d[1], d[2], d[3]);
    }
    __syncthreads();
    if (S::M16 > 1 && a.swiglu)
        store_swiglu<S>(a, p, part);
    else
        store_sums<S>(a, p, part);
}

/* Gate and up have their own factors, by turns. */
template <class S>
FM_DEVICE void factors_at(linear_factors<S> &f, const fm_cuda_linear_args &a, const linear_place &p,
                          int step, int n_step)
{
    if (S::KIND != W_E4M3 || step >= n_step) return;
    const int parts = a.swiglu ? 2 : 1, n = a.n / parts;
    const int deep = (a.scale_row0 + n + 127) / 128;
#pragma unroll
    for (int i = 0; i < S::M16; i++) {
        const int row = min(p.row0 / parts + i / parts * 16, n - 1);
        const int at  = i % parts * deep + (a.scale_row0 + row) / 128;
        f.of[i]       = a.scale[(int64_t)at * n_step + step];
    }
}

template <class S> FM_KERNEL(LINEAR_THREADS, 2) linear_tiles(const fm_cuda_linear_args a)
{
    FM_SHARED_BYTES(ring);
    const int          n_step = (a.k + LINEAR_K - 1) / LINEAR_K;
    const linear_place p = {(int)blockIdx.x * S::ROWS, (int)blockIdx.y * S::NT, (int)blockIdx.z};

    for (int s = 0; s < S::STAGES - 1 && s < n_step; s++)
        copy_w<S>(ring + s * S::STAGE_BYTES, a, p, s);
    fm_grid_wait();
    fm_grid_release();
    for (int s = 0; s < S::STAGES - 1; s++) {
        if (s < n_step) copy_x<S>(ring + s * S::STAGE_BYTES, a, p, s);
        fm_cp_async_commit();
    }

    linear_sums<S> c;
    clear<S>(c);
    linear_factors<S> factor;
    factors_at<S>(factor, a, p, 0, n_step);
    int slot = 0, free = S::STAGES - 1;
    for (int step = 0; step < n_step; step++) {
        fm_cp_async_wait<S::STAGES - 2>();
        __syncthreads(); /* this stage has landed, and the one before it is free */
        if (step + S::STAGES - 1 < n_step) {
            copy_w<S>(ring + free * S::STAGE_BYTES, a, p, step + S::STAGES - 1);
            copy_x<S>(ring + free * S::STAGE_BYTES, a, p, step + S::STAGES - 1);
        }
        fm_cp_async_commit();
        const linear_factors<S> now = factor;
        factors_at<S>(factor, a, p, step + 1, n_step);
        if (S::KIND == W_E4M3)
            multiply_e4m3<S>(c, ring + slot * S::STAGE_BYTES, now);
        else
            multiply_bf16<S>(c, ring + slot * S::STAGE_BYTES);
        if (++slot == S::STAGES) slot = 0;
        if (++free == S::STAGES) free = 0;
    }
    __syncthreads(); /* the ring becomes the place where warps meet */
    store<S>(a, p, c, (float4 *)ring);
}

template <class S> struct linear_kernel {
    static cudaError_t init() { return fm_allow_shared(linear_tiles<S>, S::BYTES); }
    static dim3        grid_of(const fm_cuda_linear_args &a)
    {
        return dim3((unsigned)(a.n + S::ROWS - 1) / S::ROWS, (unsigned)(a.m + S::NT - 1) / S::NT,
                    (unsigned)a.n_batch);
    }
    static int64_t blocks(const fm_cuda_linear_args &a)
    {
        const dim3 g = grid_of(a);
        return (int64_t)g.x * g.y * g.z;
    }
    static void launch(const fm_cuda_linear_args &a, fm_stream stream)
    {
        const dim3 grid = grid_of(a);
        FM_LAUNCH_EARLY(linear_tiles<S>, grid, LINEAR_THREADS, S::BYTES, stream, a);
    }
};

#endif
