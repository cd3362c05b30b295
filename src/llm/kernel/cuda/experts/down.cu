/* SPDX-License-Identifier: Apache-2.0 */
/* The second phase, and what belongs to both. */
#include "llm/kernel/cuda/experts/experts_internal.h"
#include "llm/kernel/cuda/experts/shapes.cuh"

fm_status fm__cuda_experts_init_down(void) { return tile_family<OUT_SUMS>::init(); }

fm_status fm_cuda_experts_down(const fm_cuda_experts_args *a, fm_stream stream)
{
    FM_BUG_UNLESS(a->D % 4 == 0 && a->I % (a->down.scale ? 16 : 8) == 0 && a->n_sm > 0);
    tile_args t  = {};
    t.w          = (const uint8_t *)a->down.weight;
    t.scale      = a->down.scale;
    t.scale_row0 = a->down.scale_row0;
    t.x          = (const uint8_t *)a->middle;
    t.y          = a->pair_out;
    t.block      = a->block;
    t.n_block    = a->n_block;
    t.n_expert   = a->block ? a->n_expert : 1;
    t.n_row      = a->block ? a->n_pair : a->n_row;
    t.n          = a->D;
    t.k          = a->I;
    t.ldx        = a->I;
    t.ldy        = a->D;
    return launch_tiles<OUT_SUMS>(a, t, stream);
}
