/* SPDX-License-Identifier: Apache-2.0 */
/* The lazy subset construction (NFA to DFA): states are made when a text first reaches them.
 *
 * Where a text stands is a set of places: a state of the nfa, the returns that
 * wait below it, and how a JSON text is laid out so far.  Equal sets get the same number, and each
 * remembers where its bytes lead, so a byte costs one look-up once it has been met. Returns are
 * shared lists: the same list has the same number.
 *
 * Effort.  A grammar can be so ambiguous that following it would delay all requests.  A
 * walk therefore counts the places it would visit if no state were cached, and stops at
 * FM__MAX_EFFORT: the result depends on where the walk starts and not on earlier walks.
 *
 * One thread at a time. */
#ifndef FM_LLM_GRAMMAR_STATES_H
#define FM_LLM_GRAMMAR_STATES_H

#include "llm/grammar/layout.h"
#include "llm/grammar/nfa.h"
#include "llm/grammar/number_table.h"

enum { FM__DEAD = -1, FM__MAX_EFFORT = 1 << 21 }; /* of a walk: about a tenth of a second */

typedef struct {
    int32_t    state, stack; /* stack 0: empty */
    fm__layout layout;       /* of JSON; while indentation is due, that comes first */
} fm__place;

typedef struct {
    int32_t to, below; /* where to go on, and the rest of the list */
} fm__return;

typedef struct {
    fm__place     to;
    unsigned char lo, hi; /* the bytes that lead there */
} fm__move;

typedef struct {
    int32_t   at, n; /* place[at .. at+n) */
    int       may_end;
    int       mark;        /* of its places, those they return to included */
    int       is_too_much; /* to find its tokens; then `allowed` has the ends of a text only */
    int32_t  *next;        /* [256] or NULL: not known yet */
    int64_t   cost;        /* of `next`, in places */
    uint32_t  walk;        /* the last one that came by */
    uint32_t *allowed;     /* bits of tokens, or NULL: not known yet */
} fm__state;

typedef struct {
    const fm__nfa *nfa;
    fm__state     *state;
    int32_t        n_state, cap_state;
    fm__place     *place;
    int32_t        n_place, cap_place;
    fm__return    *ret; /* [n_ret] number 0 is no list */
    int32_t        n_ret, cap_ret;
    fm__table      states, rets;
    fm__place     *work; /* the set being made */
    int32_t        n_work, cap_work, may_end;
    int            is_cut; /* it had too many places for us, and lost some */
    fm__table      works;
    fm__move      *move; /* where the bytes of a state lead */
    int32_t        n_move, cap_move;
    uint32_t       walk;
    int64_t        effort; /* of the walk */
} fm__states;

/* State 0: the start.  FM_E_NOSUP: it has too many places.  FM_E_ARG: an automaton that is not
 * finished has no text. */
fm_status fm__states_init(fm__states *s, const fm__nfa *nfa);
void      fm__states_fini(fm__states *s); /* half-built is fine */

void fm__states_begin_walk(fm__states *s);

/* The state after a byte or a token; FM__DEAD: it may not come, or the effort is too much. */
int32_t fm__states_byte(fm__states *s, int32_t state, unsigned char byte);
int32_t fm__states_token(fm__states *s, int32_t state, int32_t token);

/* The state of a text that stands at one place only, the one with the most ways to go on among
 * those that some text comes by (or the first of very many).  `width`: how many; FM__DEAD: too
 * many for a state. */
int32_t fm__states_widest(fm__states *s, int32_t *width);

/* Copies a set of places to another fm__states. */
int32_t fm__states_copy(fm__states *to, const fm__states *from, int32_t state);

#endif
