/* SPDX-License-Identifier: Apache-2.0 */
/* Prompts and events as bytes, for engines that share the work.  Both ends run
 * the same program, so plain structs travel as they are; what they point to
 * follows them.  A reader checks every length. */
#ifndef FM_LLM_RANK_REPLICA_WIRE_H
#define FM_LLM_RANK_REPLICA_WIRE_H

#include "base/str.h"
#include "fathom/fathom.h"

/* A prompt of token ids; text and grammar do not travel. */
void fm_prompt_write(fm_str *out, const fm_prompt *p);

/* Points into data[bytes], which is aligned to 8, but for out->stop, which the
 * caller frees. */
fm_status fm_prompt_read(fm_prompt *out, const char *data, size_t bytes);

void      fm_event_write(fm_str *out, const fm_event *ev);
fm_status fm_event_read(fm_event *out, const char *data, size_t bytes);

#endif
