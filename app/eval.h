/* SPDX-License-Identifier: Apache-2.0 */
/* `fathom eval`: reads a set of questions, has them answered and marks the
 * answers.  A line of the set is one JSON object:
 *
 *     {"task": "add2", "messages": [...], "tools": [...],
 *      "check": {"kind": "number", "value": 132}}
 *
 * with messages and tools as in the chat API.  The kinds:
 *
 *     number    the last integer of the answer is value
 *     text      the answer is value
 *     contains  the answer contains value
 *     json      the answer is an object with the keys and types of value;
 *               right when equal to it
 *     call      the answer is tool calls in the model's form, of functions
 *               that were offered; right when equal to [[name, arguments]...]
 *     prose     the answer ends as a sentence ends */
#ifndef FM_APP_EVAL_H
#define FM_APP_EVAL_H

#include <jansson.h>

#include "base/str.h"
#include "llm/engine.h"
#include "llm/text/chat.h"

typedef struct {
    json_t     *line;   /* owned: the question as read */
    const char *task;   /* borrowed from it, as the next two */
    json_t     *check, *tools;
    fm_str      prompt; /* rendered */
    fm_str      answer; /* what the model wrote, special tokens included */
    fm_finish   finish;
    uint64_t    id;     /* the engine's */
    int         is_formed, is_right;
} fm_eval_item;

typedef struct {
    fm_eval_item *item; /* [n] owned */
    int           n;
} fm_eval_set;

/* At most `limit` lines; 0: all.  FM_E_FORMAT names file and line. */
fm_status fm_eval_load(fm_eval_set *out, const char *path, int64_t limit);
void      fm_eval_fini(fm_eval_set *s);

/* Each item's prompt, in the layout of the model's own chat. */
fm_status fm_eval_render(fm_eval_set *s, const fm_tokenizer *t);

/* Sets is_formed and is_right from answer, finish and check. */
void fm_eval_mark(fm_eval_item *it);

#endif
