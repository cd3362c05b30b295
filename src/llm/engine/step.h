/* SPDX-License-Identifier: Apache-2.0 */
/* A step: one forward pass over rows of many sequences, from planning to posting.
 *
 *     plan ──> share ──> run ──> choose ──> commit ──> post
 *
 *     micro-batch   the sequences that run in one pass.  A pipeline of pp stages
 *                   has pp micro-batches in flight, so that every stage has work;
 *                   otherwise there is one
 *     partition     the sequences of one attention group in one micro-batch, with
 *                   a scheduler and pages of their own.  With DP attention there
 *                   is one per group, otherwise one
 *
 * With the overlap schedule a micro-batch has two steps in flight: the second is
 * launched before the tokens it starts from are known on the host.  A pipeline
 * does not need it: its stages are busy with other micro-batches. */
#ifndef FM_LLM_ENGINE_STEP_H
#define FM_LLM_ENGINE_STEP_H

#include "llm/draft/ngram.h"
#include "llm/rank/plan_wire.h"
#include "llm/sched/sched.h"
#include "llm/tier_policy/tier_policy.h"

typedef struct {
    fm_kv      *kv;
    fm_sched   *sched;
    fm_tier_policy *tier_policy; /* NULL: there is nothing below the pool */
    fm_ngram  **ngram; /* by lease: n-grams of the text that has it; NULL: none are drafted from */
    int64_t     load;    /* tokens its unfinished requests came with and may still produce */
} fm_partition;

/* The chain of drafts that was made for a step (chain.c). */
typedef struct {
    int    n_link;
    double seconds;
} fm_chain_made;

typedef struct {
    uint32_t         serial; /* counts the steps of an engine */
    double           launched; /* fm_now() when it was shared */
    const fm_batch **batch;  /* [n_group] rows of each partition, its scheduler's; NULL: none */
    const fm_out   **out;    /* [n_out] the request that reads each out row and what for, partition
                              * after partition */
    int              n_row, n_out; /* of all partitions */
    fm_read_plan     plan;   /* what this rank runs of it */
    fm_chain_made    chain;  /* whose drafts it verifies */
    int              is_on_device; /* the back end samples its tokens; `ticket` fetches them */
    int              ticket;
} fm_step;

enum { FM_STEPS_IN_FLIGHT = 2 };

typedef struct {
    fm_partition *partition; /* [n_group] */
    int32_t       page0;     /* its pages begin here in every group's pool, */
    int32_t       kept0;     /* and here its places of kept states */
    fm_chain_made chain;     /* for its next step */
    fm_step       step[FM_STEPS_IN_FLIGHT]; /* used in turn */
    int           oldest, n_in_flight;
} fm_micro_batch;

#endif
