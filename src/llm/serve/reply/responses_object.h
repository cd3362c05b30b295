/* SPDX-License-Identifier: Apache-2.0 */
/* A response and the items of its output as JSON (/v1/responses). */
#ifndef FM_LLM_SERVE_REPLY_RESPONSES_OBJECT_H
#define FM_LLM_SERVE_REPLY_RESPONSES_OBJECT_H

#include "llm/serve/loop/call.h"

typedef enum { FM__ITEM_NONE, FM__ITEM_THOUGHT, FM__ITEM_TEXT, FM__ITEM_CALL } fm__item_kind;

/* rs_…, msg_… or fc_…; `at` is its place in the output. */
void fm__put_item_id(fm_str *out, const fm__call *c, fm__item_kind kind, int at);

/* An item with this text; `call`: of which tool call; status: in_progress, completed … */
void fm__put_item(fm_str *out, const fm__call *c, fm__item_kind kind, int at,
                  const fm__tool_call *call, const char *text, size_t len, const char *status);

/* {"type":"output_text",…}, or reasoning_text. */
void fm__put_part(fm_str *out, fm__item_kind kind, const char *text, size_t len);

/* The whole, with what of the output is there; completed, incomplete or cancelled by how
 * the answer ended, or in_progress, then without output. */
void fm__put_response(fm_str *out, const fm__call *c, int in_progress);

/* Keeps it for GET and for requests that go on from it, if the request lets it. */
void fm__keep_response(const fm__call *c);

#endif
