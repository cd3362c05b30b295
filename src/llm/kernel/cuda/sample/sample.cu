/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/kernel/cuda/sample/sample.h"

#include "llm/kernel/cuda/sample/sample.cuh"

/* One warp per row. */
FM_KERNEL(FM__ROW_THREADS) take_largest(const fm_cuda_sample_args a, const fm__sample_scratch s)
{
    fm__row_begin();
    const int row = (int)blockIdx.x * FM__ROW_WARPS + (int)threadIdx.x / 32;
    if (row >= a.n_row) return;
    const fm__best best = fm__best_of_row(s, row);
    if (threadIdx.x % 32 == 0) fm__answer(a, row, fm__id_of_key(best.key), 0, best.is_odd);
}

fm_status fm_cuda_sample(const fm_cuda_sample_args *a, fm_stream stream)
{
    FM_BUG_UNLESS(a->vocab > 0 && a->n_row >= 0);
    if (a->vocab > FM_CUDA_MAX_VOCAB)
        return fm_fail(FM_E_NOSUP, "a vocabulary of %d: the GPU samples from at most %d", a->vocab,
                       FM_CUDA_MAX_VOCAB);
    if (a->n_row == 0) return FM_OK;
    fm_slab slab               = {(char *)a->scratch, fm_cuda_sample_bytes(a->n_row, a->vocab), 0};
    const fm__sample_scratch s = fm__sample_carve(&slab, a->n_row, a->vocab);
    const unsigned           n_block = (unsigned)((a->n_row + FM__ROW_WARPS - 1) / FM__ROW_WARPS);
    FM_TRY(fm__sample_scan(a, &s, stream));
    if (!a->only_greedy) {
        FM_TRY(fm__sample_weigh(a, &s, stream));
        return fm__sample_choose(a, &s, stream);
    }
    FM_LAUNCH_EARLY(take_largest, n_block, FM__ROW_THREADS, 0, stream, *a, s);
    return fm_cuda_launched("take_largest");
}
