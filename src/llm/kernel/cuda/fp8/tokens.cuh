/* SPDX-License-Identifier: Apache-2.0 */
/* The warpgroups that multiply, for many pairs: pairs are the 64-row operand, 128 rows of weights
 * its columns, twice.  Shared memory is read at 96 bytes a cycle for the products, and no scale
 * has to be read for every column: a lane has two pairs, and 128 columns share one scale of w
 * (SwiGLU: two).
 *
 *     two groups, 256 rows     more than 64 pairs: group g has pairs 64 g ... and all rows;
 *                              up to 64: both have them, and 128 rows each
 *     three groups, 128 rows   group g has pairs 64 g ..., or lets stages pass: an expert's
 *                              weights come from memory once where it has up to 192 pairs;
 *                              few pairs behind the last 64 are columns instead, of two tiles
 *                              of weights: 64 rows of pairs would be mostly multiplied in vain
 *
 * The sums are the bits of product.cuh: the same chain with its operands exchanged.  Blocks of
 * 128 rows of w must be those of its scales: scale_row0 is 0. */
#ifndef FM_LLM_KERNEL_CUDA_FP8_TOKENS_CUH
#define FM_LLM_KERNEL_CUDA_FP8_TOKENS_CUH

#include "llm/kernel/cuda/fp8/product.cuh"

enum { TOKEN_BOX = 64, TOKEN_COLUMNS = 128 };

/* What a warpgroup has of a task. */
typedef struct {
    int pair0, n_pair; /* of its box */
    int box;           /* 0, 1 */
    int column0;       /* of the task's rows of weights */
} token_part;

/* TILES columns blocks of 128 of one box. */
template <bool GATED, int TILES> struct token_sums {
    enum { PARTS = GATED ? 2 : 1 };
    float              sum[TILES][TOKEN_COLUMNS / 2];
    fp8_factors<PARTS> factor[TILES];
};

/* The lane's first pair of the box; the second is 8 on. */
FM_DEVICE int own_token() { return own_warp() * 16 + (threadIdx.x & 31) / 4; }

/* gate, up: products of the lane's x scales with w's; without SwiGLU they are the same. */
FM_DEVICE void add_columns(float (&sum)[TOKEN_COLUMNS / 2], const float (&part)[TOKEN_COLUMNS / 2],
                           float2 gate, float2 up)
{
#pragma unroll
    for (int j = 0; j < TOKEN_COLUMNS / 8; j++) {
        const float2 f = j % 4 < 2 ? gate : up;
        sum[4 * j]     = fmaf(part[4 * j], f.x, sum[4 * j]);
        sum[4 * j + 1] = fmaf(part[4 * j + 1], f.x, sum[4 * j + 1]);
        sum[4 * j + 2] = fmaf(part[4 * j + 2], f.y, sum[4 * j + 2]);
        sum[4 * j + 3] = fmaf(part[4 * j + 3], f.y, sum[4 * j + 3]);
    }
}

template <bool GATED, int TILES>
FM_DEVICE void sums_begin(token_sums<GATED, TILES> &c, const fm_cuda_fp8_args &a,
                          const fp8_task &task, const token_part &p, int n_step)
{
#pragma unroll
    for (int t = 0; t < TILES; t++) {
        const int row = (task.row0 + p.column0 + t * TOKEN_COLUMNS) / c.PARTS;
        factors_begin(c.factor[t], a, task.expert, row, n_step);
#pragma unroll
        for (int i = 0; i < TOKEN_COLUMNS / 2; i++) c.sum[t][i] = 0;
    }
}

