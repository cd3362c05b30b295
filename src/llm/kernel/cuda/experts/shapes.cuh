/* SPDX-License-Identifier: Apache-2.0 */
/* The tile shapes that are compiled: one for each width of a block, BF16 and E4M3.
 *
 *     tokens   rows   ring BF16   rows   ring E4M3    blocks of a multiprocessor
 *        8      64   12 x  9 KB    64    4 x 10 KB    2, 5
 *       16      64   10 x 10 KB    64    3 x 12 KB    2, 6
 *       32      64    9 x 12 KB   384    4 x 56 KB    2, 1
 *       64     128    3 x 24 KB   256    4 x 48 KB    3, 1
 *      256     256    4 x 48 KB                       1      two thread blocks of 128 tokens
 *
 * Each keeps at least 64 KB of weights in flight per multiprocessor.  Small tasks balance the
 * load of the multiprocessors where the time is that of loading weights. */
#ifndef FM_LLM_KERNEL_CUDA_EXPERTS_SHAPES_CUH
#define FM_LLM_KERNEL_CUDA_EXPERTS_SHAPES_CUH

#include "llm/kernel/cuda/experts/tma_kernel.cuh"

template <class... KERNEL> struct tile_kernels {
    static fm_status init()
    {
        cudaError_t e = cudaSuccess;
        ((e = e == cudaSuccess ? KERNEL::init() : e), ...);
        FM_CUDA(e);
        return FM_OK;
    }
    template <class K>
    static bool launch_if(fm_status *rc, const tile_args &t, int block_rows, int max_block,
                          int n_sm, fm_stream stream)
    {
        typedef typename K::shape S;
        if (S::FP8 != (t.scale != NULL) || S::NT != block_rows) return false;
        *rc = K::launch(t, max_block, n_sm, stream);
        return true;
    }
    static fm_status launch(const tile_args &t, int block_rows, int max_block, int n_sm,
                            fm_stream stream)
    {
        fm_status rc = FM_OK;
        if (!(launch_if<KERNEL>(&rc, t, block_rows, max_block, n_sm, stream) || ...))
            return fm_fail(FM_E_NOSUP, "experts: no kernel for blocks of %d tokens", block_rows);
        return rc;
    }
};

template <tile_out OUT>
using tile_family = tile_kernels<
    tile_kernel<tile_shape<0, 8, 64, 12>, OUT, 2>, tile_kernel<tile_shape<0, 16, 64, 10>, OUT, 2>,
    tile_kernel<tile_shape<0, 32, 64, 9>, OUT, 2>,
    tile_kernel<tile_shape<0, 64, 128, 3, true>, OUT, 3>,
    wide_kernel<wide_shape<0, 128, 256, 4, 2, 216, 72, 2>, OUT>,
    tile_kernel<tile_shape<1, 8, 64, 4>, OUT, 5>, tile_kernel<tile_shape<1, 16, 64, 3>, OUT, 6>,
    wide_kernel<wide_shape<1, 32, 384, 4, 3, 152, 56>, OUT>,
    wide_kernel<wide_shape<1, 64, 256, 4, 2, 224, 56>, OUT>>;

/* Blocks there can be at most; 0 means nothing to do. */
static inline int most_blocks(const fm_cuda_experts_args *a)
{
    if (a->block) return a->max_block < a->n_pair ? a->max_block : a->n_pair;
    return (a->n_row + a->block_rows - 1) / a->block_rows;
}

template <tile_out OUT>
static inline fm_status launch_tiles(const fm_cuda_experts_args *a, const tile_args &t,
                                     fm_stream stream)
{
    if (most_blocks(a) == 0) return FM_OK;
    return tile_family<OUT>::launch(t, a->block_rows, most_blocks(a), a->n_sm, stream);
}

#endif
