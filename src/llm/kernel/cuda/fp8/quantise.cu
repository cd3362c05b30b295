/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of bf16 to E4M3, one scale for every 128 columns: 16 threads of 8 columns each.  Weights of
 * bf16 to E4M3, one scale for every 128 x 128: a thread block with eight times 16 rows of them. */
#include "llm/kernel/cuda/fp8/fp8.h"

#include "llm/kernel/cuda/fp8/quantise.cuh"
#include "llm/kernel/cuda/rows/block.cuh"

enum { COPY_THREADS = 128 };

FM_KERNEL(FM__ROW_THREADS) quantise_rows(const fm_cuda_quantise_args a)
{
    const int blocks = (a.k + FM_CUDA_FP8_K - 1) / FM_CUDA_FP8_K;
    const int unit   = (int)(blockIdx.x * FM__ROW_THREADS + threadIdx.x) / 16,
              lane   = threadIdx.x % 16;
    const int row = unit / blocks, b = unit % blocks, col = b * FM_CUDA_FP8_K + lane * 8;
    fm__row_begin();
    const bool in_list = row < a.n_row;
    const int  from    = !in_list ? -1 : a.row ? a.row[row] : row;
    const bool in      = from >= 0 && from < a.n_x && col < a.k;
    uint4      v       = make_uint4(0, 0, 0, 0);
    if (in) v = *(const uint4 *)(a.x + (int64_t)from * a.ldx + col);
    const uint32_t bf16x2[4] = {v.x, v.y, v.z, v.w};
    float          most      = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) most = fm__more(most, bf16x2[i]);
    const fm_quantum q = fm__quantum(fm__most_of_16(most));
    if (!in) return;
    *(uint2 *)(a.y + (int64_t)row * a.k + col) = make_uint2(
        fm__quantised4(bf16x2[0], bf16x2[1], q), fm__quantised4(bf16x2[2], bf16x2[3], q));
    if (lane == 0) a.scale[(int64_t)row * blocks + b] = q.scale;
}

/* One block per row, 16 bytes of it per thread at a time. */
FM_KERNEL(COPY_THREADS) copy_picked(const fm_cuda_pick_args a)
{
    const int blocks = (a.k + FM_CUDA_FP8_K - 1) / FM_CUDA_FP8_K, chunks = a.k / 16;
    const int tid = (int)threadIdx.x;
    fm__row_begin();
    const int from = a.row[blockIdx.x];
    if (from < 0 || from >= a.n_x) return;
    const uint4 *x = (const uint4 *)(a.x + (int64_t)from * a.k);
    uint4       *y = (uint4 *)(a.y + (int64_t)blockIdx.x * a.k);
#pragma unroll 4
    for (int i = tid; i < chunks; i += COPY_THREADS) y[i] = x[i];
    for (int i = tid; i < blocks; i += COPY_THREADS)
        a.scale[(int64_t)blockIdx.x * blocks + i] = a.x_scale[(int64_t)from * blocks + i];
}

FM_DEVICE float most_of(uint4 v)
{
    return fm__more(fm__more(fm__more(fm__more(0, v.x), v.y), v.z), v.w);
}

enum { WEIGHT_ROWS = 128, ROWS_AT_ONCE = FM__ROW_THREADS / 16, TURNS = WEIGHT_ROWS / ROWS_AT_ONCE };

FM_KERNEL(FM__ROW_THREADS) quantise_block(const fm_cuda_quantise_weights_args a)
{
    __shared__ float part[FM__ROW_WARPS];
    const int row0 = (int)blockIdx.y * WEIGHT_ROWS + (int)threadIdx.x / 16,
              col  = (int)blockIdx.x * FM_CUDA_FP8_K + (int)threadIdx.x % 16 * 8;
    uint4 v[TURNS];
    float most = 0;
    fm__row_begin();
#pragma unroll
    for (int i = 0; i < TURNS; i++) {
        const int row = row0 + i * ROWS_AT_ONCE;
        v[i]          = make_uint4(0, 0, 0, 0);
        if (row < a.n && col < a.k) v[i] = *(const uint4 *)(a.w + (int64_t)row * a.k + col);
        most = fmaxf(most, most_of(v[i]));
    }
    const fm_quantum q = fm__quantum(fm__block_max(most, part));
#pragma unroll
    for (int i = 0; i < TURNS; i++) {
        const int row = row0 + i * ROWS_AT_ONCE;
        if (row < a.n && col < a.k)
            *(uint2 *)(a.y + (int64_t)row * a.k + col) = make_uint2(
                fm__quantised4(v[i].x, v[i].y, q), fm__quantised4(v[i].z, v[i].w, q));
    }
    if (threadIdx.x == 0) a.scale[(int64_t)blockIdx.y * gridDim.x + blockIdx.x] = q.scale;
}

fm_status fm_cuda_quantise_weights(const fm_cuda_quantise_weights_args *a, fm_stream stream)
{
    const dim3 blocks((unsigned)((a->k + FM_CUDA_FP8_K - 1) / FM_CUDA_FP8_K),
                      (unsigned)((a->n + WEIGHT_ROWS - 1) / WEIGHT_ROWS));
    FM_BUG_UNLESS(a->k > 0 && a->k % 16 == 0);
    if (a->n == 0) return FM_OK;
    FM_LAUNCH_EARLY(quantise_block, blocks, FM__ROW_THREADS, 0, stream, *a);
    return fm_cuda_launched("quantise_block");
}

fm_status fm_cuda_pick(const fm_cuda_pick_args *a, fm_stream stream)
{
    FM_BUG_UNLESS(a->k > 0 && a->k % 16 == 0);
    if (a->n_row == 0) return FM_OK;
    FM_LAUNCH_EARLY(copy_picked, (unsigned)a->n_row, COPY_THREADS, 0, stream, *a);
    return fm_cuda_launched("copy_picked");
}

fm_status fm_cuda_quantise(const fm_cuda_quantise_args *a, fm_stream stream)
{
    const int64_t units = (int64_t)a->n_row * ((a->k + FM_CUDA_FP8_K - 1) / FM_CUDA_FP8_K);
    FM_BUG_UNLESS(a->k > 0 && a->k % 8 == 0 && a->ldx % 8 == 0);
    if (units == 0) return FM_OK;
    FM_LAUNCH_EARLY(quantise_rows, (unsigned)((units * 16 + FM__ROW_THREADS - 1) / FM__ROW_THREADS),
                    FM__ROW_THREADS, 0, stream, *a);
    return fm_cuda_launched("quantise_rows");
}
