/* SPDX-License-Identifier: Apache-2.0 */
/* Many rows and E4M3 weights: the experts' tiles with one expert for all. */
#include "llm/kernel/cuda/experts_tile.cuh"
#include "llm/kernel/cuda/linear.h"

template <int NT, int ROWS, int STAGES, int PER_SM> struct wide_kernels {
    using shape = tile_shape<1, NT, ROWS, STAGES, BY_WARPGROUP>;
    using f32   = tile_kernel<shape, OUT_F32, PER_SM>;
    using bf16  = tile_kernel<shape, OUT_BF16, PER_SM>;

    static fm_status init()
    {
        FM_CUDA(f32::init());
        FM_CUDA(bf16::init());
        return FM_OK;
    }
    static fm_status launch(const fm_cuda_linear_args *a, const tile_args &t, fm_stream stream)
    {
        (a->y_bf16 ? bf16::launch : f32::launch)(t, (a->m + NT - 1) / NT, a->n_sm, stream);
        return fm_cuda_launched("linear_wide");
    }
};

using wide_64x128  = wide_kernels<64, 128, 3, 2>;
using wide_128x256 = wide_kernels<128, 256, 3, 1>;

fm_status fm_cuda_linear_wide_init(void)
{
    FM_TRY(wide_64x128::init());
    return wide_128x256::init();
}

fm_status fm_cuda_linear_wide(const fm_cuda_linear_args *a, fm_cuda_wide shape, fm_stream stream)
{
    FM_BUG_UNLESS(a->scale && a->n_batch == 1 && a->ldw == a->k && a->n_sm > 0);
    FM_BUG_UNLESS(a->k % 16 == 0 && a->n % 2 == 0 && a->ldx % 8 == 0 && a->ldy % 2 == 0);
    tile_args t  = {};
    t.w          = (const uint8_t *)a->w;
    t.scale      = a->scale;
    t.scale_row0 = a->scale_row0;
    t.x          = (const uint8_t *)a->x;
    t.y          = a->y;
    t.n_row      = a->m;
    t.n          = a->n;
    t.k          = a->k;
    t.ldx        = a->ldx;
    t.ldy        = a->ldy;
    t.accumulate = a->accumulate;
    if (a->m == 0) return FM_OK;
    return (shape == FM_CUDA_WIDE_64X128 ? wide_64x128::launch : wide_128x256::launch)(a, t, stream);
}
