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

#include "base/status.h"
#include "base/str.h"
#include "llm/weights/shard.h"

typedef struct {
    int tp, pp, dp, ep;
    int dp_attention; /* dp divides tp instead of multiplying the world */
} fm_rank_sizes;

typedef struct {
    fm_rank_sizes size;
    int           replica, n_replica; /* engines of their own */
    int           stage;              /* of size.pp */
    int           place;              /* of size.tp */
    int           n_group;            /* attention groups of a stage */
    int           is_leader;          /* plans the steps of its replica */
    fm_shard      shard;              /* layers: all, until the stages are cut */
} fm_layout;

/* FM_E_ARG, saying which number must divide which, or how many ranks to start
 * and how. */
fm_status fm_layout_make(fm_layout *out, const fm_rank_sizes *size, const fm_model_config *c,
                         int world_rank, int world_size);

/* The stages' layers: cost[n_layer] of each and what the embedding and the head
 * add, so that the slowest stage is as fast as can be.  Each has at least one. */
void fm_layout_cut_layers(fm_range *stage, int n_stage, const double *cost, int n_layer,
                          double embed_cost, double head_cost);

/* "8,10": layers of each stage.  FM_E_ARG: not one number per stage, or their
 * sum is not the model's. */
fm_status fm_layout_read_layers(fm_range *stage, int n_stage, const char *list, int n_layer);

/* A short table: the ranks of each stage, its layers, and what one rank has. */
void fm_layout_print(const fm_layout *l, const fm_range *stage, const fm_model_config *c,
                     fm_str *out);

#endif
