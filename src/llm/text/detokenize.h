/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens -> text, a token at a time.  Never emits half a UTF-8 character: an
 * incomplete tail is held back; bytes that can no longer become a character,
 * and what is left at the end, come out as U+FFFD.  Fed one by one or all at
 * once, the text is the same. */
#ifndef FM_LLM_TEXT_DETOKENIZE_H
#define FM_LLM_TEXT_DETOKENIZE_H

#include "base/str.h"
#include "llm/text/tokenizer.h"

/* Which special tokens are text. */
typedef enum {
    FM_SPECIAL_NONE,
    FM_SPECIAL_ALL,
    FM_SPECIAL_TAGS, /* <think> and </think>, by which reasoning is separated */
} fm_special;

typedef struct {
    const fm_tokenizer *tokenizer; /* borrowed */
    fm_special          keep_special;
    unsigned char       held[4];   /* an unfinished character */
    int                 n_held;
} fm_detokenizer;

fm_detokenizer fm_detokenizer_begin(const fm_tokenizer *t, fm_special keep_special);
void fm_detokenizer_push(fm_detokenizer *d, int32_t id, fm_str *out);
void fm_detokenizer_end(fm_detokenizer *d, fm_str *out);

#endif
