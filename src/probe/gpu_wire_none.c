/* SPDX-License-Identifier: Apache-2.0 */
/* A build without CUDA: no rank takes part in links between GPUs. */
#include "probe/gpu_wire.h"

fm_status fm_gpu_wire_find(void) { return fm_fail(FM_E_NOSUP, "this build has no CUDA"); }

fm_status fm_gpu_wire_open(fm_link_wire **out, const fm_turns *turns, fm_comm *group,
                           const int *group_rank)
{
    (void)out;
    (void)turns;
    (void)group;
    (void)group_rank;
    return fm_gpu_wire_find();
}

void fm_gpu_wire_close(fm_link_wire *w) { (void)w; }
