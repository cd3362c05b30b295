/* SPDX-License-Identifier: Apache-2.0 */
/* One answer being put together: the engine's events in, what a dialect has
 * still to say out.  A stream empties `thought`, `said`, the calls' arguments
 * and the logprobs as it sends them; a whole reply lets them grow. */
#ifndef FM_LLM_SERVE_REPLY_ANSWER_H
#define FM_LLM_SERVE_REPLY_ANSWER_H

#include "llm/serve/read/ask.h"
#include "llm/serve/loop/engine_thread.h"

typedef struct {
    fm_str name, id, arguments;
    int    announced; /* its name was sent */
    size_t told;      /* of the arguments, by a stream that keeps them */
} fm__tool_call;

typedef struct {
    int32_t id;
    float   logprob;
    size_t  top_at;
    int     n_top;
    int     of_prompt, is_first; /* nothing is known about a prompt's first token */
} fm__logprob;

enum { FM__N_SO_FAR = 6 };

typedef struct {
    const fm__ask *ask;
    const fm_sampling *sampling; /* of its prompt */
    int            prompt, index, slot; /* slot: prompt * n + index */
    fm_str         thought, said;
    fm__tool_call *call; /* [n_call] */
    int            n_call;
    fm_ids         token;
    fm__logprob   *lp; /* [n_lp] */
    size_t         n_lp, cap_lp;
    fm_top_logprob *top;
    size_t          n_top, cap_top;

    fm_finish finish;
    int32_t   matched_id;
    int       matched_stop;
    int32_t   n_prompt, n_output, n_cached, n_thought; /* tokens */
    int32_t   n_cached_host, n_cached_storage;         /* of n_cached */
    int32_t   n_verify;    /* steps of a request with drafts; 0: there are none */
    int32_t   n_draft, n_accepted; /* drafts they verified, and accepted */
    size_t    said_chars; /* of the tokens reported so far, for text_offset */
    double    first_token, last_token; /* when */
    double    queue_seconds;
    int       unsent;         /* has output that was not sent: listed in the call's unsent */
    int       begun, ended;   /* its first and last event were sent */
    int       block;          /* /v1/messages: the open block's kind; see there */
    int       n_block;
    size_t    told_thought, told_said,
        item_from; /* /v1/responses: bytes sent; where the open item begins */

    fm_str so_far[FM__N_SO_FAR]; /* /generate repeats itself: its text, ids, logprobs as written */

    fm_reasoning  reasoning;
    fm_tool_calls tools;
    uint64_t      id_key; /* of tool call ids */
} fm__answer;

void fm__answer_init(fm__answer *a, const fm__ask *ask, int slot, uint64_t id_key);
void fm__answer_fini(fm__answer *a);
void fm__answer_add(fm__answer *a, const fm_event *ev);
void fm__answer_clear_logprobs(fm__answer *a);

/* stop, length, tool_calls, abort, error. */
const char *fm__answer_finish_name(const fm__answer *a);

#endif
