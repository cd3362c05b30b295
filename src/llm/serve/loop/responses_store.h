/* SPDX-License-Identifier: Apache-2.0 */
/* Responses that were given (/v1/responses), for GET and for requests that go on from
 * one.  Kept in memory, as long as the process lives and room remains: the oldest
 * make way.  Any thread may call. */
#ifndef FM_LLM_SERVE_LOOP_RESPONSES_STORE_H
#define FM_LLM_SERVE_LOOP_RESPONSES_STORE_H

#include "base/status.h"
#include "base/str.h"

enum { FM__MAX_RESPONSES = 4096, FM__MAX_RESPONSE_BYTES = 64 << 20 }; /* all together */

typedef struct fm__responses fm__responses;

fm_status fm__responses_create(fm__responses **out);
void      fm__responses_destroy(fm__responses *r); /* NULL is fine */

/* object: its JSON.  turns: the messages of the chat up to and with its answer, as a
 * JSON list.  Copied; one that is larger than all the room is not kept. */
void fm__responses_put(fm__responses *r, const char *id, const fm_str *object, const fm_str *turns);

/* Appends what is asked for; 0: there is no such response. */
int fm__responses_get(fm__responses *r, const char *id, fm_str *object, fm_str *turns);
int fm__responses_drop(fm__responses *r, const char *id); /* 0: there is none */

#endif
