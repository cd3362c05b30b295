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
#include "llm/engine/tiers.h"
#include "llm/engine/tracing.h"
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
    int           most;               /* drafts of one request in a step; 0: off */
    int           is_ngram, is_chain; /* where they come from: the request's text, the MTP layer */
    int           min_n, max_n;       /* tokens of an n-gram that is looked up */
    fm_ngram    **ngram;              /* leader: [n_ngram] of all partitions' leases */
    int           n_ngram;
    uint64_t      n_job; /* so far */
    int           is_adaptive;
    double        simulated;           /* forced accept length, for measurements; 0: the true one */
    fm_step_cost  cost[FM_PACE_SIZES]; /* of decode steps, by their sequences (fm_pace_size) */
    int           n_seq;               /* of the last step */
    fm_look       look;                /* at texts, where steps are planned ahead */
    fm_acceptance all;                 /* of drafts of all requests */
    double        finished;            /* fm_now() of the last step's end */
    fm_pace       pace;                /* of decode steps, by links */
    fm_depths     depths;              /* depth up to which the MTP layer's drafts are right */
    fm_rest       rest[FM_PACE_SIZES]; /* of filling its cache, by sequences as well */
    int           can_rest;            /* adaptive, on a back end without recorded passes */
    int           pays;                /* at least one chain length pays */
    int           n_put_off;           /* steps in a row for which no length was tried */
    int32_t      *token;               /* [max_running] of the chain this rank runs */
    int32_t      *id;                  /* leader: [most][n_group * max_running] what a chain gave */
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
    fm_tracing       *tracing; /* NULL: nothing is recorded */

    fm_world    *world;
    int          borrows_world; /* its owner closes it */
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
    fm_page_feed   *page_feed;  /* what their caches hold */
    uint32_t        n_launched; /* steps */
    int             overlaps;   /* the overlap schedule */
    fm_sampler    **sampler;    /* [n_thread] */
    fm_sampled     *sampled;    /* [n_group * max_out] of the step that was just chosen */
    int32_t        *token;      /* [n_group * max_out] the ids of these */
    fm_drafting     draft;
    fm_tiers        tiers; /* on every rank */
    fm_draw        *draw;  /* [n_group * max_out] how the back end is to sample a step */

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
    double                host_seconds, gap_seconds; /* around forward passes; between busy steps */
    double                stepped;                   /* fm_now() of the last step's end */
    int                   was_busy;                  /* with work left to do */
};

/* engine.c; the functions named own leave other replicas out */
fm_status fm__engine_step_own(fm_engine *e);
int       fm__engine_busy_own(const fm_engine *e);
fm_status fm__engine_forward(fm_engine *e, const fm_batch *b); /* this rank's part of a pass */
fm_status fm__engine_drain(fm_engine *e);                      /* finishes the steps in flight */

/* profile.c: on a follower, a plan of kind FM_PLAN_TRACE came */
fm_status fm__engine_obey_trace(fm_engine *e);
/* on another replica's leader, when rank 0 starts or stops recording */
fm_status fm__engine_lead_trace(fm_engine *e);

/* post.c */
void fm__post_step(fm_engine *e, const fm_step *s); /* events of its out rows */
void fm__post_ended(fm_engine    *e,
                    fm_partition *p); /* requests that are done: last events, then freed */
void fm__post_begun(fm_engine *e, fm_job *j, const fm_begun *begun); /* tokens sampled elsewhere */
void fm__post_reserve(fm_engine *e); /* room for the events of one step */

/* draft.c */
void fm__draft(fm_engine *e, fm_partition *p);                /* before p is planned */
void fm__draft_learn(fm_engine *e, const fm_step *s);         /* after s is committed */
int  fm__drafts_for(const fm_engine *e, fm_job *j, int most); /* as many as pay */

/* chain.c: drafts of the MTP layer for m's next step.  `lane`: of the plan that tells the others.
 */
fm_status fm__chain(fm_engine *e, fm_micro_batch *m, int lane);
fm_status fm__chain_run(fm_engine *e, const fm_batch *b, int n_link, int32_t *id); /* this rank's */

/* tiers.c, tiers_leader.c, tiers_info.c; nothing where there are no tiers */
int       fm__tiers_max_moves(fm_engine *e); /* of one partition before one step */
fm_status fm__tiers_add_partition(fm_engine *e, fm_partition *p, int index, int n_partition);
/* On this rank, when no pass follows: later device work is ordered behind the copies. */
fm_status fm__tiers_carry_out(fm_engine *e, const fm_page_move *m, int n, int has_pass);
fm_status fm__tiers_prepare(fm_engine *e, const fm_micro_batch *m);        /* before it is planned */
/* every rank carries out the moves; has_pass: a forward pass follows */
fm_status fm__tiers_move(fm_engine *e, const fm_micro_batch *m, int has_pass);
fm_status fm__tiers_wait(fm_engine *e);                          /* briefly, while a load runs */
void      fm__tiers_learn(fm_engine *e, const fm_step *s);       /* after s is committed */
/* What the link to host memory takes for a page, measured before any page is in use. */
fm_status fm__tiers_time_copies(fm_engine *e);
fm_status fm__tiers_made(fm_engine *e, int waits); /* goes on with what copies were in the way of */
fm_status fm__tiers_demote(fm_engine *e, fm_micro_batch *m);     /* for tests, after every step */
fm_status fm__tiers_save(fm_engine *e, int *more); /* with nothing in flight; fm_engine_save */
fm_status fm__tiers_finish(fm_engine *e); /* before the end: saves what is to be saved */
fm_tiers_info fm__tiers_info(const fm_engine *e);
void          fm__add_tiers_info(fm_tiers_info *sum, const fm_tiers_info *i);
void          fm__open_close_tiers(fm_engine *e); /* open_tiers.c */

/* tiers_ranks.c */
fm_status     fm__tiers_meet(fm_engine *e); /* every rank, when it opens */
void          fm__tiers_part(fm_engine *e);
fm_status     fm__tiers_follow(fm_engine *e, const fm_read_plan *p);
fm_status     fm__tiers_send(fm_engine *e, const fm_micro_batch *m, int has_pass); /* moves to all */
fm_status     fm__tiers_take_reports(fm_engine *e);  /* takes the replies that have arrived */
fm_status     fm__tiers_await_reports(fm_engine *e); /* waits for all replies, before closing */
fm_slot_state fm__tiers_view(void *engine, int slot);

/* info.c: a step that began then has ended, with so many seconds in forward passes */
void           fm__engine_count_time(fm_engine *e, double began, double forward);
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
int            fm__micro_batch_busy(const fm_engine *e, const fm_micro_batch *m);

/* tracing.h: a phase of the loop, or a step, ended */
static inline void fm__trace_phase(const fm_engine *e, fm_phase p)
{
    if (e->tracing) fm__tracing_phase(e->tracing, p);
}

static inline void fm__trace_step(const fm_engine *e, const fm_step *s)
{
    if (e->tracing) fm__tracing_step(e->tracing, s->batch, e->n_group, s->serial, s->launched);
}

static inline int fm__n_partition(const fm_engine *e) { return e->n_micro * e->n_group; }

static inline fm_partition *fm__partition(const fm_engine *e, int i)
{
    return &e->micro[i / e->n_group].partition[i % e->n_group];
}

#endif
