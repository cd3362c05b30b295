/* SPDX-License-Identifier: Apache-2.0 */
/* Intervals of numbers as automata: bounds are followed digit by digit, within
 * 64 bits before the point; numbers with bounds have no exponent. */
#ifndef FM_LLM_GRAMMAR_SCHEMA_NUMBER_H
#define FM_LLM_GRAMMAR_SCHEMA_NUMBER_H

#include "llm/grammar/decimal.h"
#include "llm/grammar/nfa.h"

typedef struct {
    fm__decimal at;
    int         is_open; /* the end itself does not belong to the interval */
} fm__limit;

typedef struct {
    fm__limit least, most; /* least <= most */
} fm__interval;

/* number_interval.c: between states that exist. */
void fm__nfa_naturals(fm__nfa *n, int32_t from, int32_t end, uint64_t lo, uint64_t hi);
void fm__nfa_integers(fm__nfa *n, int32_t from, int32_t end, int64_t lo, int64_t hi);
void fm__nfa_decimals(fm__nfa *n, int32_t from, int32_t end, const fm__interval *v);

/* number_multiple.c: texts of numbers that are multiples of a unit above 0, also such that JSON
 * does not write (leading zeros).  FM_E_NOSUP: the unit has too many digits. */
fm_status fm__nfa_multiples(fm__nfa *n, int32_t from, int32_t *to, const fm__decimal *unit);
/* How many digits before the point such numbers can have if an intersection shall stay small. */
int fm__multiples_digits(const fm__decimal *unit);

#endif
