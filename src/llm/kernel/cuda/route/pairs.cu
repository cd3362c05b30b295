/* SPDX-License-Identifier: Apache-2.0 */
/* Few pairs are one chunk and one kernel.  Many are ranked by one kernel and
 * placed by the next; the chunks' counts wait in between in `scratch`. */
#include "llm/kernel/cuda/route/sort.cuh"
#include "llm/kernel/cuda/variants.h"

enum {
    MAX_WARPS = 32,
    CHUNK     = 1024, /* pairs of a thread block where there are many */
    ONE_CHUNK = 4096, /* up to these pairs they are one */
};

FM_KERNEL(MAX_WARPS * 32) sort_pairs(const fm_cuda_pairs_args a)
{
    FM_SHARED_BYTES(memory);
    fm_grid_release();
    fm_grid_wait();
    sort_all(a, memory);
}

/* scratch[chunk][e] the chunk's pairs; pair_of ranks in the chunk */
FM_KERNEL(MAX_WARPS * 32) rank_pairs(const fm_cuda_pairs_args a)
{
    FM_SHARED_BYTES(memory);
    const tables t = tables_at(memory, a.n_expert);
    fm_grid_release();
    fm_grid_wait();
    const run  chunk = chunk_of_block(a), own = run_of_warp(chunk);
    const int *before = t.warp + (int)threadIdx.x / 32 * a.n_expert;
    rank_chunk(a, t, chunk);
    for (int e = (int)threadIdx.x; e < a.n_expert; e += (int)blockDim.x)
        a.scratch[(int)blockIdx.x * a.n_expert + e] = t.count[e];
    for (int i = own.begin + (int)threadIdx.x % 32; i < own.end; i += 32) {
        const int e = expert_of(a, i, own.end);
        if (e >= 0) a.pair_of[i] += before[e];
    }
}

/* warp[0][e] becomes the pairs of e in earlier chunks, count[e] those in all. */
FM_DEVICE void scan_chunks(const fm_cuda_pairs_args &a, const tables &t)
{
    for (int e = (int)threadIdx.x; e < a.n_expert; e += (int)blockDim.x) {
        int sum = 0, before = 0;
#pragma unroll 8
        for (int c = 0; c < (int)gridDim.x; c++) {
            const int here = a.scratch[c * a.n_expert + e];
            if (c < (int)blockIdx.x) before += here;
            sum += here;
        }
        t.warp[e]  = before;
        t.count[e] = sum;
    }
    __syncthreads();
}

FM_KERNEL(MAX_WARPS * 32) place_pairs(const fm_cuda_pairs_args a)
{
    FM_SHARED_BYTES(memory);
    const tables t = tables_at(memory, a.n_expert);
    fm_grid_release();
    fm_grid_wait();
    scan_chunks(a, t);
    scan_experts(a, t);
    if (blockIdx.x == 0) list_blocks(a, t);
    place_run(a, t.first_pair, t.warp, run_of_warp(chunk_of_block(a)));
}

static void sort_many(const fm_cuda_pairs_args *a, int n_warp, fm_stream stream)
{
    const int n_chunk = (a->n_row * a->top_k + CHUNK - 1) / CHUNK;
    FM_LAUNCH_EARLY(rank_pairs, n_chunk, n_warp * 32, tables_bytes(n_warp, a->n_expert), stream,
                    *a);
    FM_LAUNCH_EARLY(place_pairs, n_chunk, n_warp * 32, tables_bytes(1, a->n_expert), stream, *a);
}

fm_status fm_cuda_pairs(const fm_cuda_pairs_args *a, fm_stream stream)
{
    FM_BUG_UNLESS(a->n_expert > 0 && a->top_k > 0 && a->block_rows > 0);
    if (a->n_expert > FM_CUDA_MAX_EXPERTS)
        return fm_fail(FM_E_NOSUP, "%d experts: the GPU takes at most %d", a->n_expert,
                       FM_CUDA_MAX_EXPERTS);
    const int n = a->n_row * a->top_k, wanted = (n + 31) / 32,
              fit    = a->n_expert <= 256 ? MAX_WARPS : MAX_WARPS / 2;
    const int n_warp = wanted < 1 ? 1 : wanted < fit ? wanted : fit;
    if (a->scratch && n > ONE_CHUNK && !fm_cuda_leaves_out(FM_VARIANT_SORT_TWO))
        sort_many(a, n_warp, stream);
    else
        FM_LAUNCH_EARLY(sort_pairs, 1, n_warp * 32, tables_bytes(n_warp, a->n_expert), stream, *a);
    return fm_cuda_launched("sort_pairs");
}
