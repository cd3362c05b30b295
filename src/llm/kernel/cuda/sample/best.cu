/* SPDX-License-Identifier: Apache-2.0 */
/* The largest logit of a row, for drafts: one block per row. */
#include "llm/kernel/cuda/rows/block.cuh"
#include "llm/kernel/cuda/sample/sample.h"

FM_DEVICE int is_better(fm_cuda_candidate a, fm_cuda_candidate b)
{
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

FM_DEVICE fm_cuda_candidate best_of_row(const float *x, int width)
{
    fm_cuda_candidate best = {-INFINITY, 0};
    for (int c = (int)threadIdx.x; c < width; c += FM__ROW_THREADS)
        if (x[c] > best.logit) best.logit = x[c], best.id = c;
    return best;
}

FM_KERNEL(FM__ROW_THREADS) best_words(const fm_cuda_best_args a)
{
    __shared__ fm_cuda_candidate of[FM__ROW_THREADS];
    fm__row_begin();
    const int t = (int)threadIdx.x;
    of[t]       = best_of_row(a.logits + (size_t)blockIdx.x * (size_t)a.width, a.width);
    for (int half = FM__ROW_THREADS / 2; half; half /= 2) {
        __syncthreads();
        if (t < half && is_better(of[t + half], of[t])) of[t] = of[t + half];
    }
    if (t) return;
    of[0].id += a.first;
    a.best[blockIdx.x] = of[0];
}

FM_KERNEL(FM__ROW_THREADS) take_best(const fm_cuda_take_best_args a)
{
    fm__row_begin();
    const int row = (int)blockIdx.x, keep = a.keep[row];
    if (threadIdx.x == 0) {
        fm_cuda_candidate best = a.best[row];
        for (int k = 1; k < a.n_rank; k++)
            if (is_better(a.best[k * a.n_row + row], best)) best = a.best[k * a.n_row + row];
        a.id[row] = best.id;
    }
    if (keep < 0) return;
    for (int c = 4 * (int)threadIdx.x; c < a.width; c += 4 * FM__ROW_THREADS)
        *(uint2 *)(a.kept + (size_t)keep * (size_t)a.width + c) =
            *(const uint2 *)(a.state + (size_t)row * (size_t)a.width + c);
}

fm_status fm_cuda_best(const fm_cuda_best_args *a, fm_stream stream)
{
    if (a->n_row == 0) return FM_OK;
    FM_LAUNCH_EARLY(best_words, (unsigned)a->n_row, FM__ROW_THREADS, 0, stream, *a);
    return fm_cuda_launched("best_words");
}

fm_status fm_cuda_take_best(const fm_cuda_take_best_args *a, fm_stream stream)
{
    FM_BUG_UNLESS(a->width % 4 == 0);
    if (a->n_row == 0) return FM_OK;
    FM_LAUNCH_EARLY(take_best, (unsigned)a->n_row, FM__ROW_THREADS, 0, stream, *a);
    return fm_cuda_launched("take_best");
}
