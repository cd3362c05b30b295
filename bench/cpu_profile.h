/* SPDX-License-Identifier: Apache-2.0 */
/* Where a forward pass on the CPU spends its time: a hook that adds up the seconds of every op.
 *
 *     fm_profile p;
 *     fm_profile_begin(&p, run);  ... passes ...  fm_profile_end(&p, run);     p.seconds[op] */
#ifndef FM_BENCH_CPU_PROFILE_H
#define FM_BENCH_CPU_PROFILE_H

#include "llm/op/run.h"

typedef struct {
    fm_op_hook hook;
    double     began, seconds[FM_N_OP];
} fm_profile;

void fm_profile_begin(fm_profile *p, fm_run *r);
void fm_profile_end(fm_profile *p, fm_run *r);

#endif
