/* SPDX-License-Identifier: Apache-2.0 */
/* JSON going out: appended to a string, without a tree in between. */
#ifndef FM_LLM_SERVE_REPLY_WRITE_H
#define FM_LLM_SERVE_REPLY_WRITE_H

#include <stdint.h>

#include "base/str.h"

/* "…", escaped.  Bytes that are no UTF-8 become U+FFFD. */
void fm__put_text(fm_str *out, const char *text, size_t len);
void fm__put_escaped(fm_str *out, const char *text, size_t len); /* without the quotes */
void fm__put_word(fm_str *out, const char *text_or_null); /* null for NULL */
void fm__put_number(fm_str *out, double x);               /* never inf or nan, which JSON lacks */
void fm__put_float(fm_str *out, float x);                 /* finite; the shortest text that is x: 0.6 */
void fm__put_bytes(fm_str *out, const char *bytes, size_t len); /* [226,128,…] */

/* Is it a whole number of characters? */
int fm__is_utf8(const char *text, size_t len);

/* {"error": {…}} and the same keys flat, as OpenAI's and SGLang's clients look for them. */
void fm__put_error(fm_str *out, int status, const char *why);
/* {"error": "…"}, Ollama's. */
void fm__put_ollama_error(fm_str *out, int status, const char *why);
/* {"type": "error", …}, Anthropic's. */
void fm__put_messages_error(fm_str *out, int status, const char *why);

#endif
