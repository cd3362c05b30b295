/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/grammar/nfa.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_STATE = 1 << 17, MAX_EDGE = 1 << 19, MAX_RULE = 1 << 15 };

static void init(fm__nfa *n)
{
    *n = (fm__nfa){.shared = {.dot              = {-1, -1},
                              .string_char      = -1,
                              .string_char_once = -1,
                              .string           = -1,
                              .comma            = -1,
                              .colon            = -1,
                              .number           = -1,
                              .integer          = -1,
                              .value            = -1,
                              .object           = -1}};
    fm__nfa_state(n); /* so that state 0 always exists, also in a full one */
}

void fm__nfa_fini(fm__nfa *n)
{
    free(n->first);
    free(n->ends);
    free(n->mark);
    free(n->edge);
    free(n->rule);
    *n = (fm__nfa){0};
}

/* Doubles a list; the limit keeps it small. */
static void *grow(void *list, int32_t *cap, size_t size)
{
    *cap       = *cap ? 2 * *cap : 256;
    void *more = realloc(list, (size_t)*cap * size);
    FM_BUG_UNLESS(more != NULL);
    return more;
}

int32_t fm__nfa_state(fm__nfa *n)
{
    if (n->n_state == MAX_STATE) {
        n->full = 1;
        return 0;
    }
    if (n->n_state == n->cap_state) {
        int32_t cap = n->cap_state, same = n->cap_state;
        n->first = grow(n->first, &n->cap_state, sizeof *n->first);
        n->ends  = grow(n->ends, &cap, sizeof *n->ends);
        n->mark  = grow(n->mark, &same, sizeof *n->mark);
    }
    n->first[n->n_state] = -1;
    n->ends[n->n_state]  = 0;
    n->mark[n->n_state]  = 0;
    return n->n_state++;
}

int32_t fm__nfa_rule(fm__nfa *n)
{
    const int32_t start = fm__nfa_state(n), end = fm__nfa_state(n);
    if (n->full || n->n_rule == MAX_RULE) {
        n->full = 1;
        return 0;
    }
    if (n->n_rule == n->cap_rule) n->rule = grow(n->rule, &n->cap_rule, sizeof *n->rule);
    n->rule[n->n_rule] = (fm__rule){.start = start, .end = end};
    n->ends[end]       = 1;
    return n->n_rule++;
}

void fm__nfa_mark(fm__nfa *n, int32_t first, int mark)
{
    n->has_marks = 1;
    for (int32_t s = first; s < n->n_state; s++) n->mark[s] |= (char)mark;
}

static void add_edge(fm__nfa *n, int32_t from, fm__edge e)
{
    if (n->n_edge == MAX_EDGE) n->full = 1;
    if (n->full) return;
    if (n->n_edge == n->cap_edge) n->edge = grow(n->edge, &n->cap_edge, sizeof *n->edge);
    FM_BUG_UNLESS(!n->ends[from]);
    e.next             = n->first[from];
    n->edge[n->n_edge] = e;
    n->first[from]     = n->n_edge++;
}

void fm__nfa_empty(fm__nfa *n, int32_t from, int32_t to)
{
    add_edge(n, from, (fm__edge){.to = to, .kind = FM__EDGE_EMPTY});
}

int32_t fm__nfa_layout(fm__nfa *n, int32_t from, fm__edge_kind kind, int32_t what)
{
    const int32_t to = fm__nfa_state(n);
    add_edge(n, from, (fm__edge){.to = to, .kind = (unsigned char)kind, .what = what});
    return to;
}

void fm__nfa_bytes(fm__nfa *n, int32_t from, int32_t to, int lo, int hi)
{
    add_edge(
        n, from,
        (fm__edge){
            .to = to, .kind = FM__EDGE_BYTE, .lo = (unsigned char)lo, .hi = (unsigned char)hi});
}

int32_t fm__nfa_call(fm__nfa *n, int32_t from, int32_t rule)
{
    const int32_t to = fm__nfa_state(n);
    add_edge(n, from, (fm__edge){.to = to, .kind = FM__EDGE_CALL, .what = rule});
    return to;
}

int32_t fm__nfa_token(fm__nfa *n, int32_t from, int32_t token)
{
    const int32_t to = fm__nfa_state(n);
    add_edge(n, from, (fm__edge){.to = to, .kind = FM__EDGE_TOKEN, .what = token});
    return to;
}

int32_t fm__nfa_text(fm__nfa *n, int32_t from, const char *text, size_t len)
{
    for (size_t i = 0; i < len && !n->full; i++) {
        const int32_t       to = fm__nfa_state(n);
        const unsigned char c  = (unsigned char)text[i];
        fm__nfa_bytes(n, from, to, c, c);
        from = to;
    }
    return from;
}

static int32_t after_byte(const fm__nfa *n, int32_t from, unsigned char c)
{
    for (int32_t i = n->first[from]; i >= 0; i = n->edge[i].next)
        if (n->edge[i].kind == FM__EDGE_BYTE && n->edge[i].lo == c) return n->edge[i].to;
    return -1;
}

int32_t fm__nfa_shared_text(fm__nfa *n, int32_t root, const char *text)
{
    for (int32_t to; *text && (to = after_byte(n, root, (unsigned char)*text)) >= 0; text++)
        root = to;
    return fm__nfa_word(n, root, text);
}

int32_t fm__nfa_word(fm__nfa *n, int32_t from, const char *text)
{
    return fm__nfa_text(n, from, text, strlen(text));
}

void fm__nfa_begin(fm__nfa *n)
{
    init(n);
    fm__nfa_rule(n);
}

void fm__nfa_close(fm__nfa *n, int32_t to)
{
    if (!n->full) fm__nfa_empty(n, to, n->rule[0].end);
}
