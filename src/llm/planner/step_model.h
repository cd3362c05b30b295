/* SPDX-License-Identifier: Apache-2.0 */
/* Seconds of a step in a layout: for each stage the sum over its ops (tuned.h), plus what its ranks
 * send each other (links.h), plus the host's part on the first.
 *
 * Ranks of a stage meet in every layer, so the slowest decides: the attention group with the most
 * work, the set of experts that routing happens to prefer, and on CPUs, whose cores serve others,
 * too, the one that is held up most.  Stages of a pipeline meet after every step, replicas at the
 * end of the job. */
#ifndef FM_LLM_PLANNER_STEP_MODEL_H
#define FM_LLM_PLANNER_STEP_MODEL_H

#include "llm/planner/links.h"
#include "llm/planner/work.h"
#include "llm/rank/layout.h"
#include "llm/simulate/simulate.h"

/* What a step's seconds go to. */
#define FM_BOUND_MAP(X)                                                                            \
    X(MEMORY, "reading weights")                                                                   \
    X(COMPUTE, "multiplying")                                                                      \
    X(ATTENTION, "attention")                                                                      \
    X(ROWS, "single rows and launches")                                                            \
    X(LINKS, "links")                                                                              \
    X(HOST, "the host between steps")                                                              \
    X(IDLE, "waiting")

typedef enum {
#define X(id, name) FM_BOUND_##id,
    FM_BOUND_MAP(X)
#undef X
        FM_N_BOUND
} fm_bound;

const char *fm_bound_name(fm_bound b);

typedef struct {
    const fm_tuned       *tuned;   /* borrowed */
    const fm_cluster     *cluster; /* borrowed */
    const fm_tuned_steps *steps;   /* of the model; NULL: not measured */
    fm_rank_sizes         size;
    int                   n_group;
    const fm_stage_work  *stage; /* [size.pp] borrowed */
    double                slow; /* CPU: ranks that share what the table calls the machine; GPU: 1 */
    double                op_s;
    int                   n_draft;    /* links of a chain before each step */
    int                   hides_host; /* the overlap schedule */
    int                   n_core;     /* of all ranks; 0: each has its own */
    double jitter;         /* relative standard deviation of a rank's time for the same work */
    double by[FM_N_BOUND]; /* out: seconds of all steps so far, of all stages */
} fm_step_model;

/* For fm_sim.cores: what the ranks of hosts share that have so many each, n_rank of them in a
 * stage; nothing on GPUs.  Hosts count as one, since layouts are alike on all. */
fm_sim_cores fm_shared_cores(const fm_tuned *t, int on_host, int n_node, int n_rank);

/* For fm_sim.step: ctx is an fm_step_model. */
void fm_step_seconds(void *ctx, const fm_batch *const *batch, fm_sim_times *out);

/* For fm_sim.pace: how unequal n replicas are whose ranks are held up by chance; 1 on a GPU. */
void fm_replica_paces(const fm_step_model *m, double *pace /* [n] */, int n);

/* Of the first stage of one rank: seconds by kind of work, launches left out; with empty tables of
 * shares the least possible ones. */
void fm_step_work(const fm_step_model *m, const fm_batch *batch, double *work /* [FM_N_WORK] */);

#endif
