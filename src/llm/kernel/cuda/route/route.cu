/* SPDX-License-Identifier: Apache-2.0 */
/* One warp per row. */
#include "llm/kernel/cuda/route/row.cuh"

enum { WARPS = 4 };

template <int R> FM_KERNEL(WARPS * 32) route_rows(const fm_cuda_route_args a, int share)
{
    __shared__ route_space<R> space[WARPS];
    const int                 warp = (int)threadIdx.x / 32, row = (int)blockIdx.x * WARPS + warp;
    float                     bias[R];
    fm_grid_release();
    read_bias<R>(a, bias);
    fm_grid_wait();
    if (row < a.n_row) route_row<R>(a, space[warp], bias, share, row);
}

fm_status fm_cuda_route(const fm_cuda_route_args *a, fm_stream stream)
{
    FM_TRY(route_check(a));
    if (a->n_row == 0) return FM_OK;
    const unsigned grid  = (unsigned)((a->n_row + WARPS - 1) / WARPS);
    const int      share = lanes_of_group(a);
    if (a->n_expert <= 64)
        FM_LAUNCH_EARLY(route_rows<2>, grid, WARPS * 32, 0, stream, *a, share);
    else if (a->n_expert <= 256)
        FM_LAUNCH_EARLY(route_rows<8>, grid, WARPS * 32, 0, stream, *a, share);
    else
        FM_LAUNCH_EARLY(route_rows<16>, grid, WARPS * 32, 0, stream, *a, share);
    return fm_cuda_launched("route_rows");
}
