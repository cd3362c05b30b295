/* SPDX-License-Identifier: Apache-2.0 */
/* Data parallelism (--dp): several engines that look like one.  Rank 0 sends
 * prompts to the leaders of the other replicas and gets their events back.
 *
 *     rank 0 ──prompt, cancel, flush, trace, quit──> leader of a replica
 *            <─────────events, its numbers──────────
 *
 * Ids and seeds are rank 0's, so an answer does not depend on where it was
 * computed. */
#ifndef FM_LLM_ENGINE_REPLICAS_H
#define FM_LLM_ENGINE_REPLICAS_H

#include "llm/engine/engine_internal.h"

/* On rank 0. Events of the replicas are appended to the engine's own. A replica with unfinished
 * answers that sends nothing for `patience` seconds ends the job. */
fm_status fm__replicas_create(fm_replicas **out, fm_engine *e, double patience);
fm_status fm__replicas_hang_up(fm_replicas *r); /* the others end; NULL is fine */
void      fm__replicas_destroy(fm_replicas *r); /* NULL is fine */

/* Sends the prompt to the replica with the smallest load.  *is_sent = 0: that is
 * this engine itself. */
fm_status fm__replicas_submit(fm_engine *e, const fm_prompt *p, const int32_t *token, int32_t n,
                              uint64_t id, uint64_t seed, int *is_sent);
void      fm__replicas_cancel(fm_replicas *r, const fm_submitted *p);
void      fm__replicas_flush(fm_replicas *r);
fm_status fm__replicas_trace(fm_replicas *r); /* their ranks wait for an order about recording */
int       fm__replicas_busy(const fm_replicas *r);
void      fm__replicas_add_info(const fm_replicas *r, fm_engine_info *info);

/* The engine's own step, if it has one, and what has come from the others. */
fm_status fm__replicas_step(fm_engine *e);

/* On the leader of another replica: works until rank 0 says quit. */
fm_status fm__replicas_serve(fm_engine *e);

#endif
