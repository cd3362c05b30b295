/* SPDX-License-Identifier: Apache-2.0 */
/* The grouped product for many tokens of an expert: tokens are the 64-row operand
 * of a warpgroup, weights its N columns, so that a stage's bytes are read from
 * shared memory as seldom as the registers for the sums allow.
 *
 *     ROWS of weights x 64 tokens for each of GROUPS warpgroups, or a part of the rows
 *     where a box of tokens is shared
 *
 * A warpgroup without tokens lets stages pass.
 *
 * A lane has two tokens and pairs of neighbouring rows of weights, gate and up of
 * a channel among them: d[4j..4j+1] are rows 8j + 2(lane%4) and the next of token
 * lane/4, d[4j+2..] of token lane/4 + 8.  The sums are the bits of the other
 * shapes: the same chain, with the factors of each product changed about. */
#ifndef FM_LLM_KERNEL_CUDA_EXPERTS_WIDE_CUH
#define FM_LLM_KERNEL_CUDA_EXPERTS_WIDE_CUH

#include "llm/kernel/cuda/experts/tma_producer.cuh"
#include "llm/kernel/cuda/experts/tile.cuh"

/* What a warpgroup has of a task: up to 64 pairs, none if n_pair is not positive, and rows of
 * the task from row0 on. */
typedef struct {
    int  pair0, n_pair, row0;
    bool is_shared;
} token_box;

template <class S> FM_DEVICE token_box own_box(const tile_task &task)
{
    const int r = own_group() * S::BOX;
    token_box b;
    b.pair0     = pair_at(task, r);
    b.n_pair    = min(count_tokens(task) - r, (int)S::BOX);
    b.is_shared = r >= task.n_pair;
    b.row0      = b.is_shared ? task.part * (S::ROWS / S::PARTS) : 0;
    return b;
}

/* The lane's first token of the box. */
FM_DEVICE int own_token() { return threadIdx.x % 128 / 32 * 16 + (threadIdx.x & 31) / 4; }

template <class S, int N>
FM_DEVICE void start_tokens(float (&d)[N / 2], const uint8_t *stage, int row0)
{
    const fm_tile w = fm_tile_by_row(stage + row0 * K_BYTES);
    const fm_tile x = fm_tile_by_row(stage + S::WEIGHT_BYTES + own_group() * S::BOX_BYTES);
    fm_wgmma_fence();
#pragma unroll
    for (int k16 = 0; k16 < S::K / 16; k16++)
        fm_wgmma_ss<N>(d, fm_tile_at(x, 32 * k16), fm_tile_at(w, 32 * k16));
    fm_wgmma_commit();
}

/* While a stage is multiplied, the next is begun; then the first is free. */
template <class S, bool GATHER, int N>
FM_DEVICE void multiply_tokens(float (&d)[N / 2], const uint8_t *bytes, wide_shared<S> &own,
                               wide_place &p, int n_step, int row0)
{
    fm_mbarrier *last = NULL;
    for (int step = 0; step < n_step; step++, place_next<S>(p)) {
        wait_for_stage<GATHER>(&own.full[p.at], p.parity);
        start_tokens<S, N>(d, bytes + p.at * S::STAGE_BYTES, row0);
        fm_wgmma_wait<1>();
        if (last) release<S>(last);
        last = &own.empty[p.at];
    }
    fm_wgmma_wait<0>();
    fm_wgmma_hold(d);
    release<S>(last);
}

template <class S>
FM_DEVICE void let_pass(wide_shared<S> &own, wide_place &p, int n_step)
{
    for (int step = 0; step < n_step; step++, place_next<S>(p)) {
        fm_mbarrier_wait(&own.full[p.at], p.parity);
        release<S>(&own.empty[p.at]);
    }
}

/* 4 x 4 transpose among the lanes of a quad: word i of lane q becomes word q of lane i. */
FM_DEVICE void transpose_quad(uint32_t (&w)[4])
{
#pragma unroll
    for (int step = 1; step < 4; step *= 2) {
        const bool is_far = threadIdx.x & step;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (i & step) continue;
            const uint32_t got = __shfl_xor_sync(FM_WARP, is_far ? w[i] : w[i + step], step);
            w[i]               = is_far ? got : w[i];
            w[i + step]        = is_far ? w[i + step] : got;
        }
    }
}

