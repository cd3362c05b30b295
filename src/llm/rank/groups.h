/* SPDX-License-Identifier: Apache-2.0 */
/* The groups of ranks a layout makes of a world. */
#ifndef FM_LLM_RANK_GROUPS_H
#define FM_LLM_RANK_GROUPS_H

#include "comm/world.h"
#include "llm/ranks.h"
#include "llm/rank/layout.h"

typedef struct {
    fm_ranks  ranks;  /* where a forward pass meets (llm/ranks.h) */
    fm_comm  *plan;   /* the stage's ranks, for step plans alone */
    fm_comm  *heads;  /* place 0 of each stage of the replica, in order; NULL elsewhere */
    fm_comm  *tiers; /* the replica's ranks, in order: how reads of pages went */
    fm_comm **replica; /* [n_replica] on rank 0: pairs with the leader of each other replica;
                          on such a leader [0] is its pair; NULL where there is none */
    int       n_replica;
} fm_groups;

/* Collective over the world. */
fm_status fm_groups_make(fm_groups *out, const fm_layout *l, fm_comm *world);
void      fm_groups_close(fm_groups *g); /* {0} is fine */

#endif
