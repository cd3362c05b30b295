/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/grammar/nfa_both.h"

#include <stdlib.h>
#include <string.h>

#include "llm/grammar/states.h"

enum { N_SLOT = 2 * FM__MAX_BOTH, GONE = -2 };

/* A state of the product; b is GONE where the second automaton has refused the text. */
typedef struct {
    int32_t a, b, state;
} pair;

/* Bytes up to `hi`, from behind those of the run before, lead to the same state. */
typedef struct {
    int     hi;
    int32_t to;
} run;

/* One of the two, and what was asked of it so far. */
typedef struct {
    fm__states states;
    run      **runs; /* [cap] by state, NULL: not asked yet; the last run ends at 255 */
    int32_t    cap;
} side;

typedef struct {
    side          a, b;
    fm__both_kind kind;
    fm__nfa      *n; /* the product */
    pair         *pair;
    int32_t       n_pair, max_pair;
    int32_t      *slot; /* [N_SLOT] pair, or -1 */
} product;

static int is_accepted(const product *p, int32_t a, int32_t b)
{
    if (!p->a.states.state[a].may_end) return 0;
    const int second = b != GONE && p->b.states.state[b].may_end;
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
    if (p->n_pair == p->max_pair) return -1;
    const int32_t state  = p->n_pair ? fm__nfa_state(p->n) : p->n->rule[0].start;
    p->pair[p->n_pair]   = (pair){a, b, state};
    p->slot[at % N_SLOT] = p->n_pair++;
    if (is_accepted(p, a, b)) fm__nfa_close(p->n, state);
    return state;
}

static run *make_runs(fm__states *s, int32_t state)
{
    run all[256];
    int n = 0;
    for (int byte = 0; byte < 256; byte++) {
        const int32_t to = fm__states_byte(s, state, (unsigned char)byte);
        if (n && all[n - 1].to == to)
            all[n - 1].hi = byte;
        else
            all[n++] = (run){byte, to};
    }
    run *own = malloc((size_t)n * sizeof *own);
    FM_BUG_UNLESS(own != NULL);
    return memcpy(own, all, (size_t)n * sizeof *own);
}

static const run *runs_of(side *x, int32_t state)
{
    static const run gone = {255, FM__DEAD};
    if (state == GONE) return &gone;
    if (state >= x->cap) {
        const int32_t cap = 2 * state + 64;
        x->runs           = realloc(x->runs, (size_t)cap * sizeof *x->runs);
        FM_BUG_UNLESS(x->runs != NULL);
        memset(x->runs + x->cap, 0, (size_t)(cap - x->cap) * sizeof *x->runs);
        x->cap = cap;
    }
    if (!x->runs[state]) x->runs[state] = make_runs(&x->states, state);
    return x->runs[state];
}

static void side_fini(side *x)
{
    for (int32_t i = 0; i < x->cap; i++) free(x->runs[i]);
    free(x->runs);
    fm__states_fini(&x->states);
}

static int is_too_much(const product *p)
{
    return p->a.states.effort > FM__MAX_EFFORT || p->b.states.effort > FM__MAX_EFFORT;
}

/* An edge for the bytes from lo to hi, which lead to a and b. */
static fm_status add_edge(product *p, pair q, int lo, int hi, int32_t a, int32_t b)
{
    if (b == FM__DEAD) b = GONE;
    if (a == FM__DEAD || (b == GONE && p->kind == FM__IN_BOTH)) return FM_OK;
    const int32_t to = state_of(p, a, b);
    if (to < 0 || p->n->full) return fm_fail(FM_E_NOSUP, "grammar: it is too large");
    fm__nfa_bytes(p->n, q.state, to, lo, hi);
    return FM_OK;
}

static fm_status expand(product *p, pair q)
{
    const run *a = runs_of(&p->a, q.a), *b = runs_of(&p->b, q.b);
    for (int lo = 0; lo < 256;) {
        const int hi = a->hi < b->hi ? a->hi : b->hi;
        FM_TRY(add_edge(p, q, lo, hi, a->to, b->to));
        if (a->hi == hi) a++;
        if (b->hi == hi) b++;
        lo = hi + 1;
    }
    if (is_too_much(p)) return fm_fail(FM_E_NOSUP, "grammar: too many ways to follow it at once");
    return FM_OK;
}

static fm_status multiply(product *p)
{
    p->pair = malloc((size_t)p->max_pair * sizeof *p->pair);
    p->slot = malloc(N_SLOT * sizeof *p->slot);
    if (!p->pair || !p->slot) return fm_fail(FM_E_OOM, "grammar");
    memset(p->slot, 0xff, N_SLOT * sizeof *p->slot);
    fm__states_begin_walk(&p->a.states);
    fm__states_begin_walk(&p->b.states);
    state_of(p, 0, 0);
    for (int32_t i = 0; i < p->n_pair; i++) FM_TRY(expand(p, p->pair[i]));
    return FM_OK;
}

fm_status fm__nfa_intersect(fm__nfa *a, const fm__nfa *b, fm__both_kind kind, int max_state)
{
    fm__nfa   out;
    product   p  = {.kind = kind, .n = &out, .max_pair = max_state};
    fm_status rc = a->full || b->full ? fm_fail(FM_E_NOSUP, "grammar: it is too large") : FM_OK;
    fm__nfa_begin(&out);
    if (rc == FM_OK) rc = fm__states_init(&p.a.states, a);
    if (rc == FM_OK) rc = fm__states_init(&p.b.states, b);
    if (rc == FM_OK) rc = multiply(&p);
    side_fini(&p.a);
    side_fini(&p.b);
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