template <class S, bool GATED, int TILES>
FM_DEVICE void multiply_tokens(token_sums<GATED, TILES> &c, const fp8_ring<S> &r,
                               const fm_cuda_fp8_args &a, const token_part &p, int step, int n_step)
{
    const uint8_t *stage = stage_of<S>(r);
    const fm_tile  x     = fm_tile_by_row(stage + S::W_BYTES + p.box * TOKEN_BOX * 128);
    const float   *own   = r.scale + r.slot * S::NT + p.box * TOKEN_BOX + own_token();
    const float2   by    = make_float2(own[0], own[8]);
#pragma unroll
    for (int t = 0; t < TILES; t++) {
        float         part[TOKEN_COLUMNS / 2];
        const fm_tile w = fm_tile_by_row(stage + (p.column0 + t * TOKEN_COLUMNS) * 128);
        start_part<TOKEN_COLUMNS>(part, x, w);
        factors_need(c.factor[t], a, step, n_step);
        const float gate = __shfl_sync(FM_WARP, c.factor[t].here[0], step % 32);
        const float up =
            GATED ? __shfl_sync(FM_WARP, c.factor[t].here[c.PARTS - 1], step % 32) : gate;
        fm_wgmma_wait<0>();
        fm_wgmma_hold(part);
        add_columns(c.sum[t], part, make_float2(by.x * gate, by.y * gate),
                    make_float2(by.x * up, by.y * up));
    }
}

/* --- results ------------------------------------------------------------------ */

/* A lane has two columns of the 8 from j on, and of the next 8. Adjacent lanes exchange halves:
 * then an even lane has four columns of the first 8, an odd one four of the second. */
FM_DEVICE float4 four_columns(float2 j, float2 next)
{
    const bool   odd  = threadIdx.x & 1;
    const float2 mine = odd ? next : j, other = odd ? j : next;
    const float  x = fm_shfl_xor(other.x, 1), y = fm_shfl_xor(other.y, 1);
    return odd ? make_float4(x, y, mine.x, mine.y) : make_float4(mine.x, mine.y, x, y);
}

FM_DEVICE void store_four(const fm_cuda_fp8_args &a, int64_t pair, int row, float4 v)
{
    if (row >= a.n) return;
    if (a.out == FM_CUDA_FP8_BF16)
        *(uint2 *)((uint16_t *)a.y + pair * a.ldy + row) =
            make_uint2(fm_bf16x2_of_f32(v.x, v.y), fm_bf16x2_of_f32(v.z, v.w));
    else
        *(float4 *)((float *)a.y + pair * a.ldy + row) = v;
}

FM_DEVICE void store_columns(const fm_cuda_fp8_args &a, const token_part &p, int row0,
                             const float (&d)[TOKEN_COLUMNS / 2])
{
    const int lane = threadIdx.x & 31, first = row0 + lane % 2 * 8 + (lane & 2) * 2;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int token = own_token() + 8 * half;
#pragma unroll
        for (int j = 0; j < TOKEN_COLUMNS / 8; j += 2) {
            const float *at = d + 4 * j + 2 * half;
            const float4 v  = four_columns(make_float2(at[0], at[1]), make_float2(at[4], at[5]));
            if (token < p.n_pair) store_four(a, p.pair0 + token, first + 8 * j, v);
        }
    }
}

/* Of each 32 columns, j = 0, 1 are gates and j = 2, 3 the same channels' ups. */
FM_DEVICE void store_gated_columns(const fm_cuda_fp8_args &a, const token_part &p, int row0,
                                   const float (&d)[TOKEN_COLUMNS / 2])
{
    const int lane = threadIdx.x & 31, first = row0 / 2 + lane % 2 * 8 + (lane & 2) * 2;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int token = own_token() + 8 * half;
#pragma unroll
        for (int j = 0; j < TOKEN_COLUMNS / 8; j += 4) {
            float2 y[2];
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const float *gate = d + 4 * (j + i) + 2 * half, *up = gate + 8;
                y[i] = make_float2(fm__gated(gate[0], up[0]), fm__gated(gate[1], up[1]));
            }
            const float4 v       = four_columns(y[0], y[1]);
            const int    channel = first + 4 * j;
            if (token < p.n_pair && channel < a.n / 2)
                *(uint2 *)((uint16_t *)a.y + (int64_t)(p.pair0 + token) * a.ldy + channel) =
                    make_uint2(fm_bf16x2_of_f32(v.x, v.y), fm_bf16x2_of_f32(v.z, v.w));
        }
    }
}

