/* SPDX-License-Identifier: Apache-2.0 */
/* Routing and sorting of very few rows in one thread block: launching a second kernel would take
 * longer than either of them. A row goes to an expert once, so an expert has at most one block of
 * pairs, and every thread counts for itself. */
#include "llm/kernel/cuda/route/row.cuh"

enum {
    WARPS   = FM_CUDA_ROUTE_FEW,
    THREADS = WARPS * 32,
    PAIRS   = FM_CUDA_ROUTE_FEW * FM_MAX_TOP_K,
    WORDS   = FM_CUDA_FEW_EXPERTS / 32,
};

/* The experts of all pairs, NO_EXPERT for one that is not sorted, and a bit for each expert that
 * has pairs. */
typedef struct {
    int      expert[PAIRS];
    uint32_t has[WORDS];
} pair_list;

template <int R>
FM_DEVICE void list_pairs(pair_list &l, const fm_cuda_pairs_args &a, const route_space<R> *rows)
{
    for (int i = (int)threadIdx.x; i < a.n_row * a.top_k; i += THREADS) {
        const int  e  = rows[i / a.top_k].expert[i % a.top_k];
        const bool in = e >= 0;
        l.expert[i]   = in ? e : NO_EXPERT;
        if (in) atomicOr(&l.has[e / 32], 1u << e % 32);
    }
    __syncthreads();
}

FM_DEVICE void place_pairs(const pair_list &l, const fm_cuda_pairs_args &a)
{
    const int n = a.n_row * a.top_k;
    for (int i = (int)threadIdx.x; i < n; i += THREADS) {
        const int e    = l.expert[i];
        int       pair = 0;
        for (int j = 0; j < n; j++) pair += l.expert[j] < e || (l.expert[j] == e && j < i);
        a.pair_of[i] = e == NO_EXPERT ? -1 : pair;
        if (e != NO_EXPERT) a.pair_row[pair] = i / a.top_k;
    }
}

/* Experts below e that have pairs, which is how many blocks come before its own. */
FM_DEVICE int blocks_before(const pair_list &l, int e)
{
    int n = 0;
    for (int i = 0; i < WORDS; i++)
        n += __popc(i < e / 32 ? l.has[i] : i == e / 32 ? l.has[i] & ((1u << e % 32) - 1) : 0);
    return n;
}

/* One thread per expert; the thread after the last has the totals. */
FM_DEVICE void list_experts(const pair_list &l, const fm_cuda_pairs_args &a)
{
    const int n = a.n_row * a.top_k;
    for (int e = (int)threadIdx.x; e <= a.n_expert; e += THREADS) {
        int count = 0, first = 0;
        for (int j = 0; j < n; j++) {
            count += l.expert[j] == e;
            first += l.expert[j] < e;
        }
        const int before = e < FM_CUDA_FEW_EXPERTS ? blocks_before(l, e) : 0;
        a.offset[e]      = first;
        if (e == a.n_expert) break;
        a.count[e] = count;
        if (!count) continue;
        int32_t *block = a.block + (size_t)before * 3;
        block[0]       = e;
        block[1]       = first;
        block[2]       = count;
    }
}

FM_DEVICE void count_blocks(const pair_list &l, const fm_cuda_pairs_args &a)
{
    int n = 0;
    for (int i = 0; i < WORDS; i++) n += __popc(l.has[i]);
    if (threadIdx.x == 0) *a.n_block = n;
}

template <int R>
FM_KERNEL(THREADS, 1)
route_and_sort(const fm_cuda_route_args a, const fm_cuda_pairs_args pairs, int share)
{
    __shared__ route_space<R> space[WARPS];
    __shared__ pair_list      list;
    const int                 warp = (int)threadIdx.x / 32;
    float                     bias[R];
    fm_grid_release();
    read_bias<R>(a, bias);
    if (threadIdx.x < WORDS) list.has[threadIdx.x] = 0;
    fm_grid_wait();
    if (warp < a.n_row) route_row<R>(a, space[warp], bias, share, warp);
    __syncthreads();
    list_pairs<R>(list, pairs, space);
    place_pairs(list, pairs);
    list_experts(list, pairs);
    count_blocks(list, pairs);
}

fm_status fm_cuda_route_and_sort(const fm_cuda_route_args *a, const fm_cuda_pairs_args *pairs,
                                 fm_stream stream)
{
    FM_TRY(route_check(a));
    FM_BUG_UNLESS(a->n_row <= FM_CUDA_ROUTE_FEW && a->n_expert <= FM_CUDA_FEW_EXPERTS &&
                  pairs->n_row == a->n_row && pairs->top_k == a->top_k &&
                  pairs->expert == a->expert && pairs->n_expert <= FM_CUDA_FEW_EXPERTS &&
                  pairs->block_rows >= a->n_row);
    const int share = lanes_of_group(a);
    if (a->n_row == 0) return FM_OK;
    if (a->n_expert <= 64)
        FM_LAUNCH_EARLY(route_and_sort<2>, 1, THREADS, 0, stream, *a, *pairs, share);
    else
        FM_LAUNCH_EARLY(route_and_sort<8>, 1, THREADS, 0, stream, *a, *pairs, share);
    return fm_cuda_launched("route_and_sort");
}
