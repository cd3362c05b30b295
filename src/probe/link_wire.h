/* SPDX-License-Identifier: Apache-2.0 */
/* How messages travel between ranks while their links are measured.  links.c decides which pair
 * works when; a wire does the work:
 *
 *     message_wire.c    messages of the world's group (MPI)
 *     cuda/gpu_wire.c   from GPU to GPU by NCCL, where there is CUDA
 *
 * A wire whose failure shall not end the checkup sets `why`; all ranks then stop together. */
#ifndef FM_PROBE_LINK_WIRE_H
#define FM_PROBE_LINK_WIRE_H

#include "probe/links.h"

typedef struct fm_link_wire fm_link_wire;

struct fm_link_wire {
    /* One rank of a pair sends and measures (lead), the other replies until it gets a stop (serve).
     * FM_E_COMM: the world's group failed. */
    fm_status (*lead)(fm_link_wire *w, int peer, double *latency, double *bandwidth);
    fm_status (*serve)(fm_link_wire *w, int peer);
    /* By all members together: rate[n], bytes per second that this rank sends. */
    fm_status (*all_to_all)(fm_link_wire *w, double *rate, int n);
    const char *is_member;  /* [n_rank] ranks that have this wire; NULL: all.  Borrowed */
    int         most_steps; /* of pairs, one after the other */
    int         can_fail;   /* alone, without an end of the job; the same on all ranks */
    char        why[160];   /* what failed on this rank; "": nothing */
};

/* Collective over all ranks, members or not; every rank gets all matrices.  FM_E_COMM as
 * fm_turns_run.  FM_E_DEVICE, on all ranks: a wire that can fail did so on one of them. */
fm_status fm_links_measure_by(fm_links *out, const fm_turns *turns, fm_link_wire *wire);

#endif