template <class S, bool GATED, int TILES>
FM_DEVICE void run_part(fp8_ring<S> &r, const fm_cuda_fp8_args &a, const fp8_task &task,
                        const token_part &p)
{
    const int                n_step = count_steps(a);
    token_sums<GATED, TILES> c;
    sums_begin<GATED, TILES>(c, a, task, p, n_step);
    for (int step = 0; step < n_step; step++, ring_on<S>(r)) {
        wait_for_stage<S>(r);
        multiply_tokens<S, GATED, TILES>(c, r, a, p, step, n_step);
        ring_release<S>(r, r.slot);
    }
#pragma unroll
    for (int t = 0; t < TILES; t++) {
        const int row0 = task.row0 + p.column0 + t * TOKEN_COLUMNS;
        if (GATED)
            store_gated_columns(a, p, row0, c.sum[t]);
        else
            store_columns(a, p, row0, c.sum[t]);
    }
}

template <class S> FM_DEVICE void let_pass(fp8_ring<S> &r, int n_step)
{
    for (int step = 0; step < n_step; step++, ring_on<S>(r)) {
        fm_mbarrier_wait(r.full + r.slot, r.parity);
        ring_release<S>(r, r.slot);
    }
}

/* The group's pairs as columns: the shape has two tiles of 64 rows of weights. */
template <class S> struct by_columns : S {
    static constexpr bool ALONE = true;
    enum { TILES = 2, NT = S::NT };
};

enum { FEW_COLUMNS = 32 };

template <class S, bool GATED>
FM_DEVICE void run_few(fp8_ring<S> &r, const fm_cuda_fp8_args &a, const fp8_task &task,
                       const token_part &p)
{
    using C = by_columns<S>;
    const fp8_task own  = {task.expert, task.row0, p.pair0, p.n_pair};
    fp8_ring<C>    ring = {r.bytes, r.scale, r.full, r.empty, r.slot, r.parity, p.box * TOKEN_BOX};
    if (p.n_pair <= 8)
        run_task<C, GATED, 8>(ring, a, own);
    else if (p.n_pair <= 16)
        run_task<C, GATED, 16>(ring, a, own);
    else
        run_task<C, GATED, FEW_COLUMNS>(ring, a, own);
    r.slot   = ring.slot;
    r.parity = ring.parity;
}

template <class S, bool GATED>
FM_DEVICE void run_task_by_token(fp8_ring<S> &r, const fm_cuda_fp8_args &a, const fp8_task &task)
{
    const int        g = own_group(), left = task.n_pair - g * TOKEN_BOX;
    const token_part box = {task.pair0 + g * TOKEN_BOX, min(left, (int)TOKEN_BOX), g, 0};
    if constexpr (S::TILES == 1) {
        if (left <= 0)
            let_pass<S>(r, count_steps(a));
        else if (left <= FEW_COLUMNS)
            run_few<S, GATED>(r, a, task, box);
        else
            run_part<S, GATED, 1>(r, a, task, box);
    } else if (task.n_pair > TOKEN_BOX)
        run_part<S, GATED, S::TILES>(r, a, task, box);
    else {
        const token_part half = {task.pair0, task.n_pair, 0, g * TOKEN_COLUMNS};
        run_part<S, GATED, 1>(r, a, task, half);
    }
}

template <class S, bool GATED>
FM_DEVICE void multiply_tasks_by_token(fp8_ring<S> r, const fm_cuda_fp8_args &a, int n_block)
{
    static_assert(S::NT == TOKEN_BOX * S::GROUPS && S::ROWS == TOKEN_COLUMNS * S::TILES,
                  "a box each");
    const int n_task = count_tasks<S>(a, n_block);
    for (task_walk walk = walk_begin<S>(); walk.first < n_task; walk_on(walk)) {
        if (walk_task(walk) >= n_task) continue;
        run_task_by_token<S, GATED>(r, a, task_at<S>(a, walk_task(walk), n_block));
    }
}

#endif
