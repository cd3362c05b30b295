/* SPDX-License-Identifier: Apache-2.0 */
/* The tile shapes that are compiled, and the choice among them.
 *
 *     tokens  ring BF16   ring E4M3    blocks of a multiprocessor
 *        8    4 x 17 KB   4 x 18 KB    3
 *       16    4 x 18 KB   3 x 20 KB    3
 *       32    3 x 20 KB   3 x 24 KB    3
 *       64    4 x 24 KB   3 x 32 KB    2
 *      128    3 x 32 KB                2
 *
 * Every row keeps at least 64 KB of weights on their way to a multiprocessor.
 * E4M3 has no row of 128: sums and the step's partial sums would take 256
 * registers. */
#ifndef FM_LLM_KERNEL_CUDA_EXPERTS_SHAPES_CUH
#define FM_LLM_KERNEL_CUDA_EXPERTS_SHAPES_CUH

#include "llm/kernel/cuda/experts_tile.cuh"

template <tile_out OUT> struct tile_family {
    using bf16_8   = tile_kernel<tile_shape<0, 8, 2, 4>, OUT, 3>;
    using bf16_16  = tile_kernel<tile_shape<0, 16, 2, 4>, OUT, 3>;
    using bf16_32  = tile_kernel<tile_shape<0, 32, 2, 3>, OUT, 3>;
    using bf16_64  = tile_kernel<tile_shape<0, 64, 2, 4>, OUT, 2>;
    using bf16_128 = tile_kernel<tile_shape<0, 128, 4, 3>, OUT, 2>;
    using e4m3_8   = tile_kernel<tile_shape<1, 8, 2, 4>, OUT, 3>;
    using e4m3_16  = tile_kernel<tile_shape<1, 16, 2, 3>, OUT, 3>;
    using e4m3_32  = tile_kernel<tile_shape<1, 32, 2, 3>, OUT, 3>;
    using e4m3_64  = tile_kernel<tile_shape<1, 64, 2, 3>, OUT, 2>;

    static fm_status init()
    {
        FM_CUDA(bf16_8::init());
        FM_CUDA(bf16_16::init());
        FM_CUDA(bf16_32::init());
        FM_CUDA(bf16_64::init());
        FM_CUDA(bf16_128::init());
        FM_CUDA(e4m3_8::init());
        FM_CUDA(e4m3_16::init());
        FM_CUDA(e4m3_32::init());
        FM_CUDA(e4m3_64::init());
        return FM_OK;
    }

    static fm_status launch(const tile_args &t, int block_rows, int max_block, int n_sm,
                            fm_stream stream)
    {
        switch (block_rows + (t.scale ? 1 : 0)) {
        case 8: bf16_8::launch(t, max_block, n_sm, stream); break;
        case 16: bf16_16::launch(t, max_block, n_sm, stream); break;
        case 32: bf16_32::launch(t, max_block, n_sm, stream); break;
        case 64: bf16_64::launch(t, max_block, n_sm, stream); break;
        case 128: bf16_128::launch(t, max_block, n_sm, stream); break;
        case 8 + 1: e4m3_8::launch(t, max_block, n_sm, stream); break;
        case 16 + 1: e4m3_16::launch(t, max_block, n_sm, stream); break;
        case 32 + 1: e4m3_32::launch(t, max_block, n_sm, stream); break;
        case 64 + 1: e4m3_64::launch(t, max_block, n_sm, stream); break;
        default:
            return fm_fail(FM_E_NOSUP, "experts: no kernel for blocks of %d tokens", block_rows);
        }
        return fm_cuda_launched("experts");
    }
};

/* Blocks there can be at most; 0 means nothing to do. */
static inline int most_blocks(const fm_cuda_experts_args *a)
{
    return a->block ? a->max_block : (a->n_row + a->block_rows - 1) / a->block_rows;
}

#endif
