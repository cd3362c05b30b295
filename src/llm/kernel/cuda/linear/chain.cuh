/* SPDX-License-Identifier: Apache-2.0 */
/* The dense product of bf16 weights: one wgmma of 64 rows after the other along
 * k, weights from registers, tokens from shared memory.
 *
 *     warp i < M16: ldmatrix of its 16 rows     the others: zeros, or nothing but copies
 *     d[64, NT] += w[64, 16] x[16, NT], eight times per stage
 *
 * For many rows of w or of x at a time, and for weights [k][n].  While one stage is
 * multiplied, the operands of the next are loaded: two sets of registers, and a
 * stage is free two steps later. */
#ifndef FM_LLM_KERNEL_CUDA_LINEAR_CHAIN_CUH
#define FM_LLM_KERNEL_CUDA_LINEAR_CHAIN_CUH

#include "llm/kernel/cuda/linear/tile.cuh"
#include "llm/kernel/cuda/ptx/wgmma.cuh"

/* The eight m16k16 operands of a warp in one stage. */
struct chain_weights {
    uint32_t k16[LINEAR_K / 16][4];
};

FM_DEVICE void clear(chain_weights &w)
{
#pragma unroll
    for (int i = 0; i < LINEAR_K / 4; i++) w.k16[i / 4][i % 4] = 0;
}

/* Byte of a block that this lane names in the ldmatrix of its warp's first k16.
 * Weights [k][n] are read transposed. */
template <class S> FM_DEVICE int weights_place()
{
    const int lane = threadIdx.x & 31, row = warp_tile<S>() * 16;
    if (S::KIND == W_BF16_BY_K)
        return fm__chunk<S::W_LINE>((lane & 7) + (lane >> 4) * 8, row / 8 + (lane >> 3 & 1));
    return fm__chunk<S::W_LINE>(row + (lane & 15), lane >> 4);
}

/* The other k16 lie 16 lines on each, or two chunks, whose numbers are permuted
 * by an exclusive or. */
template <class S> FM_DEVICE void load_weights(chain_weights &w, const uint8_t *stage, int place)
{
    if (warp_sharer<S>() > 0) return; /* stay zero */
#pragma unroll
    for (int i = 0; i < LINEAR_K / 16; i++)
        if (S::KIND == W_BF16_BY_K)
            fm_ldmatrix_x4_trans(w.k16[i], stage + place + i * 16 * S::W_LINE);
        else
            fm_ldmatrix_x4(w.k16[i], stage + (place ^ i * 32));
}

template <class S>
FM_DEVICE void multiply(linear_sums<S> &c, const chain_weights &w, const uint8_t *stage)
{
    const fm_tile half[2] = {fm_tile_by_row(stage + S::W_BYTES),
                             fm_tile_by_row(stage + S::W_BYTES + S::NT * 128)};
    fm_wgmma_fence();
#pragma unroll
    for (int i = 0; i < LINEAR_K / 16; i++)
        fm_wgmma_rs<S::NT>(c.d, w.k16[i], fm_tile_at(half[i / 4], i % 4 * 32));
    fm_wgmma_commit();
}

/* One stage; leaves its product running and the one before finished. */
template <class S>
FM_DEVICE void chain_step(linear_sums<S> &c, chain_weights &w, uint8_t *ring,
                          const linear_source<S> &s, const fm_cuda_linear_args &a, int place,
                          int step)
{
    const uint8_t *stage = ring + step % S::STAGES * S::STAGE_BYTES;
    fm_cp_async_wait<S::STAGES - 3>();
    fm_tile_fence();
    __syncthreads(); /* this stage has landed, and step - 2 is finished everywhere */
    copy_next<S>(ring, s, a, step + S::STAGES - 2);
    load_weights<S>(w, stage, place);
    multiply<S>(c, w, stage);
    fm_wgmma_wait<1>();
}

template <class S> FM_KERNEL(LINEAR_THREADS, 2) linear_chain(const fm_cuda_linear_args a)
{
    FM_SHARED_BYTES(ring);
    const int          n_step = count_steps<S>(a);
    const int          place  = weights_place<S>();
    const linear_place p      = place_of_block<S>();
    linear_source<S>   from;
    linear_sums<S>     c;
    chain_weights      even, odd;
    copy_first<S>(ring, from, a, p, S::STAGES - 2);
    clear<S>(c);
    clear(even);
    clear(odd);
    for (int step = 0; step + 1 < n_step; step += 2) {
        chain_step<S>(c, even, ring, from, a, place, step);
        chain_step<S>(c, odd, ring, from, a, place, step + 1);
    }
    if (n_step % 2) chain_step<S>(c, even, ring, from, a, place, n_step - 1);
    fm_wgmma_wait<0>();
    fm_wgmma_hold(c.d);
    store<S>(a, p, c);
}

#endif
