/* SPDX-License-Identifier: Apache-2.0 */
/* A wire (probe/link_wire.h) from GPU to GPU.  Two files implement this: cuda/gpu_wire.c, which a
 * program with CUDA is linked with, and gpu_wire_none.c, for which there is no NCCL. */
#ifndef FM_PROBE_GPU_WIRE_H
#define FM_PROBE_GPU_WIRE_H

#include "probe/link_wire.h"

/* FM_OK: NCCL is there.  FM_E_NOSUP, saying why not. */
fm_status fm_gpu_wire_find(void);

/* By all ranks of `group`, each with an open GPU; group_rank[n_rank]: ranks of the world in the
 * group.  Both are borrowed. */
fm_status fm_gpu_wire_open(fm_link_wire **out, const fm_turns *turns, fm_comm *group,
                           const int *group_rank);
void      fm_gpu_wire_close(fm_link_wire *w); /* NULL is fine */

#endif
