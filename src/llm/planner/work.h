/* SPDX-License-Identifier: Apache-2.0 */
/* What one rank of a stage has to read and compute in a step, taken from the structure of its
 * weights: alike matrices are counted, not listed. */
#ifndef FM_LLM_PLANNER_WORK_H
#define FM_LLM_PLANNER_WORK_H

#include "llm/op/cost.h"
#include "llm/planner/tuned.h"
#include "llm/weights/weights.h"

/* A product, applied `count` times a step. */
typedef struct {
    fm_work_kind kind;
    fm_dtype     factor;       /* type in which it is multiplied */
    double       bytes, flops; /* of the weights, and of one row */
    double       count;
} fm_product;

enum { FM_MAX_PRODUCT = 48 };

typedef struct {
    fm_product product[FM_MAX_PRODUCT];
    int        n_product;
    int        n_layer, n_moe;
    int        n_draft_layer; /* 1: the chain of drafts runs here */
    fm_product link_head;     /* what a link multiplies with: the head, or its copy in bytes */

    int             hidden;
    double          heads;        /* of this rank */
    fm_attend_sizes attend;       /* of these, in one layer */
    double          cached_bytes; /* of a token in one layer */

    fm_product expert;          /* one of them; count: those of this rank */
    double     n_expert, top_k; /* of the model */

    double shared_inter, moe_inter; /* for what ranks send */
} fm_stage_work;

/* FP8 weights are multiplied as FP8 on a GPU where activations are quantised, too.  has_draft_head:
 * links may use a copy of the head (fm_run_limits.draft_head). */
void fm_stage_work_of(fm_stage_work *out, const fm_weights *w, double cached_bytes, int on_gpu,
                      int has_draft_head);

/* E (1 - (1 - k/E)^rows): experts that rows meet, of the whole model. */
double fm_experts_met(const fm_stage_work *s, double rows);

#endif
