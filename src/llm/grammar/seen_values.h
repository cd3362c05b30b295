/* SPDX-License-Identifier: Apache-2.0 */
/* uniqueItems of objects, arrays and mixed values: items are remembered without the white space
 * between their parts, so that the same value is the same text however it is laid out. */
#ifndef FM_LLM_GRAMMAR_SEEN_VALUES_H
#define FM_LLM_GRAMMAR_SEEN_VALUES_H

#include "llm/grammar/seen_items.h"

/* A byte behind the opening bracket of the array came. */
void fm__seen_value_byte(fm__seen *s, char byte);

/* As fm__seen_exclude, where the state is in such an array. */
void fm__seen_exclude_values(const fm__seen *s, fm__states *states, int32_t state,
                             const fm__token_order *o, uint32_t *bits);

/* Does a token end an item and say more of the next than that it begins?  Then it is not known in
 * time whether that one is new.  path[i]: the state before byte i. */
int fm__seen_hides_value(const fm__states *states, const int32_t *path, const char *bytes, int len);

#endif
