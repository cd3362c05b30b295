/* SPDX-License-Identifier: Apache-2.0 */
/* A discrete-event simulation of serving: the engine's own scheduler and page
 * bookkeeping run over a workload, and a cost function says how long each step
 * takes.  Nothing is computed; tokens are invented, so every answer has the
 * length that its request asks for.
 *
 *     requests ──arrive──> replica ──> partition ──step──> cost ──> clock ──> latencies, throughput
 *
 *     replica     an engine of its own; a request goes to the one with the fewest tokens to do
 *     micro-batch of a pipeline: as many as there are lanes are in flight, stage after stage
 *     partition   the sequences of one attention group in a micro-batch: a scheduler and its pages
 *
 * Tiers below the pool are decided on by the engine's policy, too (below.h); replicas share one
 * directory of files, which begins empty, and what one writes the others find at once.
 *
 * The sequence of steps is the engine's (engine.c, engine/partitions.c; without the overlap
 * schedule): tests/golden/simulate.c compares them step by step. */
#ifndef FM_LLM_SIMULATE_SIMULATE_H
#define FM_LLM_SIMULATE_SIMULATE_H

#include "llm/kv/kv_cache.h"
#include "llm/sched/sched.h"
#include "llm/simulate/below.h"

typedef struct {
    const int32_t *token; /* [n_prompt] borrowed: prefixes are shared by their tokens */
    int            n_prompt;
    int            n_output; /* tokens it will generate */
    int            is_open;  /* the scheduler does not know that: it may end with any token, and
                                pages that were guessed too low are taken back by preemption */
    double arrival;          /* seconds from the start; ascending over the requests */
} fm_sim_request;

enum { FM_SIM_MAX_STAGE = 64 };

/* How long a step takes. */
typedef struct {
    double stage[FM_SIM_MAX_STAGE]; /* seconds that each stage is busy with it, while all cores are
                                       and each of its ranks has one */
    double reads[FM_SIM_MAX_STAGE]; /* of these, the seconds that bandwidth of the memory sets */
    double pass;                    /* from a stage to the next, and from the last one back */
} fm_sim_times;

/* What ranks of CPUs share: one that waits leaves its core, and its part of the memory's bandwidth,
 * to those that compute. */
typedef struct {
    int    n_core;    /* of all ranks together; 0: each has a device of its own */
    int    n_rank;    /* of a stage: they compute at the same time */
    double most_read; /* a rank reads at most so many times as fast as while all cores are busy */
} fm_sim_cores;

typedef struct {
    fm_sched_options    sched; /* of one partition */
    int                 share; /* prefixes between requests (the radix tree) */
    const fm_sim_tiers *tiers; /* below the pool of a replica; NULL: none */
    int                 n_replica, n_lane, n_group, n_stage; /* 0 counts as 1 */
    fm_sim_cores        cores;
    int                 n_draft; /* drafts of a request in a step; sched.simulated accepts them */
    int concurrency;             /* requests under way at most: the next one comes when one ends,
                                    and its latency counts from there; 0: no limit */
    int is_steady; /* `concurrency` users ask again and again: the first and the last request of
                      each only fill the machine and keep it full, and are not measured */
    double        patience; /* simulated seconds after which it is given up; 0: never */
    const double *pace; /* [n_replica] the steps of each take so many times as long; NULL: as step
                           says */

    /* batch[n_group] are the rows of each group, NULL for none. */
    void (*step)(void *ctx, const fm_batch *const *batch, fm_sim_times *out);
    void (*stepped)(void *ctx, const fm_sched_stats *so_far); /* of the partition that was just
                                                                 committed; may be NULL */
    void *ctx;
} fm_sim;

typedef struct {
    double               seconds;    /* until the last answer ended */
    double               throughput; /* tokens in and out per second, of what is measured */
    double               mean_ttft, mean_tpot, p99_ttft, p99_tpot;
    double               busy;    /* seconds that stages computed, all together */
    int                  is_over; /* 0: patience ended before the work did */
    int64_t              n_input, n_output;
    fm_sched_stats       sched; /* of all partitions together */
    fm_kv_stats          kv;
    fm_tier_policy_stats tiers;
} fm_sim_result;

/* FM_E_ARG: a request that can never run, or options out of range: a steady state needs more than
 * two requests of each user. */
fm_status fm_simulate(fm_sim_result *out, const fm_sim *sim, const fm_sim_request *request, int n);

#endif
