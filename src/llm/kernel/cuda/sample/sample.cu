/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/kernel/cuda/sample/sample.h"

#include "base/slab.h"
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

/* Room for the parts of these or of fewer rows, which have more parts each. */
static fm__sample_scratch carve(fm_slab *slab, int n_row, int vocab)
{
    fm__sample_scratch s     = {};
    const size_t       parts = (size_t)n_row * (size_t)((vocab + FM__PART_FEW - 1) / FM__PART_FEW);
    s.best                   = (fm__u64 *)fm_slab_take(slab, parts * sizeof *s.best);
    s.score                  = (float *)fm_slab_take(slab, parts * sizeof *s.score);
    s.n_runner               = (int32_t *)fm_slab_take(slab, parts * sizeof *s.n_runner);
    s.runner = (int32_t *)fm_slab_take(slab, parts * FM__RUNNERS * sizeof *s.runner);
    s.rings  = (fm__rings *)fm_slab_take(slab, parts * sizeof *s.rings);
    s.part   = n_row < FM__MANY_ROWS ? FM__PART_FEW : FM__PART_MANY;
    s.n_part = (vocab + s.part - 1) / s.part;
    return s;
}

size_t fm_cuda_sample_bytes(int n_row, int vocab)
{
    fm_slab count = {};
    (void)carve(&count, n_row, vocab);
    return count.used;
}

fm_status fm_cuda_sample(const fm_cuda_sample_args *a, fm_stream stream)
{
    FM_BUG_UNLESS(a->vocab > 0 && a->n_row >= 0);
    if (a->vocab > FM_CUDA_MAX_VOCAB)
        return fm_fail(FM_E_NOSUP, "a vocabulary of %d: the GPU samples from at most %d", a->vocab,
                       FM_CUDA_MAX_VOCAB);
    if (a->n_row == 0) return FM_OK;
    fm_slab slab               = {(char *)a->scratch, fm_cuda_sample_bytes(a->n_row, a->vocab), 0};
    const fm__sample_scratch s = carve(&slab, a->n_row, a->vocab);
    const unsigned           n_block = (unsigned)((a->n_row + FM__ROW_WARPS - 1) / FM__ROW_WARPS);
    FM_TRY(fm__sample_scan(a, &s, stream));
    if (!a->only_greedy) {
        FM_TRY(fm__sample_weigh(a, &s, stream));
        return fm__sample_choose(a, &s, stream);
    }
    FM_LAUNCH_EARLY(take_largest, n_block, FM__ROW_THREADS, 0, stream, *a, s);
    return fm_cuda_launched("take_largest");
}
