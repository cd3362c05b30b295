/* SPDX-License-Identifier: Apache-2.0 */
/* A stable counting sort of the (row, slot) pairs by expert, in one block: every
 * warp has a run of pairs, counts it, and after a scan over (expert, warp) puts
 * each pair in its place.
 *
 *     n[warp][expert] ──scan over warps, then experts──> first place of each */
#include "llm/kernel/cuda/ptx.cuh"
#include "llm/kernel/cuda/route.h"

enum { MAX_WARPS = 32 };

/* The scans of a warp over 32 numbers. */
FM_DEVICE int scan_before(int x, int lane)
{
    int sum = x;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        const int other = __shfl_up_sync(FM_WARP, sum, (unsigned)d);
        if (lane >= d) sum += other;
    }
    return sum - x;
}

/* n[w][e] becomes how many pairs of e the warps before w have; count[e] their sum. */
FM_DEVICE void scan_warps(const fm_cuda_pairs_args &a, int *n, int n_warp)
{
    for (int e = (int)threadIdx.x; e < a.n_expert; e += (int)blockDim.x) {
        int sum = 0;
        for (int w = 0; w < n_warp; w++) {
            const int here        = n[w * a.n_expert + e];
            n[w * a.n_expert + e] = sum;
            sum += here;
        }
        a.count[e] = sum;
    }
}

/* Pairs and blocks before each expert, by the first warp. */
FM_DEVICE void scan_experts(const fm_cuda_pairs_args &a, int *first_pair, int *first_block,
                            int lane)
{
    int pairs = 0, blocks = 0;
    for (int e0 = 0; e0 < a.n_expert; e0 += 32) {
        const int e = e0 + lane, n = e < a.n_expert ? a.count[e] : 0;
        const int b             = (n + a.block_rows - 1) / a.block_rows;
        const int pairs_before  = pairs + scan_before(n, lane),
                  blocks_before = blocks + scan_before(b, lane);
        if (e < a.n_expert) {
            a.offset[e]    = pairs_before;
            first_pair[e]  = pairs_before;
            first_block[e] = blocks_before;
        }
        pairs  = __shfl_sync(FM_WARP, pairs_before + n, 31);
        blocks = __shfl_sync(FM_WARP, blocks_before + b, 31);
    }
    if (lane == 0) a.offset[a.n_expert] = pairs, *a.n_block = blocks;
}

FM_DEVICE void list_blocks(const fm_cuda_pairs_args &a, const int *first_pair,
                           const int *first_block)
{
    for (int e = (int)threadIdx.x; e < a.n_expert; e += (int)blockDim.x) {
        int32_t *out = a.block + (size_t)first_block[e] * 3;
        for (int i = 0; i < a.count[e]; i += a.block_rows, out += 3) {
            out[0] = e;
            out[1] = first_pair[e] + i;
            out[2] = min(a.count[e] - i, a.block_rows);
        }
    }
}

/* 32 pairs of a warp's run.  Lanes with the same expert find each other; the
 * first of them counts for all. */
FM_DEVICE void take_pairs(const fm_cuda_pairs_args &a, int *n, const int *first_pair, int i,
                          int end, int lane)
{
    const int      e    = i < end ? a.expert[i] - a.first : -1;
    const unsigned same = __match_any_sync(FM_WARP, (unsigned)e), below = same & ((1u << lane) - 1);
    const bool     real = e >= 0 && e < a.n_expert;
    if (real && first_pair) {
        const int pair   = first_pair[e] + n[e] + __popc(below);
        a.pair_row[pair] = i / a.top_k;
        a.pair_of[i]     = pair;
    } else if (first_pair && i < end) {
        a.pair_of[i] = -1;
    }
    __syncwarp();
    if (real && !below) n[e] += __popc(same);
    __syncwarp();
}

FM_KERNEL(MAX_WARPS * 32) sort_pairs(const fm_cuda_pairs_args a)
{
    FM_SHARED_BYTES(memory); /* [n_warp][E] counts, then [E] first pairs, [E] first blocks */
    const int n_warp = (int)blockDim.x / 32, warp = (int)threadIdx.x / 32,
              lane = (int)threadIdx.x % 32;
    int *n = (int *)memory, *first_pair = n + n_warp * a.n_expert,
        *first_block = first_pair + a.n_expert;
    fm_grid_release();
    fm_grid_wait();
    const int n_pair = a.n_row * a.top_k, per = (n_pair + n_warp * 32 - 1) / (n_warp * 32) * 32;
    const int begin = min(warp * per, n_pair), end = min(begin + per, n_pair);
    for (int i = (int)threadIdx.x; i < n_warp * a.n_expert; i += (int)blockDim.x) n[i] = 0;
    __syncthreads();
    for (int i = begin; i < end; i += 32)
        take_pairs(a, n + warp * a.n_expert, NULL, i + lane, end, lane);
    __syncthreads();
    scan_warps(a, n, n_warp);
    __syncthreads();
    if (warp == 0) scan_experts(a, first_pair, first_block, lane);
    __syncthreads();
    list_blocks(a, first_pair, first_block);
    for (int i = begin; i < end; i += 32)
        take_pairs(a, n + warp * a.n_expert, first_pair, i + lane, end, lane);
}

fm_status fm_cuda_pairs(const fm_cuda_pairs_args *a, fm_stream stream)
{
    FM_BUG_UNLESS(a->n_expert > 0 && a->top_k > 0 && a->block_rows > 0);
    if (a->n_expert > FM_CUDA_MAX_EXPERTS)
        return fm_fail(FM_E_NOSUP, "%d experts: the GPU takes at most %d", a->n_expert,
                       FM_CUDA_MAX_EXPERTS);
    const int wanted    = (a->n_row * a->top_k + 31) / 32,
              fit       = a->n_expert <= 256 ? MAX_WARPS : MAX_WARPS / 2;
    const int    n_warp = wanted < 1 ? 1 : wanted < fit ? wanted : fit;
    const size_t bytes  = (size_t)(n_warp + 2) * (size_t)a->n_expert * sizeof(int);
    FM_LAUNCH_EARLY(sort_pairs, 1, n_warp * 32, bytes, stream, *a);
    return fm_cuda_launched("sort_pairs");
}
