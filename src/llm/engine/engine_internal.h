/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the engine share.
 *
 *     lane   a pass in flight; a pipeline of pp stages has pp of them, so that
 *            every stage has work
 *     seat   one attention group in one lane: sequences, a scheduler and pages
 *            of its own
 *
 * One rank, or ranks that only divide layers among them, have one of each.
 *
 * Where the back end chooses tokens, a lane is planned one step ahead: the step
 * after the one in flight is launched before the tokens it starts from are known
 * here, on one rank or many.  A pipeline does not: its stages are busy with the
 * steps of other lanes, and its tokens are chosen here. */
#ifndef FM_LLM_ENGINE_INTERNAL_H
#define FM_LLM_ENGINE_INTERNAL_H

#include "base/str.h"
#include "comm/shared.h"
#include "device/host_threads.h"
#include "llm/engine.h"
#include "llm/grammar/grammar.h"
#include "llm/load/source.h"
#include "llm/model/weights.h"
#include "llm/op/backend.h"
#include "llm/rank/courier.h"
#include "llm/rank/groups.h"
#include "llm/rank/layout.h"
#include "llm/sample/sample.h"
#include "llm/text/detokenize.h"
#include "llm/text/stop.h"

typedef struct {
    fm_kv    *kv;
    fm_sched *sched;
    int64_t   load; /* tokens its unfinished jobs came with and may still produce */
} fm_seat;

/* What a seat has of a step. */
typedef struct {
    const fm_batch *batch; /* the scheduler's; NULL: no rows */
    int             row0;  /* its first out row among those of the lane */
} fm_seat_rows;

/* A step that is planned, then launched. */
typedef struct {
    uint32_t      serial;
    fm_seat_rows *rows;      /* [n_group] of each seat */
    fm_read_plan  plan;      /* what this rank runs of it */
    int           is_chosen; /* the back end chooses its tokens, for this ticket */
    int           ticket;
    int           is_free;   /* nothing in the next step depends on its tokens but its rows */
} fm_flight;

/* A step may be launched while one other is under way. */
enum { FM__FLIGHTS = 2 };

typedef struct {
    fm_seat  *seat;  /* [n_group] */
    int32_t   page0; /* its pages begin here in every group's pool */
    fm_flight flight[FM__FLIGHTS]; /* in turn */
    int       oldest, n_flight;    /* the next to end, and how many are under way */
} fm_lane;

/* One answer being written: a request and what turns its tokens into text. */
typedef struct fm_job {
    fm_request     request; /* request.user = the job */
    uint64_t       id;
    int            index;
    fm_seat       *seat;
    int64_t        load; /* its part of the seat's */
    fm_detokenizer detok;
    fm_stop_filter stop;
    int            stopped;  /* index of the stop string that matched, or -1 */
    int            reported; /* its last event is out */
    double         submitted; /* fm_now() */
    fm_logit_bias *bias;
    fm_matcher    *matcher; /* NULL: it may say anything */
    struct fm_job *next;
} fm_job;

/* An event whose text lies in the outbox. */
typedef struct {
    fm_event   ev;
    size_t     text_at;
    fm_sampled sampled;
} fm_posted;

typedef struct {
    fm_posted *post; /* [cap] */
    int        n, next, cap;
    fm_str     text;
} fm_outbox;

typedef struct fm_replicas fm_replicas; /* engine_replicas.h */

/* What a back end that runs along has in its own memory; zeros without one. */
typedef struct {
    fm_weights weights;
    void      *slab;
    size_t     bytes; /* of the slab */
    fm_plan    plan;
} fm_beside;

struct fm_engine {
    fm_model_config config;
    const fm_backend *backend;
    fm_source      *source;
    fm_weights      weights;
    fm_shared       slab; /* of the weights */
    fm_plan         plan; /* of this rank */
    fm_beside       beside; /* of backend->also */
    fm_threads     *threads; /* the team and its cores */
    fm_run_limits   limits;
    int             max_running; /* sequences in one step, all seats together */
    fm_run         *run;

    fm_world   *world;
    fm_layout   layout;
    fm_groups   groups;
    fm_courier *courier;  /* NULL: nobody else to tell */
    fm_replicas *replicas; /* NULL: one engine is all there is */
    int         is_open;  /* all ranks have come so far */
    int         reports;  /* what communication cost, at the end */
    void (*report)(const char *text);

    /* leaders alone */
    fm_lane     *lane;    /* [n_lane] */
    int          n_lane, n_group;
    uint32_t     n_launched;
    int          overlaps; /* steps are planned ahead */
    fm_sampler **sampler; /* [n_thread] */
    fm_sampled  *sampled; /* [n_group * max_out] of the step that just ended */
    fm_request **row;     /* [n_group * max_out] behind each */
    int32_t     *token;   /* [n_group * max_out] */
    fm_draw     *draw;    /* [max_out] what a back end that samples is asked for */

    fm_tokenizer         *tokenizer;
    fm_tokenizer_scratch *scratch;
    fm_grammars          *grammars; /* NULL: no tokenizer */
    fm_job               *jobs; /* not yet reported done */
    fm_outbox             outbox;
    uint64_t              next_id, seed;
    double                load_seconds, forward_seconds, last_gen_throughput;
};

/* engine_jobs.c: events of a seat's step, NULL: there was none, then its ended jobs. */
void fm__engine_post(fm_engine *e, fm_seat *s, const fm_seat_rows *rows);
void fm__engine_post_event(fm_engine *e, const fm_event *ev); /* another engine's */
void fm__engine_free_jobs(fm_engine *e);

/* engine.c: own is without other replicas */
fm_status      fm__engine_step_own(fm_engine *e);
int            fm__engine_busy_own(const fm_engine *e);
fm_engine_info fm__engine_info_own(const fm_engine *e);
void           fm__engine_flush_own(fm_engine *e);
fm_status fm__engine_forward(fm_engine *e, const fm_batch *b); /* this rank's part of a pass */
fm_status fm__engine_drain(fm_engine *e);                      /* passes in flight end */
void      fm__engine_give_up(fm_engine *e);                    /* and are forgotten */

/* engine_follow.c: for the line about this rank's end */
void fm__engine_doing(fm_engine *e, const fm_batch *b, uint32_t serial); /* NULL: no rows */

/* engine_lanes.c */
fm_status      fm__lanes_create(fm_engine *e, int n_lane, const fm_sched_options *o, int share);
void           fm__lanes_destroy(fm_engine *e);
fm_seat       *fm__lanes_deal(fm_engine *e, const int32_t *token, int32_t n); /* for a new prompt */
void           fm__lanes_level(fm_engine *e, fm_lane *l); /* before it is planned */
fm_sched_stats fm__lanes_stats(const fm_engine *e);
void           fm__add_sched_stats(fm_sched_stats *sum, const fm_sched_stats *s);
int            fm__seat_busy(const fm_seat *s);
int            fm__lane_busy(const fm_engine *e, const fm_lane *l); /* anyone runs or waits */

static inline fm_seat *fm__seat(const fm_engine *e, int i) /* of n_lane * n_group */
{
    return &e->lane[i / e->n_group].seat[i % e->n_group];
}

#endif
