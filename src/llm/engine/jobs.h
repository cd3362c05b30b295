/* SPDX-License-Identifier: Apache-2.0 */
/* Prompts that were submitted and have answers to come, found by id: the one
 * table of ids between a caller and the scheduler.
 *
 *     fm_submitted (one prompt) ──> fm_job (one answer) ──> fm_request (scheduler)
 *
 * A prompt that another replica computes is in the table without jobs. */
#ifndef FM_LLM_ENGINE_JOBS_H
#define FM_LLM_ENGINE_JOBS_H

#include "base/id_table.h"
#include "llm/draft/gain.h"
#include "llm/engine/step.h"
#include "llm/grammar/grammar.h"
#include "llm/text/detokenize.h"
#include "llm/text/stop.h"

typedef struct fm_job       fm_job;
typedef struct fm_submitted fm_submitted;

/* One answer being generated: its request, and what turns tokens into text. */
struct fm_job {
    fm_request     request; /* request.user = the job */
    fm_submitted  *of;
    int            index;
    fm_partition  *partition; /* where it is scheduled */
    fm_detokenizer detok;
    fm_stop_filter stop;
    int            stopped;  /* index of the stop string that matched, or -1 */
    int            reported; /* its last event was posted */
    double         first_token; /* fm_now() of it; 0: none yet */
    fm_logit_bias *bias;
    fm_matcher    *matcher; /* of its grammar, or NULL */
    uint32_t      *mask;    /* [most drafts][words] what it allows behind drafts, or NULL */
    uint64_t       serial;  /* of all jobs, from 1 on */
    int32_t        ahead[FM_MAX_DRAFT]; /* drafts of the MTP layer for its next step, */
    int            n_ahead, row;        /* so many; its row in the chain, or -1 */
    int            is_copied;           /* the drafts under way are from its text */
    fm_acceptance  acceptance;          /* of the MTP layer's, */
    fm_acceptance  copying;             /* and those from its text */
    int            n_verify;            /* steps that sampled for it past the first token, */
    int            n_draft, n_accepted; /* drafts they verified, and accepted */
    int            needs_token; /* on the host before its next row: a grammar, penalties */
    fm_job        *prev, *next; /* of the same prompt */
};

struct fm_submitted {
    fm_id_link    link; /* first: under its id */
    uint64_t      id;
    int           n_left;  /* answers that have not ended */
    int           replica; /* that computes it; 0: this engine */
    int64_t       load;    /* tokens of one answer: prompt and what it may produce */
    double        when;    /* fm_now() */
    fm_job       *job;     /* first */
};

typedef fm_id_table fm_jobs; /* of fm_submitted; {0} is empty */

void          fm__jobs_fini(fm_jobs *t); /* frees every prompt and job in it */
fm_submitted *fm__jobs_find(const fm_jobs *t, uint64_t id); /* or NULL */

/* Puts a prompt into the table.  FM_E_ARG: its id is taken. */
fm_status fm__jobs_add(fm_jobs *t, const fm_submitted *what, fm_submitted **out);
void      fm__jobs_remove(fm_jobs *t, fm_submitted *p); /* with its jobs; O(1) */

void fm__job_link(fm_submitted *p, fm_job *j); /* p owns j from here */
void fm__job_end(fm_jobs *t, fm_job *j);       /* frees it, and its prompt with its last answer */

/* Every prompt, in no order: for (p = first(t); p; p = next(t, p)). */
fm_submitted *fm__jobs_first(const fm_jobs *t);
fm_submitted *fm__jobs_next(const fm_jobs *t, const fm_submitted *p);

#endif
