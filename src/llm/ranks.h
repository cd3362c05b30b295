/* SPDX-License-Identifier: Apache-2.0 */
/* The groups of ranks a forward pass meets in; each may be a group of one.
 *
 *     replica   rank = stage * (ranks of a stage) + place in the stage;
 *               rank 0 plans the steps and takes the logits
 *     stage     those that hold the same layers: place = group * (ranks of a
 *               group) + place in the group, and also set of experts * (ranks
 *               of a set) + place in the set
 *     attn      one attention group: the same rows          (shard.attn)
 *     group     one rank of each attention group, same place (shard.group)
 *     channel   ranks that divide the same experts          (shard.channel)
 *
 * Of the jobs a group can have in flight, a run keeps up to three between its
 * verbs in `replica` (logits and x on their way) and two in each other one. */
#ifndef FM_LLM_RANKS_H
#define FM_LLM_RANKS_H

#include "comm/comm.h"

typedef struct {
    fm_comm *replica, *stage, *attn, *group, *channel; /* borrowed */
} fm_ranks;

static inline fm_ranks fm_ranks_self(fm_comm *self)
{
    return (fm_ranks){self, self, self, self, self};
}

#endif
