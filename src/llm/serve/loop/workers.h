/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that turn a request's bytes into an ask: JSON, chat template,
 * tokens.  Short text jobs (tokenise, detokenise) are answered here as well. */
#ifndef FM_LLM_SERVE_LOOP_WORKERS_H
#define FM_LLM_SERVE_LOOP_WORKERS_H

#include "llm/serve/read/ask.h"
#include "net/loop.h"

/* Answers a text job: fills the reply's body.  Failure: a 400. */
typedef fm_status fm__text_fn(fm_str *reply, const json_t *body, const fm__reader *r);
fm__text_fn       fm__tokenize, fm__detokenize, fm__count_tokens;
fm__text_fn       fm__parse_function_call, fm__separate_reasoning;

typedef struct fm__task {
    uint64_t     call;
    char        *body; /* owned */
    size_t       body_len;
    fm__read_fn *read; /* either this … */
    fm__text_fn *text; /* … or this */

    fm_status        rc; /* out: with why, or with ask or reply */
    char             why[512];
    fm__ask         *ask;
    fm_str           reply;
    struct fm__task *next;
} fm__task;

typedef struct fm__workers fm__workers;

fm_status fm__workers_start(fm__workers **out, int n, const fm__facts *facts, fm_loop_event *bell);
void      fm__workers_stop(fm__workers *w); /* NULL is fine; drops what waits */
void      fm__workers_give(fm__workers *w, fm__task *task); /* takes it */
fm__task *fm__workers_take(fm__workers *w);                 /* a done one, or NULL */
void      fm__task_destroy(fm__task *task);

#endif
