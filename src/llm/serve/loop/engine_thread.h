/* SPDX-License-Identifier: Apache-2.0 */
/* The engine on a thread of its own: asks go in, batches of events come out.
 *
 *     loop ──submit, cancel, flush, profile──> inbox ──> step ──> outbox ──bell──> loop
 *
 * The loop's thread makes every call here.  Neither side waits for the other:
 * both boxes are swapped under a lock held for a few pointers. */
#ifndef FM_LLM_SERVE_LOOP_ENGINE_THREAD_H
#define FM_LLM_SERVE_LOOP_ENGINE_THREAD_H

#include "llm/engine.h"
#include "llm/serve/loop/rates.h"
#include "llm/serve/read/ask.h"
#include "net/loop.h"

/* The engine's id of a prompt: the call it came with, and which of its prompts it is. */
enum { FM__PROMPT_BITS = 24 };

static inline uint64_t fm__prompt_id(uint64_t call, int prompt)
{
    return call << FM__PROMPT_BITS | (uint64_t)prompt;
}

/* What the engine has to say of a call beside events: a prompt was refused, a step
 * failed, the cache was flushed. */
typedef struct {
    uint64_t  call;
    fm_status status; /* not FM_OK: the call is over */
    size_t    words_at; /* a sentence in `words`, NUL behind it */
} fm__notice;

typedef struct {
    fm_events   events;
    fm__notice *notice; /* [n_notice] */
    int         n_notice, cap_notice;
    fm_str      words;
    fm_str      log; /* lines about what was done */
} fm__outbox;

typedef struct {
    fm_engine_info info;
    double         last_step; /* fm_now() */
    fm__rates      rates;
} fm__engine_state;

typedef struct fm__engine_thread fm__engine_thread;

/* The bell is rung when events wait or pages left the cache.  The engine is borrowed until stop.
 * log_interval: see batch_log.h. */
fm_status fm__engine_start(fm__engine_thread **out, fm_engine *e, fm_loop_event *bell,
                           int log_interval);
void      fm__engine_stop(fm__engine_thread *t); /* NULL is fine; cancels what runs, waits */

void fm__engine_submit(fm__engine_thread *t, uint64_t call, fm__ask *a); /* retains it */
void fm__engine_cancel(fm__engine_thread *t, uint64_t id); /* an fm__prompt_id */
void fm__engine_flush(fm__engine_thread *t, uint64_t call); /* a notice says how it went */

/* Recording begins in `file` or ends; NULL: it ends.  A notice says how it went.  n_step: it ends by
 * itself after so many steps; 0: it does not. */
void fm__engine_profile(fm__engine_thread *t, uint64_t call, const char *file, int64_t n_step);

/* Swaps what has come out since the last time into *box (cleared first). */
void fm__engine_take(fm__engine_thread *t, fm__outbox *box);
void fm__outbox_fini(fm__outbox *box);

fm__engine_state fm__engine_get_state(fm__engine_thread *t);

#endif
