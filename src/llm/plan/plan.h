/* SPDX-License-Identifier: Apache-2.0 */
/* The memory plan: weights + step workspace + KV pages, in closed form, made
 * before anything is loaded.  What it says is what the process will hold. */
#ifndef FM_LLM_PLAN_PLAN_H
#define FM_LLM_PLAN_PLAN_H

#include <stddef.h>

#include "base/status.h"
#include "base/str.h"
#include "llm/op/run.h"

typedef struct {
    size_t total, available;   /* of the machine, bytes */
    double mem_fraction;       /* <= 0: available minus a margin */
    int    max_total_tokens;   /* 0: as many as fit */
    int    page_size;
    int    max_running, max_context;
    size_t weights;            /* bytes */
    size_t host_other;         /* tokenizer, scheduler, samplers: counted, not guessed */
} fm_plan_request;

typedef struct {
    size_t weights, workspace, kv, other; /* bytes */
    size_t budget;                        /* what all of it may take */
    int    n_page, page_size;
    int    max_tokens;                    /* n_page * page_size */
} fm_plan;

/* FM_E_OOM, saying by how much it does not fit and which flags would make it. */
fm_status fm_plan_make(fm_plan *out, const fm_plan_request *q, const fm_run_bytes *run);

void fm_plan_print(const fm_plan *p, fm_str *out); /* a short table */

#endif
