/* SPDX-License-Identifier: Apache-2.0 */
/* The items written so far in an array with uniqueItems, for one answer: strings, numbers, or
 * values of any kind (seen_values.h).  The automaton knows where items are (marks of its states),
 * this knows which; it rules out the tokens that would complete one of them a second time. */
#ifndef FM_LLM_GRAMMAR_SEEN_ITEMS_H
#define FM_LLM_GRAMMAR_SEEN_ITEMS_H

#include "base/str.h"
#include "llm/grammar/json_place.h"
#include "llm/grammar/states.h"
#include "llm/grammar/token_order.h"

typedef struct {
    fm_str        *item; /* [n] strings: between their quotes; values: without white space */
    int            n, cap;
    fm_str         current; /* the one being written */
    fm__json_place place;   /* inside it, if it is a value */
} fm__seen;

void fm__seen_fini(fm__seen *s);

/* The current item is complete. */
void fm__seen_keep(fm__seen *s);

/* A byte came; the marks of the states before and after it. */
void fm__seen_byte(fm__seen *s, int before, int after, char byte);

/* Clears the bits of tokens that must not come at a state: those that complete an item a second
 * time, and those behind which every way to complete one leads to an item that was written
 * before.  So something is left as long as the array has fewer items than there are values. */
void fm__seen_exclude(const fm__seen *s, fm__states *states, int32_t state,
                      const fm__token_order *o, uint32_t *bits);

#endif
