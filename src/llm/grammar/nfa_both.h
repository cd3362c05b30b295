/* SPDX-License-Identifier: Apache-2.0 */
/* Intersection and difference of two automata: the product of their
 * deterministic forms.  Pattern with length, two patterns, bounds with
 * multipleOf and look-ahead come down to it.
 *
 * The automata have rule 0 as the whole text, no rule that calls itself, and
 * need not be finished. */
#ifndef FM_LLM_GRAMMAR_NFA_BOTH_H
#define FM_LLM_GRAMMAR_NFA_BOTH_H

#include "llm/grammar/nfa.h"

typedef enum { FM__IN_BOTH, FM__IN_FIRST_ONLY } fm__both_kind;

enum { FM__MAX_BOTH = 1 << 15 };

/* *a becomes the product; it has no calls.  FM_E_NOSUP: the product has more than max_state
 * states (at most FM__MAX_BOTH), or one of the two has too many ways to follow it at once; *a is
 * then freed. */
fm_status fm__nfa_intersect(fm__nfa *a, const fm__nfa *b, fm__both_kind kind, int max_state);

/* Adds the texts of an automaton without calls behind `from`. */
int32_t fm__nfa_append(fm__nfa *n, int32_t from, const fm__nfa *t);

#endif
