/* SPDX-License-Identifier: Apache-2.0 */
/* What the cores and the memory of a rank can do.  Ranks of a machine measure in
 * turn, several rounds, so that what disturbs the machine for a while disturbs
 * all of them. */
#ifndef FM_PROBE_HOST_RATES_H
#define FM_PROBE_HOST_RATES_H

#include "device/host_threads.h"
#include "probe/turns.h"
#include "probe/rates.h"

typedef struct {
    fm_threads *threads; /* the rank's team; borrowed */
    double      seconds; /* for all ranks of a machine together */
} fm_host_rates_plan;

/* Fills read, node, product, n_core, n_thread, isa and memory of *out, and the share of the
 * measured time that its threads were running. */
fm_status fm_host_rates(fm_rates_rank *out, double *on_cpu, const fm_host_rates_plan *plan,
                        const fm_turns *turns);

#endif
