/* SPDX-License-Identifier: Apache-2.0 */
/* The grouped product for many tokens of an expert: tokens are the 64-row operand
 * of a warpgroup, weights its N columns, so that a stage's bytes are read from
 * shared memory as seldom as the registers for the sums allow.
 *
 *     ROWS of weights x 64 tokens for each of GROUPS warpgroups
 *
 * A warpgroup without tokens lets stages pass.
 *
 * A lane has two tokens and pairs of neighbouring rows of weights, gate and up of
 * a channel among them: d[4j..4j+1] are rows 8j + 2(lane%4) and the next of token
 * lane/4, d[4j+2..] of token lane/4 + 8.  The sums are the bits of the other
 * shapes: the same chain, with the factors of each product changed about. */
#ifndef FM_LLM_KERNEL_CUDA_EXPERTS_WIDE_CUH
#define FM_LLM_KERNEL_CUDA_EXPERTS_WIDE_CUH

#include "llm/kernel/cuda/experts_bring.cuh"
#include "llm/kernel/cuda/experts_tile.cuh"

/* The lane's first token of the block. */
FM_DEVICE int own_token() { return threadIdx.x / 32 * 16 + (threadIdx.x & 31) / 4; }

template <class S> FM_DEVICE void start_tokens(float (&d)[S::ROWS / 2], const uint8_t *stage)
{
    const fm_tile w = fm_tile_by_row(stage);
    const fm_tile x = fm_tile_by_row(stage + S::WEIGHT_BYTES + own_group() * S::BOX_BYTES);
    fm_wgmma_fence();
#pragma unroll
    for (int k16 = 0; k16 < S::K / 16; k16++)
        fm_wgmma_ss<S::ROWS>(d, fm_tile_at(x, 32 * k16), fm_tile_at(w, 32 * k16));
    fm_wgmma_commit();
}

/* While a stage is multiplied, the next is begun; then the first is free. */
template <class S, bool GATHER>
FM_DEVICE void multiply_tokens(float (&d)[S::ROWS / 2], const uint8_t *bytes,
                               wide_shared<S> &own, wide_place &p, int n_step)
{
    fm_mbarrier *last = NULL;
    for (int step = 0; step < n_step; step++, place_next<S>(p)) {
        wait_for_stage<GATHER>(&own.full[p.at], p.parity);
        start_tokens<S>(d, bytes + p.at * S::STAGE_BYTES);
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

template <class S>
FM_DEVICE void store_tokens(const tile_args &a, const tile_task &task,
                            const float (&d)[S::ROWS / 2])
{
    const int row = task.row0 + (threadIdx.x & 3) * 2;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int token = own_token() + 8 * half;
        if (token >= task.n_pair) continue;
#pragma unroll
        for (int j = 0; j < S::ROWS / 8; j++)
            store_pair(a, task.pair0 + token, row + 8 * j,
                       make_float2(d[4 * j + 2 * half], d[4 * j + 2 * half + 1]));
    }
}

/* Of each 32 rows, j = 0, 1 are gates and j = 2, 3 the same channels' ups. */
template <class S>
FM_DEVICE void store_gated_tokens(const tile_args &a, const tile_task &task,
                                  const float (&d)[S::ROWS / 2])
{
    const int first = task.row0 / 2 + (threadIdx.x & 3) * 2;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int token = own_token() + 8 * half;
        uint16_t *y     = (uint16_t *)a.y + (int64_t)(task.pair0 + token) * a.ldy;
        if (token >= task.n_pair) continue;
#pragma unroll
        for (int j = 0; j < S::ROWS / 8; j++) {
            if (j % 4 >= 2) continue;
            const int    channel = first + j / 4 * 16 + j % 4 * 8;
            const float *gate = d + 4 * j + 2 * half, *up = gate + 8;
            if (channel < a.n / 2)
                *(uint32_t *)(y + channel) =
                    fm_bf16x2_of_f32(fm__gated(gate[0], up[0]), fm__gated(gate[1], up[1]));
        }
    }
}

template <class S, tile_out OUT>
FM_DEVICE void token_task(const uint8_t *bytes, wide_shared<S> &own, wide_place &p,
                          const tile_args &a, const tile_task &task)
{
    const int n_step = steps_of<S>(a, task);
    if (own_group() * 64 >= task.n_pair) return let_pass<S>(own, p, n_step);
    float d[S::ROWS / 2];
#pragma unroll
    for (int i = 0; i < S::ROWS / 2; i++) d[i] = 0;
    multiply_tokens<S, OUT == OUT_SWIGLU>(d, bytes, own, p, n_step);
    if (OUT == OUT_SWIGLU)
        store_gated_tokens<S>(a, task, d);
    else
        store_tokens<S>(a, task, d);
}

#endif
