/* SPDX-License-Identifier: Apache-2.0 */
/* State of the scheduler: queues, running sequences, and the steps in flight. */
#ifndef FM_LLM_SCHED_SCHED_INTERNAL_H
#define FM_LLM_SCHED_SCHED_INTERNAL_H

#include "base/slab.h"
#include "llm/sched/queue.h"
#include "llm/sched/sched.h"

/* With more waiting than this, lpm would spend its time matching. */
enum { FM__LPM_MAX = 128 };

/* One running sequence in a step.  Its out rows are out0, out0 + 1, ...: first
 * those that score the prompt, then those that are sampled. */
typedef struct {
    fm_request *r;        /* NULL: it ended while the step was in flight */
    int32_t     take;     /* rows in the planned step */
    int32_t     n_draft;  /* of these, at the end: draft tokens */
    int32_t     out0;
    int32_t     n_score;
    int32_t     n_sample; /* 0, or 1 + n_draft */
    int         is_new;   /* admitted while planning this step */
    int         is_last;  /* no output is wanted, and these are its last rows */
} fm__slot;

/* At most one is in flight while another is planned. */
enum { FM__STEPS = 2 };

typedef struct {
    fm_batch  batch; /* first: a pointer to the batch is one to the step */
    fm_out   *out;   /* [max_out] */
    fm__slot *slot;  /* [max_running] once it is launched */
    int       n_slot;
} fm__step;

typedef struct {
    fm_request *r;
    int32_t     n_match;
} fm__candidate;

/* What the forecast knows of one sequence. */
typedef struct {
    int32_t n_token, n_more; /* now, and expected on top */
    int32_t n_page;          /* held now */
    int32_t n_sole;          /* of these, those that come back at its end */
    int     is_exact;        /* n_more is no guess: it ends then */
} fm__future;

struct fm_sched {
    fm_sched_options opt;
    fm_kv           *kv;

    fm__queue waiting; /* by priority, then arrival */
    fm__queue done;    /* in the order they ended */
    fm__slot *running; /* [max_running] in the order of admission */
    int       n_running;
    uint64_t  n_arrival;

    double ratio;         /* of max_new_tokens that running requests are expected to use */
    int    is_planned;    /* a step is out, neither launched nor given up */
    int    n_prefill_row, n_score_row, n_draft_row; /* of the planned step */
    double now;
    int32_t n_held;       /* pages that loads hold until the next step */
    int32_t n_promised;     /* fm_sched_promised() while requests are admitted; -1: not known */
    int     awaits_lookups; /* requests are looked up in tiers below before they are admitted */
    int    n_preempted;   /* while planning this step */

    fm__step step[FM__STEPS]; /* in turn */
    int      oldest;          /* next to be committed */
    int      n_in_flight;

    fm_batch chain; /* [max_running] rows; empty: none */
    int      rests_states; /* none are kept of rows that decode */
    uint64_t n_simulated;

    fm__candidate *candidate; /* [FM__LPM_MAX] */
    fm__future    *future;    /* [max_running] */
    fm_sched_stats stats;
};

static inline int32_t fm__pages(const fm_sched *s, int64_t n_token)
{
    return (int32_t)((n_token + s->opt.page_size - 1) / s->opt.page_size);
}

static inline int32_t fm__free_pages(const fm_sched *s)
{
    return fm_kv_free_pages(s->kv) + fm_kv_evictable_pages(s->kv);
}

/* Everything known is computed but the newest token, and that is an output. */
static inline int fm__is_decoding(const fm_request *r)
{
    return r->n_token > r->n_prompt && r->n_computed == r->n_token - 1;
}

/* The step that is, or will be, planned next. */
static inline fm__step *fm__next_step(fm_sched *s)
{
    return &s->step[(s->oldest + s->n_in_flight) % FM__STEPS];
}

static inline int32_t fm__left(const fm_request *r) /* tokens it may still produce */
{
    return r->sampling.max_new_tokens - fm_request_n_output(r);
}

/* It was ended from outside, or steps in flight bring all it may produce. */
static inline int fm__is_ending(const fm_request *r)
{
    return r->finish != FM_FINISH_NONE || (r->n_pending && !fm__left(r));
}

/* sched.c */
int  fm__prefill_budget(const fm_sched_options *o); /* rows per step */
void fm__retire(fm_sched *s, fm_request *r);        /* ends one that was taken off its list */
void fm__put_back(fm_sched *s, fm_request *r);      /* the same, but it waits to start over */
void fm__sweep(fm_sched *s);                        /* retires running ones that have ended */

/* sched_plan.c: rows this step may still take of a prefill that goes on at `from`. */
int32_t fm__prefill_share(const fm_sched *s, const fm_request *r, int32_t from);
/* Gives the slot up to `want` more rows and the pages for them. */
void fm__give_rows(fm_sched *s, fm__slot *slot, int32_t want);
void fm__give_prefill(fm_sched *s, fm__slot *slot, int32_t want); /* and counts them */

/* sched_chain.c: where the states of a step are kept that launches r's rows now: not where the
 * last one's are. */
int32_t fm__keep_at(const fm_sched *s, const fm_request *r);
void    fm__carve_chain(fm_sched *s, fm_slab *slab);
int     fm__keeps_states(const fm_sched *s, const fm_request *r);

/* sched_admit.c */
void fm__admit(fm_sched *s);

/* sched_forecast.c: would the pages last if `r` joined, which would hold
 * n_cached tokens' pages at once, n_idle of them evictable until then?  n_kept
 * evictable pages in all, these among them, are not to be had. */
int    fm__fits(const fm_sched *s, const fm_request *r, int32_t n_cached, int32_t n_idle,
                int32_t n_kept);
double fm__ratio_at_rest(const fm_sched *s);
void   fm__ratio_fall(fm_sched *s);  /* one more decode step went well */
void   fm__ratio_raise(fm_sched *s); /* after a preemption */

#endif
