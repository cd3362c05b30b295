/* SPDX-License-Identifier: Apache-2.0 */
/* A table of operations that times another one: put it in front of a run to
 * learn where a forward pass spends its time. */
#ifndef FM_BENCH_CPU_PROFILE_H
#define FM_BENCH_CPU_PROFILE_H

#include "bench/cpu_bound.h"
#include "llm/op/run.h"

void fm_profile_begin(fm_run *r); /* one run at a time */

/* Seconds by kind since begin; `rows` are all operations on single rows
 * (norms, rotation, routing, sums), which have no part in the bound. */
typedef struct {
    double rows, part[FM_N_PART];
} fm_profile;
fm_profile fm_profile_end(fm_run *r); /* the run has its own table again */

#endif
