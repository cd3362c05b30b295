/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's own state: a loaded model, the ranks it runs on, and on the rank
 * that leads the micro-batches it plans and the prompts it answers. */
#ifndef FM_LLM_ENGINE_ENGINE_INTERNAL_H
#define FM_LLM_ENGINE_ENGINE_INTERNAL_H

#include "comm/shared.h"
#include "device/host_threads.h"
#include "llm/engine.h"
#include "llm/engine/events.h"
#include "llm/engine/jobs.h"
#include "llm/engine/step.h"
#include "llm/load/source.h"
#include "llm/model/model.h"
#include "llm/op/backend.h"
#include "llm/rank/courier.h"
#include "llm/rank/groups.h"
#include "llm/rank/layout.h"
#include "llm/sample/sample.h"

typedef struct fm_replicas fm_replicas; /* replicas.h */

/* The second back end of shadow mode, with memory of its own; zeros without one. */
typedef struct {
    fm_weights weights;
    void      *slab;
    size_t     bytes; /* of the slab */
    fm_plan    plan;
} fm_beside;

/* Speculation. */
typedef struct {
    int           most; /* drafts of one request in a step; 0: off */
    int           min_n, max_n; /* tokens of an n-gram that is looked up */
    int           is_adaptive;
    fm_step_cost  cost; /* of decode steps */
    fm_acceptance all;  /* of drafts of all requests */
    double        finished; /* fm_now() of the last step's end */
} fm_drafting;

struct fm_engine {
    fm_model_config   config;
    const fm_model   *model;
    const fm_backend *backend;
    fm_source        *source;
    fm_weights        weights;
    fm_shared         slab; /* of the weights */
    fm_plan           plan; /* of this rank */
    fm_beside         beside;
    fm_threads       *threads; /* the team and its cores */
    fm_run_limits     limits;
    int               max_running; /* sequences in one step, all partitions together */
    fm_run           *run;

    fm_world    *world;
    fm_layout    layout;
    fm_groups    groups;
    fm_courier  *courier;  /* NULL: this rank runs a replica alone */
    fm_replicas *replicas; /* NULL: there is one replica, or this is not rank 0 */
    int          is_open;  /* every rank has opened */
    int          reports;  /* communication times are reported at the end */
    void (*report)(const char *text);

    /* on the rank that leads a replica */
    fm_micro_batch *micro; /* [n_micro] */
    int             n_micro, n_group;
    uint32_t        n_launched; /* steps */
    int             overlaps;   /* the overlap schedule */
    fm_sampler    **sampler;    /* [n_thread] */
    fm_sampled     *sampled;    /* [n_group * max_out] of the step that was just chosen */
    int32_t        *token;      /* [n_group * max_out] the ids of these */
    fm_drafting     draft;
    fm_draw        *draw;       /* [n_group * max_out] how the back end is to sample a step */

    fm_tokenizer         *tokenizer; /* NULL: ids alone */
    fm_tokenizer_scratch *scratch;
    size_t                token_text; /* most bytes of text that one token can add */
    fm_grammars          *grammars;   /* NULL: no tokenizer */
    fm_jobs               jobs;
    size_t                stop_text; /* bytes that stop filters of all jobs may hold back */
    fm_events             events;    /* posted */
    int                   n_polled;  /* of these */
    fm_str                fresh;     /* text of one token */
    uint64_t              n_submitted, seed;
    double                load_seconds, forward_seconds, last_gen_throughput;
};

/* engine.c; the functions named own leave other replicas out */
fm_status fm__engine_step_own(fm_engine *e);
int       fm__engine_busy_own(const fm_engine *e);
fm_status fm__engine_forward(fm_engine *e, const fm_batch *b); /* this rank's part of a pass */
fm_status fm__engine_drain(fm_engine *e);                      /* finishes the steps in flight */

/* post.c */
void fm__post_step(fm_engine *e, const fm_step *s); /* events of its out rows */
void fm__post_ended(fm_engine *e, fm_partition *p); /* requests that are done: last events, then freed */
void fm__post_reserve(fm_engine *e);                /* room for the events of one step */

/* draft.c */
void fm__draft(fm_engine *e, fm_partition *p);             /* before p is planned */
void fm__draft_learn(fm_engine *e, const fm_step *s); /* after s is committed */

/* info.c */
fm_engine_info fm__engine_info_own(const fm_engine *e);
void           fm__engine_flush_own(fm_engine *e);

/* follow.c: what this rank is doing, for the report when the job dies */
void fm__engine_doing(fm_engine *e, const fm_batch *b, uint32_t serial); /* NULL: no rows */

/* partitions.c */
fm_status fm__partitions_create(fm_engine *e, int n_micro, const fm_sched_options *o, int share);
void      fm__partitions_destroy(fm_engine *e);

/* Where a new prompt goes: the smallest load, less what is cached of the prompt. */
fm_partition *fm__partition_for(fm_engine *e, const int32_t *token, int32_t n);

/* Moves a waiting request to each partition of m whose queue is empty. */
void fm__partitions_balance(fm_engine *e, fm_micro_batch *m);

fm_sched_stats fm__partitions_stats(const fm_engine *e);
void           fm__add_sched_stats(fm_sched_stats *sum, const fm_sched_stats *s);
int            fm__micro_batch_busy(const fm_engine *e, const fm_micro_batch *m);

static inline int fm__n_partition(const fm_engine *e)
{
    return e->n_micro * e->n_group;
}

static inline fm_partition *fm__partition(const fm_engine *e, int i)
{
    return &e->micro[i / e->n_group].partition[i % e->n_group];
}

#endif
