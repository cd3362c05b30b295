/* SPDX-License-Identifier: Apache-2.0 */
/* The memory plan: weights + step workspace + KV pages, in closed form, made
 * before anything is loaded.  What it says is what the process will hold. */
#ifndef FM_LLM_PLAN_PLAN_H
#define FM_LLM_PLAN_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/str.h"

typedef struct {
    const char *where;        /* "in main memory" */
    size_t  total, available; /* of the machine, bytes */
    size_t  reserve;          /* 0: a margin is left alone */
    const char *kept_for;     /* what needs the reserve; kept */
    double  mem_fraction;     /* 0: what is available minus a margin */
    int64_t max_total_tokens; /* 0: as many as fit and can be used */
    int     page_size;
    int     max_running, max_context;
    size_t  weights, workspace; /* bytes, exact */
    size_t  kv_page;            /* bytes of one page, its books included */
    const char *kv_type;        /* "bfloat16"; kept */
    size_t  host;               /* taken in main memory by an engine whose memory is elsewhere */
    const char *host_for;       /* what it is; kept */

    /* For the sentence of a refusal; zeros are fine. */
    int         n_rank, n_layer; /* that hold the model now, and layers of the whole model */
    const char *limited_by;      /* "; the control group X allows 2.00 GiB" */
    int64_t     chunk_fits;      /* the largest --chunked-prefill-size found that would fit */
} fm_plan_request;

typedef struct {
    char        where[80];
    const char *kept_for, *kv_type;
    size_t  weights, workspace, kv; /* bytes */
    size_t  reserve;                /* not counted in the budget */
    size_t  host;                   /* in main memory, where that is not `where`; in no sum */
    const char *host_for;
    size_t  budget, available;      /* what all of it may take, and what is free */
    int     n_page, page_size;
    int64_t max_tokens;             /* n_page * page_size */

    /* A device's plan: main memory that is pinned for it, beside all of the above. */
    size_t pinned;           /* bytes; 0: none */
    size_t main_available;   /* bytes of main memory that are free; 0: not known */
    int    n_host_page;      /* of these bytes: pages of prefixes below the pool */
} fm_plan;

size_t fm_plan_budget(const fm_plan_request *q); /* bytes for weights, workspace and pages */

/* FM_E_OOM, saying by how much it does not fit and which flags would make it. */
fm_status fm_plan_make(fm_plan *out, const fm_plan_request *q);

/* A short table; its integers add up. */
void fm_plan_print(const fm_plan *p, fm_str *out);

#endif
