/* SPDX-License-Identifier: Apache-2.0 */
/* One sequence being generated: what was asked, and how far it is. */
#ifndef FM_LLM_SCHED_REQUEST_H
#define FM_LLM_SCHED_REQUEST_H

#include <stdint.h>

#include "llm/kv/kv_cache.h"
#include "llm/sample/sample.h"

typedef enum {
    FM_REQ_WAITING,
    FM_REQ_RUNNING,
    FM_REQ_DONE,
} fm_req_state;

typedef struct fm_request fm_request;

/* Neighbours in a level of the queue (sched/queue.h). */
typedef struct {
    fm_request *prev, *next;
} fm_queue_link;

enum { FM_QUEUE_LEVELS = 8 };

struct fm_request {
    uint64_t    id;
    int         priority;   /* higher first */
    fm_sampling sampling;
    const uint32_t *allowed; /* bits of the tokens it may sample next; NULL: all */
    const uint32_t *allowed_behind; /* [n_draft][mask_words] the same behind each draft */
    int32_t     drafts_at;  /* position of the row before the first of these; 0: there were none */
    int32_t     mask_words;
    int32_t     n_score;    /* prompt rows before the last whose logits are wanted, too */
    int         is_sequential; /* its next row needs more of the last token than its embedding: a
                                * grammar's mask, penalties, drafts.  No step is planned ahead of it */

    /* prompt then output, one array of capacity n_prompt + max_new_tokens */
    int32_t *token;
    int32_t  n_prompt;
    int32_t  n_token;    /* prompt + output so far */
    int32_t  n_pending;  /* of these, at the end: chosen by steps in flight and not yet known */
    int32_t  n_draft;    /* proposed tokens behind n_token, verified by the next step */

    /* the scheduler's */
    fm_req_state state;
    fm_finish    finish;
    int32_t      matched_stop; /* the id that stopped it, or -1 */
    int32_t      n_computed;   /* leading tokens whose KV is in the lease */
    int32_t      n_published;  /* leading tokens offered to the tree */
    int32_t      n_cached;     /* prompt tokens that came from the tree, first admission */
    int32_t      n_from_host, n_from_disk; /* of n_cached: loaded from a tier below */
    int32_t      n_loaded;     /* pages loaded from a tier below for it while it waits */
    int          is_loading;   /* pages are being loaded from a tier below: not admitted until they are there */
    int          is_looked_up; /* what the tiers below have of it was asked for already */
    int          looks_again;  /* it is looked up again while it waits: what is stored changes, and
                                * pages that were loaded may have been evicted */
    int32_t      below_from;   /* pages of it that the pool had then */
    int32_t      n_scored;     /* of n_score, how many are done */
    double       admitted;     /* when it first joined, by the scheduler's clock */
    int32_t      n_preempted;
    double       preempted, preempted_s; /* when it was last, and how long it waited for that */
    int32_t      n_overtaken;  /* times a request behind it was admitted first, */
    int32_t      n_passed;     /* and those while it waited for pages, by one that shares cached ones */
    int32_t      kept;         /* 1 + place of the hidden state of its last computed row; 0: nowhere */
    int          kept_half;    /* which of its two sets of places has it */
    int          has_lease;
    fm_kv_lease  lease;
    uint64_t     arrival;      /* order of submission */
    fm_queue_link link[FM_QUEUE_LEVELS];
    int           n_level; /* that it is linked in */

    void *user; /* the submitter's */
};

static inline fm_request *fm_request_next(const fm_request *r) /* in its queue, or NULL */
{
    return r->link[0].next;
}

static inline int32_t fm_request_n_output(const fm_request *r)
{
    return r->n_token - r->n_prompt;
}

static inline int32_t fm_request_n_known(const fm_request *r) /* outputs */
{
    return fm_request_n_output(r) - r->n_pending;
}

/* The next prompt position that is scored: what comes before may be cached. */
static inline int32_t fm_request_next_score(const fm_request *r)
{
    return r->n_prompt - 1 - (r->n_score - r->n_scored);
}

/* Leading tokens to be looked up in the cache, and one more.  Only the prompt is: generated tokens
 * are computed again in their own form.  Where some exist the prompt's last row
 * needs no logits; rows that are still to be scored need them. */
static inline int32_t fm_request_n_lookup(const fm_request *r)
{
    if (r->n_scored < r->n_score) return fm_request_next_score(r) + 1;
    return r->n_prompt + (r->n_token > r->n_prompt);
}

#endif
