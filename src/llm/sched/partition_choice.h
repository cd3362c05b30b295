/* SPDX-License-Identifier: Apache-2.0 */
/* Which partition of an engine a prompt goes to, and from which one that has nothing waiting takes
 * a request.  The engine and the simulation of it choose by these functions.
 *
 * Pure: nothing is changed, nothing allocates.  Ties go to the lowest index. */
#ifndef FM_LLM_SCHED_PARTITION_CHOICE_H
#define FM_LLM_SCHED_PARTITION_CHOICE_H

#include "llm/sched/sched.h"

typedef struct {
    const fm_kv    *kv;
    const fm_sched *sched;
    int64_t         load; /* tokens its unfinished requests came with and may still produce */
} fm_partition_view;

typedef struct {
    int n;
    fm_partition_view (*at)(const void *ctx, int i);
    const void *ctx;
} fm_partitions_view;

/* The partition with the smallest load, less what its cache has of the prompt token[0..n). */
int fm_choose_partition(const fm_partitions_view *p, const int32_t *token, int n);

/* The partition with the longest queue, for `to` to take a request from: how long answers get was
 * only guessed when prompts were assigned.  -1: `to` has requests waiting, or there is no other. */
int fm_choose_lender(const fm_partitions_view *p, int to);

#endif
