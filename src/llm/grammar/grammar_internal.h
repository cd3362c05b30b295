/* SPDX-License-Identifier: Apache-2.0 */
/* A compiled grammar: syntax tree, NFA, lazily built states and their token masks. */
#ifndef FM_LLM_GRAMMAR_GRAMMAR_INTERNAL_H
#define FM_LLM_GRAMMAR_GRAMMAR_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "llm/grammar/grammar.h"
#include "llm/grammar/seen_items.h"
#include "llm/grammar/states.h"
#include "llm/grammar/token_order.h"

enum { FM__MAX_EOS = 16, FM__N_KEPT = 32, FM__CALLS = 100, FM__SPACED };

typedef struct {
    int         kind, flags; /* kind: fm_grammar_kind, FM__CALLS or FM__SPACED */
    char       *text;
    size_t      len;
    fm_grammar *grammar; /* NULL: unused */
    uint64_t    used;    /* when, in calls */
} fm__kept;

struct fm_grammars {
    const fm_tokenizer *tokenizer;
    int                 vocab, n_eos;
    int32_t             eos[FM__MAX_EOS];
    pthread_mutex_t     lock;
    fm__token_order     order; /* made at the first use */
    int                 has_order;
    fm__kept            kept[FM__N_KEPT];
    uint64_t            n_call;
};

struct fm_grammar {
    atomic_int         n_holder;
    const fm_grammars *of;
    fm__nfa            nfa;
    uint32_t          *mark; /* [vocab bits] tokens that stand for themselves, never for bytes */
    pthread_mutex_t    lock;
    fm__states         states;
    int32_t            n_allowed; /* states whose tokens are known */
    fm_matcher        *matchers;  /* those at work, for when the states are made anew */
    int32_t           *path;      /* [max_len + 1] of a walk */
};

struct fm_matcher {
    fm_grammar *grammar;
    int32_t     state;
    int         over;
    fm__seen    seen;  /* of the array with uniqueItems it is in */
    char       *after; /* what is still waited for, or NULL */
    size_t      after_len;
    char       *tail; /* [after_len] the end of what was written so far */
    size_t      n_tail;
    fm_matcher *prev, *next;
    uint32_t    allowed[]; /* [vocab bits] */
};

/* tool_syntax.c */
fm_status fm__nfa_calls(fm__nfa *n, const fm_grammar_calls *c, const fm_tokenizer *t);

/* matcher.c: finds the grammar's marks and the tokens of the first state, so
 * that no step has to.  FM_E_NOSUP: already that is too much. */
fm_status fm__grammar_warm(fm_grammar *g);

#endif
