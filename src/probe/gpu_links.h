/* SPDX-License-Identifier: Apache-2.0 */
/* Latency and bandwidth between the GPUs of every two ranks, and of an all-to-all, by NCCL.  NCCL
 * connects GPUs: of ranks that share one, the lowest takes part, unless each pretends to be on a
 * host of its own (NCCL_HOSTID). */
#ifndef FM_PROBE_GPU_LINKS_H
#define FM_PROBE_GPU_LINKS_H

#include "probe/links.h"

typedef struct {
    fm_links links;      /* n_rank 0: not measured */
    int      has_failed; /* NCCL was there and failed */
    char     why[240];   /* why nothing was measured; "": it was, or there are not two GPUs */
} fm_gpu_links;

/* What decides whether a rank takes part. */
typedef struct {
    int  has_gpu, has_host_id, machine;
    char pci[32];     /* address of its GPU; "": not known, taken for one of its own */
    char no_nccl[96]; /* why NCCL cannot be used; "": it can */
} fm_gpu_seat;

/* Collective over all ranks; every rank gets all of it.  `pci`: where this rank's open GPU is;
 * NULL: it has none.  FM_E_COMM as fm_turns_run; a failure of NCCL is none of this call's. */
fm_status fm_gpu_links_measure(fm_gpu_links *out, const fm_turns *turns, const char *pci);
void      fm_gpu_links_fini(fm_gpu_links *l); /* {0} is fine */

/* Which ranks measure links between GPUs: is_member[n], and their number.  If fewer than two can, no
 * rank does, and `why` gets the reason; it stays empty where there are not two GPUs. */
int fm_gpu_links_choose(const fm_gpu_seat *seat, int n, char *is_member, char *why, size_t size);

#endif
