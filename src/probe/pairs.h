/* SPDX-License-Identifier: Apache-2.0 */
/* Which pairs of ranks measure their link, and when: a list of steps.  In one
 * step every machine has at most one pair at work, so that no two pairs share a
 * network card or a memory; pairs of different machines work at the same time.
 * First pairs within a machine, then machines meet each other by a round robin. */
#ifndef FM_PROBE_PAIRS_H
#define FM_PROBE_PAIRS_H

#include "base/status.h"

typedef struct {
    int  n_rank, n_step;
    int *partner; /* [n_step, n_rank]; -1: this rank waits */
} fm_pairs_plan;

/* machine[n_rank]: equal numbers share a machine.  All pairs, unless they would take more than
 * `most` steps: then of each two machines the i-th rank of one with the i-th of the other, and
 * within a machine ranks 1, 2, 4 ... apart. */
fm_status fm_pairs_plan_make(fm_pairs_plan *out, const int *machine, int n_rank, int most);
void      fm_pairs_plan_fini(fm_pairs_plan *p); /* {0} is fine */

#endif
