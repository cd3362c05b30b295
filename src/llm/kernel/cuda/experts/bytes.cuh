/* SPDX-License-Identifier: Apache-2.0 */
/* The grouped product of E4M3 weights for many tokens: weights are the 64-row operand
 * of a warpgroup, converted in its registers, tokens its N columns.
 *
 *     128 rows of weights for each warpgroup x OWN_NT tokens, or half as many
 *
 * While one converts, another multiplies. */
#ifndef FM_LLM_KERNEL_CUDA_EXPERTS_BYTES_CUH
#define FM_LLM_KERNEL_CUDA_EXPERTS_BYTES_CUH

#include "llm/kernel/cuda/experts/tma_producer.cuh"
#include "llm/kernel/cuda/experts/tile.cuh"

/* All steps of one task, for the first N of OWN_NT tokens. */
template <class S, tile_out OUT, int N>
FM_DEVICE void multiply_bytes(tile_sums<S> &c, const uint8_t *bytes, wide_shared<S> &own,
                              wide_place &p, const tile_args &a, const tile_task &task, int n_step)
{
    tile_factors<S> f;
    factors_begin<S, OUT>(f, a, task, n_step);
    for (int step = 0; step < n_step; step++, place_next<S>(p)) {
        wait_for_stage<OUT == OUT_SWIGLU>(&own.full[p.at], p.parity);
        factors_next<S>(f, a, step, n_step);
        add_stage_e4m3_wide<S, N>(c, bytes + p.at * S::STAGE_BYTES, f.here, step % 32);
        release<S>(&own.empty[p.at]);
    }
}

template <class S, tile_out OUT>
FM_DEVICE void byte_task(const uint8_t *bytes, wide_shared<S> &own, wide_place &p,
                         const tile_args &a, const tile_task &task)
{
    const int    n_step = count_steps<S>(a);
    tile_sums<S> c;
    clear<S>(c);
    if (task.n_pair <= S::OWN_NT / 2)
        multiply_bytes<S, OUT, S::OWN_NT / 2>(c, bytes, own, p, a, task, n_step);
    else
        multiply_bytes<S, OUT, S::OWN_NT>(c, bytes, own, p, a, task, n_step);
    if (OUT == OUT_SWIGLU)
        store_swiglu<S>(a, task, c);
    else
        store_sums<S>(a, task, c);
}

#endif
