/* SPDX-License-Identifier: Apache-2.0 */
/* Measures what steps of an engine cost on this machine: batches of known shape are run, and ops
 * are timed one by one where hooks see them (a CPU), whole steps everywhere.
 *
 *     limits of the machine (given) ──> shots ──> share of each kind of op ──> what is left of
 * steps
 */
#ifndef FM_LLM_PLANNER_CALIBRATE_H
#define FM_LLM_PLANNER_CALIBRATE_H

#include "llm/engine.h"
#include "llm/planner/tuned.h"

typedef struct {
    const fm_options *options;      /* with which the engine was opened */
    const char       *model;        /* the name under which its steps are kept */
    double            seconds;      /* seconds after which no shot is begun; 0: no limit */
    void (*tell)(const char *line); /* called with what is measured now, or NULL */
} fm_calibration;

/* The engine is one rank, idle, with its cache shared or not, and is left idle.  On a CPU *t must
 * have the limits (read, peaks, n_thread) and gets the rest; on a GPU it must be a whole table and
 * gets the steps of this model and the host's part. */
fm_status fm_calibrate(fm_tuned *t, fm_engine *e, const fm_calibration *how);

#endif
