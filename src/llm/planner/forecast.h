/* SPDX-License-Identifier: Apache-2.0 */
/* What an engine would reach in every layout of a cluster: the memory plan of each rank, then the
 * simulation of the workload with the costs of the machine.
 *
 *     layouts ──plan of each rank──> those that fit ──simulate──> throughput, latencies ──> sorted
 */
#ifndef FM_LLM_PLANNER_FORECAST_H
#define FM_LLM_PLANNER_FORECAST_H

#include "llm/options.h"
#include "llm/plan/plan.h"
#include "llm/planner/layouts.h"
#include "llm/planner/step_model.h"

typedef struct {
    const fm_options     *options; /* of the engine; its sizes are the layout's */
    const char           *model;   /* its name among measured steps */
    const fm_tuned       *tuned;
    const fm_cluster     *cluster;
    fm_layout_wish        wish;
    int                   whole;   /* only layouts that use all devices of the cluster */
    const fm_sim_request *request; /* [n_request] */
    int                   n_request;
    int                   concurrency;        /* 0: as requests arrive */
    int                   is_steady;          /* users that ask again and again (simulate.h) */
    int                   is_paced;           /* requests come at a given rate, however fast answers are */
    double                slo_ttft, slo_tpot; /* seconds, 99th percentiles; 0: any */
    double                accept_length; /* tokens of a step with drafts; 0: engine's default 1 */
    int                   n_thread;      /* of the forecast itself */
    size_t host_total, host_available;   /* bytes of a CPU host; 0: the table's memory */
} fm_forecast_ask;

typedef struct {
    fm_rank_sizes size;
    int           n_rank, n_node;
    fm_status     rc;         /* FM_OK: it fits and was simulated */
    char          why[1024];  /* otherwise: the whole sentence of fm_why() */
    fm_plan       plan;       /* of the rank with the fewest pages */
    int64_t       max_tokens; /* of KV, all partitions and replicas together */
    double memory_left; /* bytes that weights and workspace of the fullest rank leave to KV pages */
    int    max_running;
    int    has_tiers; /* below the pool: sim.tiers counts */
    fm_sim_result sim;
    double        throughput;     /* tokens per second, in and out */
    int           keeps_up;       /* answers in time what comes at a rate: no faster than others */
    double        error;          /* relative: one standard deviation of measurements around it */
    int           meets;          /* the latencies that were asked for */
    double        by[FM_N_BOUND]; /* shares of the time of all stages, sum 1 */
    fm_bound      bound;          /* the largest */
} fm_forecast;

enum { FM_MAX_FORECAST = 512 };

/* Layouts of the ask into list[FM_MAX_FORECAST], the best first: those that fit, meet the latencies
 * and have the highest throughput; of those that keep up the ones with the fewest devices.
 * FM_E_ARG: no layout is possible for the model. */
fm_status fm_forecast_all(fm_forecast *list, int *n, const fm_forecast_ask *ask);

/* "tp 8 pp 2 ep 8, DP attention 8" */
void fm_forecast_name(fm_str *out, const fm_rank_sizes *s);

#endif
