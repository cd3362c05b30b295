/* SPDX-License-Identifier: Apache-2.0 */
/* A prompt that does not fit the context, in the words clients look for: agents and
 * libraries shorten the conversation and try again when they recognise them. */
#ifndef FM_LLM_SERVE_READ_CONTEXT_ERROR_H
#define FM_LLM_SERVE_READ_CONTEXT_ERROR_H

#include <stdint.h>

#include "base/status.h"
#include "base/str.h"

/* FM_E_ARG with OpenAI's sentence.  n_new: tokens asked for; -1: not said. */
fm_status fm__fail_context(int64_t n_prompt, int64_t n_new, int64_t context);

/* Is it that sentence, or the engine's about a prompt that its cache cannot hold? */
int fm__is_context_error(const char *why);

/* The same in Anthropic's words: "prompt is too long: …". */
void fm__put_messages_context_error(fm_str *out, const char *why);

#endif
