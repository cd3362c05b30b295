/* SPDX-License-Identifier: Apache-2.0 */
/* A regular expression being read, and the sets of characters in it. */
#ifndef FM_LLM_GRAMMAR_REGEX_INTERNAL_H
#define FM_LLM_GRAMMAR_REGEX_INTERNAL_H

#include "llm/grammar/nfa.h"

enum { FM__LAST_CHAR = 0x10ffff, FM__MAX_RANGES = 256 };

typedef struct {
    uint32_t lo, hi;
} fm__range;

typedef struct {
    fm__range range[FM__MAX_RANGES];
    int       n;
} fm__charset;

typedef struct {
    fm__nfa     *n;
    const char  *text;
    size_t       len, at;
    fm__spelling spelling;
    fm_status    rc;
    int          depth;
    int          has_lines;  /* it is a grammar in EBNF; faults are told by line */
    int32_t     *set_behind; /* [len + 1] the rule of the set that ends there; -1: not made */
} fm__regex;

/* Remembers the first thing that is wrong, with where. */
void fm__regex_fail(fm__regex *r, fm_status rc, const char *what);

uint32_t fm__regex_char(fm__regex *r); /* the next character of the expression */

/* regex_class.c */
void fm__charset_add(fm__regex *r, fm__charset *set, uint32_t lo, uint32_t hi);
int  fm__regex_escape(fm__regex *r, fm__charset *set, uint32_t *single); /* behind the backslash */
int32_t fm__regex_class(fm__regex *r, int32_t from);                     /* behind the [ */
int32_t fm__regex_set(fm__regex *r, int32_t from, const fm__charset *set);

#endif
