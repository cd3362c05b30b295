/* SPDX-License-Identifier: Apache-2.0 */
/* Many rows and E4M3 weights: the experts' tiles with one expert for all. */
#include "llm/kernel/cuda/experts_tile.cuh"
#include "llm/kernel/cuda/linear.h"

using wide_shape  = tile_shape<1, 64, 128, 3, BY_WARPGROUP>;
using wider_shape = tile_shape<1, 128, 256, 3, BY_WARPGROUP>; /* where that leaves tasks for all */
using wide_f32    = tile_kernel<wide_shape, OUT_F32, 2>;
using wide_bf16   = tile_kernel<wide_shape, OUT_BF16, 2>;
using wider_f32   = tile_kernel<wider_shape, OUT_F32, 1>;
using wider_bf16  = tile_kernel<wider_shape, OUT_BF16, 1>;

template <class K> static void launch(const tile_args &t, int n_sm, fm_stream stream)
{
    K::launch(t, (t.n_row + K::shape::NT - 1) / K::shape::NT, n_sm, stream);
}

fm_status fm_cuda_linear_wide_init(void)
{
    FM_CUDA(wide_f32::init());
    FM_CUDA(wide_bf16::init());
    FM_CUDA(wider_f32::init());
    FM_CUDA(wider_bf16::init());
    return FM_OK;
}

fm_status fm_cuda_linear_wide(const fm_cuda_linear_args *a, fm_stream stream)
{
    FM_BUG_UNLESS(a->scale && a->n_batch == 1 && a->ldw == a->k && a->n_sm > 0);
    FM_BUG_UNLESS(a->k % 16 == 0 && a->n % 2 == 0 && a->ldx % 8 == 0 && a->ldy % 2 == 0);
    const bool is_wider = (int64_t)((a->m + 127) / 128) * ((a->n + 255) / 256) >= a->n_sm;
    tile_args  t        = {};
    t.w                 = (const uint8_t *)a->w;
    t.scale             = a->scale;
    t.scale_row0        = a->scale_row0;
    t.x                 = (const uint8_t *)a->x;
    t.y                 = a->y;
    t.n_row             = a->m;
    t.n                 = a->n;
    t.k                 = a->k;
    t.ldx               = a->ldx;
    t.ldy               = a->ldy;
    t.accumulate        = a->accumulate;
    if (a->m == 0) return FM_OK;
    if (a->y_bf16)
        (is_wider ? launch<wider_bf16> : launch<wide_bf16>)(t, a->n_sm, stream);
    else
        (is_wider ? launch<wider_f32> : launch<wide_f32>)(t, a->n_sm, stream);
    return fm_cuda_launched("linear_wide");
}
