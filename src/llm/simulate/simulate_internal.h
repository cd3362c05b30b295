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

/* Where the step of a micro-batch is. */
typedef enum {
    FLIGHT_NONE,     /* nothing is in flight */
    FLIGHT_TRAVELS,  /* until `due`, to `stage` or from the last one back */
    FLIGHT_WAITS,    /* for `stage`, which computes another */
    FLIGHT_COMPUTES, /* in `stage`, for `left` seconds more of a core */
} flight;

typedef struct {
    partition       *part;  /* [n_group] */
    const fm_batch **batch; /* [n_group] of the step in flight */
    flight           state;
    fm_sim_times     times; /* of that step */
    int              stage;
    double           due, left;
    int64_t          serial; /* of its launch */
    double           launched;
    double           wakes; /* when a load lets it go on, while nothing is in flight */
} micro_batch;

typedef struct {
    micro_batch *micro; /* [n_lane] */
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
    double        busy;        /* seconds that stages have computed, all together */
    int           n_computing; /* of them now */
    int64_t       n_launched;
} world;

static inline int fm__world_n_partition(const world *w) { return w->n_lane * w->n_group; }

static inline partition *fm__world_partition(const world *w, const replica *r, int i)
{
    return &r->micro[i / w->n_group].part[i % w->n_group];
}

/* stages.c: a stage computes one step at a time, in the order in which they were launched. */
void   fm__stages_launch(world *w, micro_batch *m, double begins);            /* times are set */
double fm__stages_next(const world *w, replica **whose, micro_batch **which); /* INFINITY: none */
void   fm__stages_compute_until(world *w, double now);                        /* moves the clock */
int    fm__stages_advance(world *w, replica *r, micro_batch *m); /* 1: its step has ended */

/* world.c */
fm_status fm__world_open(world *w, const fm_sim *sim, const fm_sim_request *request, int n);
void      fm__world_close(world *w); /* one that failed to open, too */

/* result.c */
fm_status fm__world_summarise(fm_sim_result *out, const world *w);

#endif
