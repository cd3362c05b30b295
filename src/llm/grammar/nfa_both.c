/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/grammar/nfa_both.h"

#include <stdlib.h>
#include <string.h>

#include "llm/grammar/states.h"

enum { MAX_PAIR = 1 << 15, N_SLOT = 2 * MAX_PAIR, GONE = -2 };

/* A state of the product; b is GONE where the second automaton has refused the text. */
typedef struct {
    int32_t a, b, state;
} pair;

typedef struct {
    fm__states    a, b;
    fm__both_kind kind;
    fm__nfa      *n; /* the product */
    pair         *pair;
    int32_t       n_pair;
    int32_t      *slot; /* [N_SLOT] pair, or -1 */
} product;

static int is_accepted(const product *p, int32_t a, int32_t b)
{
    if (!p->a.state[a].may_end) return 0;
    const int second = b != GONE && p->b.state[b].may_end;
    return p->kind == FM__IN_BOTH ? second : !second;
}

/* The product's state for a pair; made at its first use.  -1: there are too many. */
static int32_t state_of(product *p, int32_t a, int32_t b)
{
    uint32_t at = ((uint32_t)a * 0x9e3779b1u) ^ ((uint32_t)b * 0x85ebca6bu);
    for (at ^= at >> 15;; at++) {
        const int32_t i = p->slot[at % N_SLOT];
        if (i < 0) break;
        if (p->pair[i].a == a && p->pair[i].b == b) return p->pair[i].state;
    }
    if (p->n_pair == MAX_PAIR) return -1;
    const int32_t state  = p->n_pair ? fm__nfa_state(p->n) : p->n->rule[0].start;
    p->pair[p->n_pair]   = (pair){a, b, state};
    p->slot[at % N_SLOT] = p->n_pair++;
    if (is_accepted(p, a, b)) fm__nfa_close(p->n, state);
    return state;
}

static int32_t step_second(product *p, int32_t b, int byte)
{
    if (b == GONE) return GONE;
    const int32_t to = fm__states_byte(&p->b, b, (unsigned char)byte);
    return to == FM__DEAD ? GONE : to;
}

static int is_too_much(const product *p)
{
    return p->a.effort > FM__MAX_EFFORT || p->b.effort > FM__MAX_EFFORT;
}

/* Bytes that lead to the same pair share an edge. */
static fm_status expand(product *p, pair q)
{
    int32_t last_a = FM__DEAD, last_b = GONE;
    int     first = 0;
    for (int byte = 0; byte <= 256; byte++) {
        int32_t a = FM__DEAD, b = GONE;
        if (byte < 256) {
            a = fm__states_byte(&p->a, q.a, (unsigned char)byte);
            b = a == FM__DEAD ? GONE : step_second(p, q.b, byte);
            if (p->kind == FM__IN_BOTH && b == GONE) a = FM__DEAD;
        }
        if (byte && (a != last_a || b != last_b) && last_a != FM__DEAD) {
            const int32_t to = state_of(p, last_a, last_b);
            if (to < 0 || p->n->full) return fm_fail(FM_E_NOSUP, "grammar: it is too large");
            fm__nfa_bytes(p->n, q.state, to, first, byte - 1);
        }
        if (a != last_a || b != last_b) first = byte;
        last_a = a, last_b = b;
    }
    if (is_too_much(p)) return fm_fail(FM_E_NOSUP, "grammar: too many ways to follow it at once");
    return FM_OK;
}

static fm_status multiply(product *p)
{
    p->pair = malloc(MAX_PAIR * sizeof *p->pair);
    p->slot = malloc(N_SLOT * sizeof *p->slot);
    if (!p->pair || !p->slot) return fm_fail(FM_E_OOM, "grammar");
    memset(p->slot, 0xff, N_SLOT * sizeof *p->slot);
    fm__states_begin_walk(&p->a);
    fm__states_begin_walk(&p->b);
    state_of(p, 0, 0);
    for (int32_t i = 0; i < p->n_pair; i++) FM_TRY(expand(p, p->pair[i]));
    return FM_OK;
}

fm_status fm__nfa_intersect(fm__nfa *a, const fm__nfa *b, fm__both_kind kind)
{
    fm__nfa   out;
    product   p  = {.kind = kind, .n = &out};
    fm_status rc = a->full || b->full ? fm_fail(FM_E_NOSUP, "grammar: it is too large") : FM_OK;
    fm__nfa_begin(&out);
    if (rc == FM_OK) rc = fm__states_init(&p.a, a);
    if (rc == FM_OK) rc = fm__states_init(&p.b, b);
    if (rc == FM_OK) rc = multiply(&p);
    fm__states_fini(&p.a);
    fm__states_fini(&p.b);
    free(p.pair);
    free(p.slot);
    fm__nfa_fini(a);
    if (rc == FM_OK)
        *a = out;
    else
        fm__nfa_fini(&out);
    return rc;
}

int32_t fm__nfa_append(fm__nfa *n, int32_t from, const fm__nfa *t)
{
    int32_t *to = malloc((size_t)t->n_state * sizeof *to);
    FM_BUG_UNLESS(to != NULL);
    for (int32_t s = 0; s < t->n_state; s++) to[s] = fm__nfa_state(n);
    for (int32_t s = 0; s < t->n_state && !n->full; s++)
        for (int32_t i = t->first[s]; i >= 0; i = t->edge[i].next) {
            const fm__edge *e = &t->edge[i];
            FM_BUG_UNLESS(e->kind == FM__EDGE_BYTE || e->kind == FM__EDGE_EMPTY);
            if (e->kind == FM__EDGE_BYTE)
                fm__nfa_bytes(n, to[s], to[e->to], e->lo, e->hi);
            else
                fm__nfa_empty(n, to[s], to[e->to]);
        }
    fm__nfa_empty(n, from, to[t->rule[0].start]);
    const int32_t end = to[t->rule[0].end];
    free(to);
    return end;
}
