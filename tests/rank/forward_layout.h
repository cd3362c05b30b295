/* SPDX-License-Identifier: Apache-2.0 */
/* A way to divide a model among the ranks of a test. */
#ifndef FM_TESTS_RANK_FORWARD_LAYOUT_H
#define FM_TESTS_RANK_FORWARD_LAYOUT_H

#include "llm/weights/shard.h"
#include "llm/ranks.h"
#include "rank.h"

typedef struct {
    int tp, pp, groups, ep, n_lane;
    int pads; /* on a GPU: decode steps get one of a few sizes */
} layout;

fm_shard layout_shard(const layout *l, int rank, int n_layer);

/* Experts dealt to the sets backwards, and every third one to the next set as well; NULL: there
 * is only one set.  The caller's. */
fm_placement *layout_placement(const layout *l, fm_world *w, int n_expert);

/* The groups of ranks this one meets, until closed. */
fm_ranks layout_ranks(const layout *l, fm_world *w, const fm_shard *shard);
void     layout_ranks_close(fm_ranks *r);

#endif
