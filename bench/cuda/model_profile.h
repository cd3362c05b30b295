/* SPDX-License-Identifier: Apache-2.0 */
/* Where a forward pass on the GPU spends its time: a hook that marks the stream behind every op
 * of a run that is not recorded. */
#ifndef FM_BENCH_CUDA_MODEL_PROFILE_H
#define FM_BENCH_CUDA_MODEL_PROFILE_H

#include "llm/op/run.h"

void fm_gpu_profile_begin(fm_run *r); /* one run at a time */
void fm_gpu_profile_end(fm_run *r);

/* us by op of the pass since the last call; the GPU has finished it. */
void fm_gpu_profile_take(double us[FM_N_OP]);

#endif
