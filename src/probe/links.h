/* SPDX-License-Identifier: Apache-2.0 */
/* Latency and bandwidth between every two ranks, and of an all-to-all: of messages between
 * processes here, of messages between GPUs by probe/gpu_links.h. */
#ifndef FM_PROBE_LINKS_H
#define FM_PROBE_LINKS_H

#include "probe/rates.h"
#include "probe/turns.h"

/* Matrices [n_rank, n_rank], row: who sends; n 0: the pair was not measured. */
typedef struct {
    int      n_rank;
    fm_rate *latency;   /* seconds of an empty message, one way */
    fm_rate *bandwidth; /* bytes per second of a long one */
    fm_rate  all_to_all; /* bytes per second a rank sends while all send to all */
} fm_links;

/* Collective; every rank gets all matrices.  FM_E_COMM as fm_turns_run. */
fm_status fm_links_measure(fm_links *out, const fm_turns *turns);

/* Matrices of zeros. */
fm_status fm_links_init(fm_links *l, int n_rank);
void      fm_links_fini(fm_links *l); /* {0} is fine */

#endif
