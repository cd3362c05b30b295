/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine did, in lines as SGLang's: one for each step that computed
 * prompts, one for every so many steps that generated.  The engine's thread
 * writes them, the loop's hands them out. */
#ifndef FM_LLM_SERVE_LOOP_BATCH_LOG_H
#define FM_LLM_SERVE_LOOP_BATCH_LOG_H

#include "base/str.h"
#include "llm/engine.h"

typedef struct {
    int            interval; /* generating steps per line; 0: no lines at all */
    int            n_decode; /* steps since the last one */
    fm_sched_stats sched;    /* at the end of the last step */
    fm_kv_stats    kv;
    int64_t        n_output;           /* at the last line about generating */
    double         prefilled, decoded; /* when */
} fm__batch_log;

void fm__batch_log_begin(fm__batch_log *l, int interval, const fm_engine_info *e, double now);
void fm__batch_log_step(fm__batch_log *l, const fm_engine_info *e, double now, fm_str *out);

#endif
