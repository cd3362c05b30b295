/* SPDX-License-Identifier: Apache-2.0 */
/* Beginnings of items that can only become items written before.
 *
 * The automaton says how a beginning can go on; the items written so far are followed in step with
 * it.  Where a byte may come that none of them has, there is an item that is new. */
#ifndef FM_LLM_GRAMMAR_SEEN_SEARCH_H
#define FM_LLM_GRAMMAR_SEEN_SEARCH_H

#include "llm/grammar/json_place.h"
#include "llm/grammar/seen_items.h"

/* What ends an item of an array.  Strings: a mark in the automaton.  Numbers: the first byte that no
 * number contains.  Other values: a separator that is in no nested array or object. */
typedef enum { FM__OF_STRINGS, FM__OF_NUMBERS, FM__OF_VALUES } fm__item_kind;

typedef struct {
    const char *text;
    size_t      len;
} fm__span;

typedef struct {
    fm__states   *states;
    fm__item_kind kind;
    fm__span     *known; /* [n] items written so far; there is room for n_more */
    int           n;
} fm__search;

void fm__search_begin(fm__search *q, const fm__seen *s, fm__states *states, fm__item_kind kind,
                      int n_more);
void fm__search_end(fm__search *q);

int fm__search_knows(const fm__search *q, const char *text, size_t len);
/* A known item that begins with these bytes, or NULL. */
const fm__span *fm__search_beginning(const fm__search *q, const char *text, size_t len);

/* Are all items that begin with n bytes of `e` known?  `state`: of the automaton behind these
 * bytes; `place`: of JSON, where the kind is FM__OF_VALUES. */
int fm__search_is_used_up(const fm__search *q, int32_t state, fm__json_place place,
                          const fm__span *e, size_t n);

static inline int fm__is_of_number(char c)
{
    return c == '-' || c == '.' || (c >= '0' && c <= '9');
}

#endif
