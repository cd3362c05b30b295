/* SPDX-License-Identifier: Apache-2.0 */
/* How the ranks of a job divide the work: from the sizes on the command line
 * to what this rank is.
 *
 *     world    = dp replicas x pp stages x tp ranks       (rank = (d * pp + p) * tp + t)
 *     stage    = tp ranks with the same layers; with DP attention dp groups of
 *                tp/dp ranks, each with sequences of its own (then world = pp x tp)
 *     experts  = ep sets of tp/ep ranks, each set with whole experts
 *
 * The words are SGLang's. */
#ifndef FM_LLM_RANK_LAYOUT_H
#define FM_LLM_RANK_LAYOUT_H

#include "base/str.h"
#include "comm/world.h"
#include "llm/model/shard.h"
#include "llm/op/ranks.h"

typedef struct {
    int tp, pp, dp, ep;
    int dp_attention; /* dp divides tp instead of multiplying the world */
} fm_rank_sizes;

typedef struct {
    fm_rank_sizes size;
    int           replica, n_replica; /* engines of their own */
    int           stage;              /* of size.pp */
    int           place;              /* of size.tp */
    int           is_leader;          /* plans the steps of its replica */
    fm_shard      shard;              /* layers included */
} fm_layout;

/* FM_E_ARG, saying which number must divide which, or how many ranks to start
 * and how. */
fm_status fm_layout_make(fm_layout *out, const fm_rank_sizes *size, const fm_model_config *c,
                         int world_rank, int world_size);

/* The stages' layers: cost[n_layer] of each and what the embedding and the head
 * add, so that the slowest stage is as fast as can be. */
void fm_layout_cut_layers(fm_range *stage, int n_stage, const double *cost, int n_layer,
                          double embed_cost, double head_cost);

/* The groups of this rank.  Collective over the world. */
typedef struct {
    fm_ranks ranks;
    fm_comm *leaders; /* one rank of each replica, rank 0 the first; NULL on the others */
    fm_comm *owned[6];
    fm_comm  self;
} fm_groups;

fm_status fm_groups_make(fm_groups *out, const fm_layout *l, fm_comm *world);
void      fm_groups_close(fm_groups *g);

/* A short table: rank, host, replica, stage, layers, place, heads, experts. */
fm_status fm_layout_print(const fm_layout *l, const fm_model_config *c, fm_world *w, fm_str *out);

#endif
