/* SPDX-License-Identifier: Apache-2.0 */
/* The first phase: gate and up in one product, SwiGLU on the sums. */
#include "llm/kernel/cuda/experts/experts_internal.h"
#include "llm/kernel/cuda/experts/shapes.cuh"

fm_status fm__cuda_experts_init_up(void) { return tile_family<OUT_SWIGLU>::init(); }

fm_status fm_cuda_experts_up(const fm_cuda_experts_args *a, fm_stream stream)
{
    FM_BUG_UNLESS(a->I % 16 == 0 && a->D % (a->gate_up.scale ? 16 : 8) == 0 && a->n_sm > 0);
    tile_args t  = {};
    t.w          = (const uint8_t *)a->gate_up.weight;
    t.scale      = a->gate_up.scale;
    t.scale_row0 = a->gate_up.scale_row0;
    t.x          = (const uint8_t *)a->h;
    t.x_row      = a->pair_row;
    t.y          = a->middle;
    t.block      = a->block;
    t.n_block    = a->n_block;
    t.n_expert   = a->block ? a->n_expert : 1;
    t.n_row      = a->n_row;
    t.n          = 2 * a->I;
    t.k          = a->D;
    t.ldx        = a->D;
    t.ldy        = a->I;
    return launch_tiles<OUT_SWIGLU>(a, t, stream);
}
