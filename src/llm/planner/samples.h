/* SPDX-License-Identifier: Apache-2.0 */
/* What a calibration measured, and the table of costs that follows from it.
 *
 *     samples ──median of those alike──> share of each kind of op ──> what is left of whole steps
 */
#ifndef FM_LLM_PLANNER_SAMPLES_H
#define FM_LLM_PLANNER_SAMPLES_H

#include "llm/planner/tuned.h"
#include "llm/planner/work.h"

/* A step of known shape: n_text rows that continue texts of `context` tokens, or n_row rows of one
 * prompt behind `context` tokens (n_text prompts from their beginning with 0). */
typedef struct {
    int    is_prompt, n_text, n_row, context;
    double seconds;
    double work[FM_N_WORK]; /* seconds of ops by kind, where they are seen */
    double roof[FM_N_WORK]; /* what the limits of the machine allow */
} fm__sample;

typedef struct {
    fm_tuned     *tuned;    /* borrowed; has the limits of the machine */
    const char   *model;    /* borrowed: under which its steps are kept */
    fm_stage_work work;     /* of the model */
    int           sees_ops; /* samples have their work: shares follow, too (a CPU) */
    fm__sample   *list;     /* [n] owned by the calibration */
    int           n;
} fm__samples;

/* Fills shares, the host's part, the spread and the steps of tuned; the samples become one of each
 * shape.  FM_E_FULL: the table holds the steps of too many models. */
fm_status fm__samples_fit(fm__samples *k);

#endif
