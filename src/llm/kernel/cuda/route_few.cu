/* SPDX-License-Identifier: Apache-2.0 */
/* Routing and sorting of very few rows by one thread block: between two kernels
 * lies more time than either takes. */
#include "llm/kernel/cuda/route_row.cuh"
#include "llm/kernel/cuda/route_sort.cuh"

enum { WARPS = FM_CUDA_ROUTE_FEW };

template <int R>
FM_KERNEL(WARPS * 32, 1)
route_and_sort(const fm_cuda_route_args a, const fm_cuda_pairs_args pairs, int share)
{
    FM_SHARED_BYTES(memory);
    __shared__ route_space<R> space[WARPS];
    const int                 warp = (int)threadIdx.x / 32;
    float                     bias[R];
    fm_grid_release();
    read_bias<R>(a, bias);
    fm_grid_wait();
    if (warp < a.n_row) route_row<R>(a, space[warp], bias, share, warp);
    __syncthreads();
    sort_all(pairs, memory);
}

fm_status fm_cuda_route_and_sort(const fm_cuda_route_args *a, const fm_cuda_pairs_args *pairs,
                                 fm_stream stream)
{
    FM_TRY(route_check(a));
    FM_BUG_UNLESS(a->n_row <= FM_CUDA_ROUTE_FEW && a->n_expert <= FM_CUDA_FEW_EXPERTS &&
                  pairs->n_row == a->n_row && pairs->top_k == a->top_k &&
                  pairs->expert == a->expert && pairs->block_rows > 0);
    const int    share = lanes_of_group(a);
    const size_t bytes = tables_bytes(WARPS, pairs->n_expert);
    if (a->n_row == 0) return FM_OK;
    if (a->n_expert <= 64)
        FM_LAUNCH_EARLY(route_and_sort<2>, 1, WARPS * 32, bytes, stream, *a, *pairs, share);
    else
        FM_LAUNCH_EARLY(route_and_sort<8>, 1, WARPS * 32, bytes, stream, *a, *pairs, share);
    return fm_cuda_launched("route_and_sort");
}
