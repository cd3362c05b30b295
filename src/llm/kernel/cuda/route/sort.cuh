/* SPDX-License-Identifier: Apache-2.0 */
/* A stable counting sort of the (row, slot) pairs by expert: what thread blocks
 * do.  A chunk of pairs is a block's, a run of the chunk a warp's.
 *
 *     rank    a pair's place among its expert's in the chunk, left in pair_of
 *     scan    pairs of each expert, in earlier chunks and in all
 *     place   first of the expert + those in earlier chunks + rank */
#ifndef FM_LLM_KERNEL_CUDA_ROUTE_SORT_CUH
#define FM_LLM_KERNEL_CUDA_ROUTE_SORT_CUH

#include "llm/kernel/cuda/ptx/ptx.cuh"
#include "llm/kernel/cuda/route/route.h"

enum { BATCH = 4 }; /* pairs a lane asks for at once */

/* In shared memory, [E] each; `warp` is [n_warp][E]. */
typedef struct {
    int *warp, *count, *first_pair, *first_block;
} tables;

/* A run of pairs: of a chunk, or of a warp. */
typedef struct {
    int begin, end;
} run;

FM_DEVICE tables tables_at(void *memory, int n_expert)
{
    int *at = (int *)memory;
    return {at + 3 * n_expert, at, at + n_expert, at + 2 * n_expert};
}

static inline size_t tables_bytes(int n_warp, int n_expert)
{
    return (size_t)(n_warp + 3) * (size_t)n_expert * sizeof(int);
}

FM_DEVICE run chunk_of_block(const fm_cuda_pairs_args &a)
{
    const int n = a.n_row * a.top_k, per = (n + (int)gridDim.x - 1) / (int)gridDim.x;
    const int begin = min((int)blockIdx.x * per, n);
    return {begin, min(begin + per, n)};
}

FM_DEVICE run run_of_warp(run chunk)
{
    const int n_warp = (int)blockDim.x / 32, n = chunk.end - chunk.begin;
    const int per   = (n + n_warp * 32 - 1) / (n_warp * 32) * 32;
    const int begin = min(chunk.begin + (int)threadIdx.x / 32 * per, chunk.end);
    return {begin, min(begin + per, chunk.end)};
}

FM_DEVICE int expert_of(const fm_cuda_pairs_args &a, int i, int end)
{
    return i < end ? a.expert[i] : -1;
}

/* Lanes with the same expert find each other; the first of them counts for all. */
FM_DEVICE int rank_in_run(int *n, int e, int lane)
{
    const unsigned same = __match_any_sync(FM_WARP, (unsigned)e), below = same & ((1u << lane) - 1);
    const int      rank = e >= 0 ? n[e] + __popc(below) : -1;
    __syncwarp();
    if (e >= 0 && !below) n[e] += __popc(same);
    __syncwarp();
    return rank;
}

FM_DEVICE void rank_run(const fm_cuda_pairs_args &a, int *n, run r)
{
    const int lane = (int)threadIdx.x % 32;
    for (int i0 = r.begin; i0 < r.end; i0 += 32 * BATCH) {
        int e[BATCH];
#pragma unroll
        for (int b = 0; b < BATCH; b++) e[b] = expert_of(a, i0 + 32 * b + lane, r.end);
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
            const int i = i0 + 32 * b + lane, rank = rank_in_run(n, e[b], lane);
            if (i < r.end) a.pair_of[i] = rank;
        }
    }
}

/* warp[w][e] becomes how many pairs of e the warps before w have; count[e] their sum. */
FM_DEVICE void scan_warps(const tables &t, int n_expert)
{
    for (int e = (int)threadIdx.x; e < n_expert; e += (int)blockDim.x) {
        int sum = 0;
#pragma unroll 8
        for (int w = 0; w < (int)blockDim.x / 32; w++) {
            const int here           = t.warp[w * n_expert + e];
            t.warp[w * n_expert + e] = sum;
            sum += here;
        }
        t.count[e] = sum;
    }
}

/* pair_of becomes each pair's rank in the chunk but for its warp's share, which
 * stays in warp[][]; count[] the chunk's. */
FM_DEVICE void rank_chunk(const fm_cuda_pairs_args &a, const tables &t, run chunk)
{
    const int n_warp = (int)blockDim.x / 32;
    for (int i = (int)threadIdx.x; i < n_warp * a.n_expert; i += (int)blockDim.x) t.warp[i] = 0;
    __syncthreads();
    rank_run(a, t.warp + (int)threadIdx.x / 32 * a.n_expert, run_of_warp(chunk));
    __syncthreads();
    scan_warps(t, a.n_expert);
    __syncthreads();
}

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

