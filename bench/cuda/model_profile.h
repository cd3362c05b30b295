/* SPDX-License-Identifier: Apache-2.0 */
/* A table of operations that marks the stream behind each op of another one:
 * put it in front of a run that is not recorded to learn where a forward pass
 * spends its time on the GPU. */
#ifndef FM_BENCH_CUDA_MODEL_PROFILE_H
#define FM_BENCH_CUDA_MODEL_PROFILE_H

#include "bench/cpu_bound.h"
#include "llm/op/run.h"

typedef enum {
    FM_KIND_EMBED, /* with the page tables of the step */
    FM_KIND_NORM,
    FM_KIND_LINEAR,
    FM_KIND_ROPE,
    FM_KIND_STORE,
    FM_KIND_ATTEND,
    FM_KIND_ROUTE,
    FM_KIND_MLP,
    FM_KIND_EXPERTS,
    FM_KIND_ADD,
    FM_KIND_HEAD,
    FM_N_KIND
} fm_kind;

const char *fm_kind_name(fm_kind k);
int         fm_kind_part(fm_kind k); /* the fm_part it counts to; -1: none */

void fm_gpu_profile_begin(fm_run *r); /* one run at a time */
void fm_gpu_profile_end(fm_run *r);   /* the run has its own table again */

/* us by kind of the pass since the last call; the GPU has finished it. */
void fm_gpu_profile_take(double us[FM_N_KIND]);

#endif
