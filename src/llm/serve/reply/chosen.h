/* SPDX-License-Identifier: Apache-2.0 */
/* The values in force of settings that were given as "auto" or 0. */
#ifndef FM_LLM_SERVE_REPLY_CHOSEN_H
#define FM_LLM_SERVE_REPLY_CHOSEN_H

#include "llm/serve/loop/serve_internal.h"

/* Writes the value in force of this option as JSON; 0: it is what the option says. */
int fm__put_chosen(fm_str *out, const char *option, const fm_serve *s, const fm_engine_info *e);

#endif