/* Pairs and blocks before each expert, by the first warp, from count[] of all chunks. */
FM_DEVICE void scan_experts(const fm_cuda_pairs_args &a, const tables &t)
{
    const int lane  = (int)threadIdx.x;
    int       pairs = 0, blocks = 0;
    if (lane < 32)
        for (int e0 = 0; e0 < a.n_expert; e0 += 32) {
            const int e = e0 + lane, n = e < a.n_expert ? t.count[e] : 0;
            const int b             = (n + a.block_rows - 1) / a.block_rows;
            const int pairs_before  = pairs + scan_before(n, lane),
                      blocks_before = blocks + scan_before(b, lane);
            if (e < a.n_expert) t.first_pair[e] = pairs_before, t.first_block[e] = blocks_before;
            pairs  = __shfl_sync(FM_WARP, pairs_before + n, 31);
            blocks = __shfl_sync(FM_WARP, blocks_before + b, 31);
        }
    if (lane == 0 && blockIdx.x == 0) a.offset[a.n_expert] = pairs, *a.n_block = blocks;
    __syncthreads();
}

/* An expert's pairs, cut into as few blocks as can be, each of whole boxes. */
typedef struct {
    int boxes, blocks;
} division;

FM_DEVICE int box_of(const fm_cuda_pairs_args &a) { return a.box ? a.box : a.block_rows; }

FM_DEVICE division divide(const fm_cuda_pairs_args &a, int n)
{
    return {(n + box_of(a) - 1) / box_of(a), (n + a.block_rows - 1) / a.block_rows};
}

FM_DEVICE bool has_larger_blocks(division a, division b)
{
    return a.boxes * b.blocks > b.boxes * a.blocks;
}

FM_DEVICE void list_expert(const fm_cuda_pairs_args &a, const tables &t, int e, int first_block)
{
    const int      n = t.count[e], first = t.first_pair[e];
    const division d   = divide(a, n);
    int32_t       *out = a.block + (size_t)first_block * 3;
    a.count[e]         = n;
    a.offset[e]        = first;
    for (int i = 0, begin = 0; i < d.blocks; i++, out += 3) {
        const int end = min(d.boxes * (i + 1) / d.blocks * box_of(a), n);
        out[0]        = e;
        out[1]        = first + begin;
        out[2]        = end - begin;
        begin         = end;
    }
}

/* The largest blocks first: a fixed share of the list for each thread block of the products is
 * then about the same work.  first_block[] holds what each expert is divided into. */
FM_DEVICE void list_largest_first(const fm_cuda_pairs_args &a, const tables &t)
{
    for (int e = (int)threadIdx.x; e < a.n_expert; e += (int)blockDim.x) {
        const division own = divide(a, t.count[e]);
        t.first_block[e]   = own.boxes << 16 | own.blocks;
    }
    __syncthreads();
    for (int e = (int)threadIdx.x; e < a.n_expert; e += (int)blockDim.x) {
        const division own    = {t.first_block[e] >> 16, t.first_block[e] & 0xffff};
        int            before = 0;
        for (int i = 0; i < a.n_expert; i++) {
            const division other = {t.first_block[i] >> 16, t.first_block[i] & 0xffff};
            if (has_larger_blocks(other, own) || (i < e && !has_larger_blocks(own, other)))
                before += other.blocks;
        }
        list_expert(a, t, e, before);
    }
}

FM_DEVICE void list_blocks(const fm_cuda_pairs_args &a, const tables &t)
{
    if (a.box) {
        list_largest_first(a, t);
        return;
    }
    for (int e = (int)threadIdx.x; e < a.n_expert; e += (int)blockDim.x)
        list_expert(a, t, e, t.first_block[e]);
}

/* before: pairs of each expert in front of this warp's, counted from the first. */
FM_DEVICE void place_run(const fm_cuda_pairs_args &a, const int *first, const int *before, run r)
{
    const int lane = (int)threadIdx.x % 32;
#pragma unroll BATCH
    for (int i = r.begin + lane; i < r.end; i += 32) {
        const int e = expert_of(a, i, r.end);
        if (e < 0) continue;
        const int pair   = first[e] + before[e] + a.pair_of[i];
        a.pair_row[pair] = i / a.top_k;
        a.pair_of[i]     = pair;
    }
}

/* All pairs by one thread block. */
FM_DEVICE void sort_all(const fm_cuda_pairs_args &a, void *memory)
{
    const tables t   = tables_at(memory, a.n_expert);
    const run    all = {0, a.n_row * a.top_k};
    rank_chunk(a, t, all);
    scan_experts(a, t);
    list_blocks(a, t);
    place_run(a, t.first_pair, t.warp + (int)threadIdx.x / 32 * a.n_expert, run_of_warp(all));
}

#endif
