/* SPDX-License-Identifier: Apache-2.0 */
/* What an engine records of itself (trace/trace.h), if asked to: ops by kind of layer, phases of
 * the loop and what lies between, steps, calls between ranks, and the stages of every request.
 *
 *     step     gap | plan share run choose commit post | gap | ...
 *     ops                   └ embed, linear, attend, ...
 *
 * The loop marks where a phase ended; the next one begins there, so phases and gaps have no holes.
 * Without a trace every call here is a test of a pointer.  With one, nothing is allocated. */
#ifndef FM_LLM_ENGINE_TRACING_H
#define FM_LLM_ENGINE_TRACING_H

#include "llm/engine/jobs.h"
#include "llm/engine/step.h"

typedef struct fm_engine  fm_engine;
typedef struct fm_tracing fm_tracing;

typedef enum {
    FM_PHASE_PLAN,
    FM_PHASE_SHARE,
    FM_PHASE_RUN,
    FM_PHASE_CHOOSE,
    FM_PHASE_COMMIT,
    FM_PHASE_POST,
    FM_PHASE_AWAIT, /* for the leader's plan */
    FM_N_PHASE
} fm_phase;

/* Collective over the engine's world: all ranks record from here, or none does.  `mib`: of the
 * ring of spans; 0: the default. */
fm_status fm__tracing_open(fm_engine *e, const char *file, int64_t mib, const char *model);
void      fm__tracing_close(fm_engine *e); /* collective, too; without a trace it does nothing */

void fm__tracing_resume(fm_tracing *t);
void fm__tracing_phase(fm_tracing *t, fm_phase p);
void fm__tracing_rest(fm_tracing *t, int is_busy);
void fm__tracing_step(fm_tracing *t, const fm_batch *const *batch, int n, uint32_t serial,
                      double began);
void fm__tracing_serial(fm_tracing *t, uint32_t serial);
void fm__tracing_first_token(fm_tracing *t, const fm_job *j);
void fm__tracing_ended(fm_tracing *t, const fm_job *j);

#endif
