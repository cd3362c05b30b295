/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens generated so far of every answer of one request, and their text on
 * the wire: "0:12,7,99 2:5", answer before the colon, ids behind it. */
#ifndef FM_LLM_RELAY_TOKENS_H
#define FM_LLM_RELAY_TOKENS_H

#include "base/status.h"
#include "base/str.h"
#include "llm/text/tokenizer.h"

enum { FM_RELAY_MAX_ANSWERS = 4096 };

typedef struct {
    fm_ids *answer; /* [n] owned */
    int     n;
} fm_relay_tokens; /* {0} is empty */

void fm_relay_tokens_fini(fm_relay_tokens *t);
void fm_relay_tokens_clear(fm_relay_tokens *t); /* keeps the memory */
void fm_relay_tokens_add(fm_relay_tokens *t, int answer, int32_t id);

/* Of one answer; 0 for one that has none. */
size_t fm_relay_tokens_count(const fm_relay_tokens *t, int answer);
size_t fm_relay_tokens_total(const fm_relay_tokens *t);

void fm_relay_tokens_write(fm_str *out, const fm_relay_tokens *t);

/* Adds what text[0..len) lists.  FM_E_FORMAT: it is no such list. */
fm_status fm_relay_tokens_read(fm_relay_tokens *t, const char *text, size_t len);

#endif
