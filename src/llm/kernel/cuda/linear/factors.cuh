/* SPDX-License-Identifier: Apache-2.0 */
/* The factors of a tile of 16 rows of E4M3 weights, one for every 128 k.  A lane keeps
 * every 32nd of them and the one 4096 k on, so that none is waited for. */
#ifndef FM_LLM_KERNEL_CUDA_LINEAR_FACTORS_CUH
#define FM_LLM_KERNEL_CUDA_LINEAR_FACTORS_CUH

#include "llm/kernel/cuda/linear/linear.h"
#include "llm/kernel/cuda/ptx/ptx.cuh"

/* Of the tile's upper 8 rows and of its lower 8, which differ with SwiGLU only. */
typedef struct {
    const float *row[2]; /* [n] */
    int          n, chunk;
    float        now[2], next[2]; /* this lane's of 32, and of the 32 after */
} tile_factors;

FM_DEVICE void read_next(tile_factors &f, int chunk)
{
    const int at = min(chunk * 32 + (int)(threadIdx.x & 31), f.n - 1);
    f.next[0]    = f.row[0][at];
    f.next[1]    = f.row[1][at];
}

/* row0: the tile's first row of w, gate and up counted. */
FM_DEVICE void factors_begin(tile_factors &f, const fm_cuda_linear_args &a, int row0)
{
    const int parts = a.swiglu ? 2 : 1, n = a.n / parts;
    const int deep = (a.scale_row0 + n + 127) / 128;
    const int row  = min(row0 / parts, n - 1);
    f.n            = (a.k + 127) / 128;
    f.row[0]       = a.scale + (int64_t)((a.scale_row0 + row) / 128) * f.n;
    f.row[1]       = f.row[0] + (int64_t)(parts - 1) * deep * f.n;
    f.chunk        = -1;
    f.now[0] = f.now[1] = 0;
    read_next(f, 0);
}

/* Before the factors of `block` and those behind it with the same 32. */
FM_DEVICE void factors_need(tile_factors &f, int block)
{
    if (block / 32 == f.chunk) return;
    f.chunk  = block / 32;
    f.now[0] = f.next[0];
    f.now[1] = f.next[1];
    read_next(f, f.chunk + 1);
}

/* Behind the last block 0. */
FM_DEVICE float2 factors_at(const tile_factors &f, int block)
{
    const float upper = __shfl_sync(FM_WARP, f.now[0], block % 32);
    const float lower = __shfl_sync(FM_WARP, f.now[1], block % 32);
    return block < f.n ? make_float2(upper, lower) : make_float2(0, 0);
}

#endif
