/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens -> text, a token at a time.  Never emits half a UTF-8 character: an
 * incomplete tail is held back; bytes that can no longer become a character,
 * and what is left at the end, come out as U+FFFD.  Fed one by one or all at
 * once, the text is the same. */
#ifndef FM_LLM_TEXT_DETOKENIZE_H
#define FM_LLM_TEXT_DETOKENIZE_H

#include "base/str.h"
#include "llm/text/tokenizer.h"

typedef struct {
    const fm_tokenizer *tokenizer; /* borrowed */
    int                 keep_special;
    unsigned char       held[4];   /* an unfinished character */
    int                 n_held;
} fm_detokenizer;

fm_detokenizer fm_detokenizer_begin(const fm_tokenizer *t, int keep_special);
void fm_detokenizer_push(fm_detokenizer *d, int32_t id, fm_str *out);
void fm_detokenizer_end(fm_detokenizer *d, fm_str *out);

#endif