/* Up to 8 rows of a token; `left` to the end of the matrix. */
FM_DEVICE void store_rows(uint16_t *y, const uint32_t (&v)[4], int left, bool is_aligned)
{
    if (is_aligned && left > 0) *(uint4 *)y = make_uint4(v[0], v[1], v[2], v[3]);
    if (is_aligned) return;
    if (left > 0) *(uint2 *)y = make_uint2(v[0], v[1]);
    if (left > 4) *(uint2 *)(y + 4) = make_uint2(v[2], v[3]);
}

/* Of 32 rows, a lane gets the 8 from 8 (lane%4) on. */
template <int N>
FM_DEVICE void store_tokens(const tile_args &a, const token_box &box, int row0,
                            const float (&d)[N / 2])
{
    const int first = row0 + (threadIdx.x & 3) * 8;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int token = own_token() + 8 * half;
        uint16_t *y     = a.y + (int64_t)(box.pair0 + token) * a.ldy;
#pragma unroll
        for (int j = 0; j < N / 8; j += 4) {
            uint32_t rows[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const float *at = d + 4 * (j + i) + 2 * half;
                rows[i]         = fm_bf16x2_of_f32(at[0], at[1]);
            }
            transpose_quad(rows);
            const int row = first + 8 * j;
            if (token < box.n_pair) store_rows(y + row, rows, a.n - row, a.ldy % 8 == 0);
        }
    }
}

/* Of each 32 rows, j = 0, 1 are gates and j = 2, 3 the same channels' ups. */
template <int N>
FM_DEVICE void store_gated_tokens(const tile_args &a, const token_box &box, int row0,
                                  const float (&d)[N / 2])
{
    const int first = row0 / 2 + (threadIdx.x & 3) * 8;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int token = own_token() + 8 * half;
        uint16_t *y     = a.y + (int64_t)(box.pair0 + token) * a.ldy;
#pragma unroll
        for (int j = 0; j < N / 8; j += 8) {
            uint32_t channels[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const float *gate = d + 4 * (j + i / 2 * 4 + i % 2) + 2 * half, *up = gate + 8;
                channels[i] =
                    fm_bf16x2_of_f32(fm__gated(gate[0], up[0]), fm__gated(gate[1], up[1]));
            }
            transpose_quad(channels);
            const int channel = first + 4 * j;
            if (token < box.n_pair && channel < a.n / 2)
                *(uint4 *)(y + channel) =
                    make_uint4(channels[0], channels[1], channels[2], channels[3]);
        }
    }
}

template <class S, tile_out OUT, int N>
FM_DEVICE void box_task(const uint8_t *bytes, wide_shared<S> &own, wide_place &p,
                        const tile_args &a, const tile_task &task, const token_box &box)
{
    float d[N / 2];
#pragma unroll
    for (int i = 0; i < N / 2; i++) d[i] = 0;
    multiply_tokens<S, OUT == OUT_SWIGLU, N>(d, bytes, own, p, count_steps<S>(a), box.row0);
    if (OUT == OUT_SWIGLU)
        store_gated_tokens<N>(a, box, task.row0 + box.row0, d);
    else
        store_tokens<N>(a, box, task.row0 + box.row0, d);
}

template <class S, tile_out OUT>
FM_DEVICE void token_task(const uint8_t *bytes, wide_shared<S> &own, wide_place &p,
                          const tile_args &a, const tile_task &task)
{
    const token_box box = own_box<S>(task);
    if (box.n_pair <= 0)
        let_pass<S>(own, p, count_steps<S>(a));
    else if (box.is_shared)
        box_task<S, OUT, S::ROWS / S::PARTS>(bytes, own, p, a, task, box);
    else
        box_task<S, OUT, S::ROWS>(bytes, own, p, a, task, box);
}

#endif
