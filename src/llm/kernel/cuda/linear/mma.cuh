/* SPDX-License-Identifier: Apache-2.0 */
/* The dense product of bf16 weights: one mma.m16n8k16 after the other along k.
 *
 * Warps that have the same 16 rows share the tokens by eights; with fewer than
 * that the others only copy.  While a chain waits for its own sums, the operands
 * of the next stage are loaded, one k16 for each. */
#ifndef FM_LLM_KERNEL_CUDA_LINEAR_MMA_CUH
#define FM_LLM_KERNEL_CUDA_LINEAR_MMA_CUH

#include "llm/kernel/cuda/linear/tile.cuh"

/* One product, or two that are launched together: the second one's thread blocks follow. */
typedef struct {
    fm_cuda_linear_args of[2];
    int                 n_first; /* thread blocks along n of the first */
} linear_list;

/* A warp's operands of one stage. */
template <class S> struct mma_operands {
    uint32_t w[LINEAR_K / 16][4];
    uint32_t x[S::OWN][LINEAR_K / 32][4];
};

template <class S> FM_DEVICE void clear(mma_operands<S> &o)
{
#pragma unroll
    for (int i = 0; i < LINEAR_K / 4; i++) o.w[i / 4][i % 4] = 0;
#pragma unroll
    for (int i = 0; i < S::OWN * LINEAR_K / 8; i++) o.x[i / 16][i / 4 % 4][i % 4] = 0;
}

template <class S> FM_DEVICE int mma_weights_place()
{
    const int lane = threadIdx.x & 31;
    return fm__chunk<S::W_LINE>(warp_tile<S>() * 16 + (lane & 15), lane >> 4);
}

template <class S>
FM_DEVICE void load_k16(mma_operands<S> &o, const uint8_t *stage, int place, int k16)
{
    fm_ldmatrix_x4(o.w[k16], stage + (place ^ k16 * 32));
    if (k16 % 2) return;
#pragma unroll
    for (int i = 0; i < S::OWN; i++)
        if (has_sum<S>(i))
            fm__tokens_bf16<128>(o.x[i][k16 / 2], stage + S::W_BYTES + k16 / 4 * S::NT * 128,
                                 8 * sum_column<S>(i), k16 % 4 * 2);
}

template <class S>
FM_DEVICE void multiply_k16(linear_sums<S> &c, const mma_operands<S> &o, int k16)
{
#pragma unroll
    for (int i = 0; i < S::OWN; i++)
        if (has_sum<S>(i))
            fm_mma_bf16_16816(c.d + 4 * i, o.w[k16], o.x[i][k16 / 2] + k16 % 2 * 2);
}

/* The product of a stage, and the operands of the one behind it. */
template <class S>
FM_DEVICE void mma_step(linear_sums<S> &c, mma_operands<S> &next, const mma_operands<S> &now,
                        uint8_t *ring, const linear_source<S> &s, const fm_cuda_linear_args &a,
                        int place, int step)
{
    const uint8_t *stage = ring + step % S::STAGES * S::STAGE_BYTES;
    fm_cp_async_wait<S::STAGES - 2>();
    __syncthreads(); /* this stage has landed, and the one before is in registers */
    if (has_sum<S>(0)) multiply_k16<S>(c, now, 0);
    copy_next<S>(ring, s, a, step + S::STAGES - 1);
    if (!has_sum<S>(0)) return;
    load_k16<S>(next, stage, place, 0);
#pragma unroll
    for (int k16 = 1; k16 < LINEAR_K / 16; k16++) {
        multiply_k16<S>(c, now, k16);
        load_k16<S>(next, stage, place, k16);
    }
}

template <class S> FM_DEVICE void multiply_last(linear_sums<S> &c, const mma_operands<S> &o)
{
#pragma unroll
    for (int k16 = 0; k16 < LINEAR_K / 16; k16++) multiply_k16<S>(c, o, k16);
}

template <class S>
FM_KERNEL(LINEAR_THREADS, 2)
linear_mma(const __grid_constant__ linear_list list)
{
    FM_SHARED_BYTES(ring);
    const int                  second = (int)blockIdx.x >= list.n_first;
    const fm_cuda_linear_args &a      = list.of[second];
    const int                  n_step = count_steps<S>(a);
    const int                  place  = mma_weights_place<S>();
    const linear_place p = place_of_block<S>((int)blockIdx.x - (second ? list.n_first : 0));
    linear_source<S>   from;
    linear_sums<S>     c;
    mma_operands<S>    even, odd;
    copy_first<S>(ring, from, a, p, S::STAGES - 1);
    clear<S>(c);
    clear<S>(even);
    clear<S>(odd); /* the first product is one of zeros */
    for (int step = 0; step + 1 < n_step; step += 2) {
        mma_step<S>(c, even, odd, ring, from, a, place, step);
        mma_step<S>(c, odd, even, ring, from, a, place, step + 1);
    }
    if (n_step % 2) {
        mma_step<S>(c, even, odd, ring, from, a, place, n_step - 1);
        multiply_last<S>(c, even);
    } else {
        multiply_last<S>(c, odd);
    }
    store<S>(a, p, c);
}

#endif
