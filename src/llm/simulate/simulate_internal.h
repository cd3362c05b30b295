/* SPDX-License-Identifier: Apache-2.0 */
/* State of a simulation: its replicas with their micro-batches and partitions, its requests, the
 * clock. */
#ifndef FM_LLM_SIMULATE_SIMULATE_INTERNAL_H
#define FM_LLM_SIMULATE_SIMULATE_INTERNAL_H

#include "llm/simulate/simulate.h"

typedef struct {
    fm_kv          *kv;
    fm_sched       *sched;
    fm_tier_policy *tiers; /* NULL: there are none */
    int64_t         load;  /* tokens its unfinished requests came with and may still produce */
} partition;

typedef struct {
    partition       *part;  /* [n_group] */
    const fm_batch **batch; /* [n_group] of the step in flight */
    int              in_flight;
    double           launched, ends;
    double           wakes; /* when a load lets it go on, while nothing is in flight */
} micro_batch;

typedef struct {
    micro_batch *micro;                     /* [n_lane] */
    double       free_at[FM_SIM_MAX_STAGE]; /* when each stage can begin */
    double       busy[FM_SIM_MAX_STAGE];    /* seconds that each has computed */
    int64_t      load;
    fm__below    below;
} replica;

/* What becomes of one request. */
typedef struct {
    fm_request            request;
    const fm_sim_request *asked;
    replica              *replica;
    partition            *part;
    double                arrived;
    double                first, last; /* when its first and its last token came; first < 0: none */
} life;

typedef struct {
    const fm_sim *sim;
    int           n_replica, n_lane, n_group, n_stage;
    replica      *replica;
    fm__disk      disk;
    life         *life; /* [n] */
    int           n, n_arrived, n_live;
    int32_t      *chosen; /* [out rows of a step] */
    double        now;
} world;

static inline int fm__world_n_partition(const world *w) { return w->n_lane * w->n_group; }

static inline partition *fm__world_partition(const world *w, const replica *r, int i)
{
    return &r->micro[i / w->n_group].part[i % w->n_group];
}

/* world.c */
fm_status fm__world_open(world *w, const fm_sim *sim, const fm_sim_request *request, int n);
void      fm__world_close(world *w); /* one that failed to open, too */

/* result.c */
fm_status fm__world_summarise(fm_sim_result *out, const world *w);

#endif
