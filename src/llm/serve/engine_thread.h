/* SPDX-License-Identifier: Apache-2.0 */
/* The engine on a thread of its own: asks go in, batches of events come out.
 *
 *     loop ──submit, cancel, flush──> inbox ──> step ──> outbox ──bell──> loop
 *
 * The loop's thread makes every call here.  Neither side waits for the other:
 * both boxes are swapped under a lock held for a few pointers. */
#ifndef FM_LLM_SERVE_ENGINE_THREAD_H
#define FM_LLM_SERVE_ENGINE_THREAD_H

#include "llm/engine.h"
#include "llm/serve/ask.h"
#include "net/loop.h"

typedef struct {
    uint64_t  call;
    int       prompt, index; /* which prompt of the ask, which of its n answers */
    fm_status failed;        /* not FM_OK: the prompt is over, text says why */
    int32_t   token;         /* -1: none */
    int32_t   prompt_at;     /* not -1: logprob and top are of the prompt's token here */
    size_t    text_at, text_len, top_at;
    float     logprob;
    int       n_top;
    fm_finish finish;
    int32_t   matched_id;
    int       matched_stop;
    int32_t   n_prompt, n_output, n_cached;
    double    when; /* fm_now() of the step's end */
    double    queue_seconds;
} fm__event;

typedef struct {
    fm__event      *event; /* [n] */
    size_t          n, cap;
    fm_str          text; /* what text_at points into */
    fm_top_logprob *top;  /* and top_at */
    size_t          n_top, cap_top;
    fm_str          log; /* lines about what was done */
} fm__events;

typedef struct {
    fm_engine_info info;
    double         last_step; /* fm_now() */
} fm__engine_state;

typedef struct fm__engine_thread fm__engine_thread;

/* The bell is rung when events wait.  The engine is borrowed until stop.
 * log_interval: see batch_log.h. */
fm_status fm__engine_start(fm__engine_thread **out, fm_engine *e, fm_loop_event *bell,
                           int log_interval);
void      fm__engine_stop(fm__engine_thread *t); /* NULL is fine; cancels what runs, waits */

void fm__engine_submit(fm__engine_thread *t, uint64_t call, fm__ask *a); /* retains it */
void fm__engine_cancel(fm__engine_thread *t, uint64_t call, int prompt); /* -1: all of its ask */
void fm__engine_flush(fm__engine_thread *t, uint64_t call); /* an event says how it went */

/* Swaps what has come out since the last time into *ev (cleared first). */
void fm__engine_take(fm__engine_thread *t, fm__events *ev);
void fm__events_fini(fm__events *ev);

fm__engine_state fm__engine_get_state(fm__engine_thread *t);

#endif
