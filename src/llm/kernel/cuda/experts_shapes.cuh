/* SPDX-License-Identifier: Apache-2.0 */
/* The tile shapes that are compiled, and the choice among them.
 *
 *     tokens   rows   ring BF16   ring E4M3    blocks of a multiprocessor
 *        8      32    8 x  5 KB                5
 *        8      64   12 x  9 KB   4 x 10 KB    2, 5
 *        8     128    6 x 17 KB   4 x 18 KB    2, 3
 *       16     128    4 x 18 KB   3 x 20 KB    3
 *       16     256                3 x 36 KB    2      tokens come half as often
 *       32     128    3 x 20 KB   3 x 24 KB    3
 *       64     128    3 x 24 KB   3 x 32 KB    3, 2   by warpgroups, like the next
 *      128     256    4 x 48 KB   3 x 64 KB    1
 *
 * Every row keeps at least 64 KB of weights on their way to a multiprocessor. */
#ifndef FM_LLM_KERNEL_CUDA_EXPERTS_SHAPES_CUH
#define FM_LLM_KERNEL_CUDA_EXPERTS_SHAPES_CUH

#include "llm/kernel/cuda/experts_wide.cuh"

template <class... KERNEL> struct tile_kernels {
    static fm_status init()
    {
        cudaError_t e = cudaSuccess;
        ((e = e == cudaSuccess ? KERNEL::init() : e), ...);
        FM_CUDA(e);
        return FM_OK;
    }
    template <class K>
    static bool launch_if(const tile_args &t, int rows, int block_rows, int max_block, int n_sm,
                          fm_stream stream)
    {
        typedef typename K::shape S;
        if (S::FP8 != (t.scale != NULL) || S::ROWS != rows || S::NT != block_rows) return false;
        K::launch(t, max_block, n_sm, stream);
        return true;
    }
    static fm_status launch(const tile_args &t, int rows, int block_rows, int max_block, int n_sm,
                            fm_stream stream)
    {
        if (!(launch_if<KERNEL>(t, rows, block_rows, max_block, n_sm, stream) || ...))
            return fm_fail(FM_E_NOSUP, "experts: no kernel for blocks of %d tokens, %d rows",
                           block_rows, rows);
        return fm_cuda_launched("experts");
    }
};

template <tile_out OUT>
using tile_family = tile_kernels<
    tile_kernel<tile_shape<0, 8, 32, 8>, OUT, 5>, tile_kernel<tile_shape<0, 8, 64, 12>, OUT, 2>,
    tile_kernel<tile_shape<0, 8, 128, 6>, OUT, 2>, tile_kernel<tile_shape<0, 16, 128, 4>, OUT, 3>,
    tile_kernel<tile_shape<0, 32, 128, 3>, OUT, 3>,
    tile_kernel<tile_shape<0, 64, 128, 3, BY_WARPGROUP>, OUT, 3>,
    wide_kernel<tile_shape<0, 128, 256, 4, BY_TOKENS, 1>, OUT>,
    tile_kernel<tile_shape<1, 8, 64, 4>, OUT, 5>, tile_kernel<tile_shape<1, 8, 128, 4>, OUT, 3>,
    tile_kernel<tile_shape<1, 16, 128, 3>, OUT, 3>, tile_kernel<tile_shape<1, 16, 256, 3>, OUT, 2>,
    tile_kernel<tile_shape<1, 32, 128, 3>, OUT, 3>,
    tile_kernel<tile_shape<1, 64, 128, 3, BY_WARPGROUP>, OUT, 2>,
    tile_kernel<tile_shape<1, 128, 256, 3, BY_WARPGROUP>, OUT, 1>>;

/* Blocks there can be at most; 0 means nothing to do. */
static inline int most_blocks(const fm_cuda_experts_args *a)
{
    return a->block ? a->max_block : (a->n_row + a->block_rows - 1) / a->block_rows;
}

/* Rows of weights in a task of a product with n of them.  Fine tasks level out what
 * multiprocessors have to do; a single round of tasks has nothing to level, and four to
 * eight rounds have been measured to level out by themselves. */
static inline int rows_of_task(const fm_cuda_experts_args *a, int n, bool e4m3)
{
    const int64_t tasks = (int64_t)((n + 127) / 128) * most_blocks(a), half = 2 * tasks / a->n_sm;
    if (a->weight_rows) return a->weight_rows;
    if (a->block_rows == 8 && !e4m3 && half >= 3 && (half < 8 || half > 16)) return 32;
    return a->block_rows < 128 ? 128 : 256;
}

template <tile_out OUT>
static inline fm_status launch_tiles(const fm_cuda_experts_args *a, const tile_args &t,
                                     fm_stream stream)
{
    if (most_blocks(a) == 0) return FM_OK;
    return tile_family<OUT>::launch(t, rows_of_task(a, t.n, t.scale != NULL), a->block_rows,
                                    most_blocks(a), a->n_sm, stream);
}

#endif
