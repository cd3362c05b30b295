/* SPDX-License-Identifier: Apache-2.0 */
/* The automaton made deterministic as it is used.
 *
 * Where a text stands is a set of places: a state of the nfa and the returns
 * that wait below it.  Equal sets get the same number, and each remembers
 * where its bytes lead, so a byte costs one look-up once it has been met.
 * Returns are shared lists: the same list has the same number.
 *
 * One thread at a time. */
#ifndef FM_LLM_GRAMMAR_STATES_H
#define FM_LLM_GRAMMAR_STATES_H

#include "llm/grammar/nfa.h"

/* MAX_EFFORT: about a tenth of a second.  Beyond it nothing may come any more: an
 * expression can be so ambiguous that following it would hold up everybody. */
enum { FM__DEAD = -1, FM__MAX_EFFORT = 1 << 20 };

typedef struct {
    int32_t state, stack; /* stack 0: empty */
} fm__place;

typedef struct {
    int32_t to, below; /* where to go on, and the rest of the list */
} fm__return;

typedef struct {
    int32_t   at, n; /* place[at .. at+n) */
    int       may_end;
    int32_t  *next;    /* [256] or NULL; below FM__DEAD: not known yet */
    uint32_t *allowed; /* bits of tokens, or NULL: not known yet */
} fm__state;

typedef struct {
    const fm__nfa *nfa;
    fm__state     *state;
    int32_t        n_state, cap_state;
    fm__place     *place;
    int32_t        n_place, cap_place;
    fm__return    *ret; /* [n_ret] number 0 is no list */
    int32_t        n_ret, cap_ret;
    int32_t       *state_slot, *ret_slot; /* hash tables of numbers; -1: empty */
    int32_t        state_mask, ret_mask;
    fm__place     *work; /* the set being made */
    int32_t        n_work, cap_work, may_end;
    int32_t       *work_slot, work_mask;
    int64_t        effort; /* places looked at; the caller sets it back */
    int            is_cut; /* a set had too many places for us, and lost some */
} fm__states;

void fm__states_init(fm__states *s, const fm__nfa *nfa); /* state 0: the start */
void fm__states_fini(fm__states *s);

/* The state after a byte or a token; FM__DEAD: it may not come. */
int32_t fm__states_byte(fm__states *s, int32_t state, unsigned char byte);
int32_t fm__states_token(fm__states *s, int32_t state, int32_t token);

/* The same set of places in other books. */
int32_t fm__states_copy(fm__states *to, const fm__states *from, int32_t state);

#endif
