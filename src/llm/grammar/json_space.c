/* SPDX-License-Identifier: Apache-2.0 */
/* Brackets and separators of JSON, and the white space around them. */
#include "llm/grammar/layout.h"
#include "llm/grammar/nfa.h"

enum { MAX_FIRST = 2 }; /* what R1 writes between </think> and its answer */

static int32_t add_byte(fm__nfa *n, int32_t from, char c)
{
    return fm__nfa_text(n, from, &c, 1);
}

static int32_t add_gap(fm__nfa *n, int32_t from, fm__gap gap)
{
    switch (n->spacing) {
    case FM__SPACING_NONE: return from;
    case FM__SPACING_RULE: return fm__nfa_call(n, from, n->space_rule);
    default: return fm__nfa_layout(n, from, FM__EDGE_GAP, gap);
    }
}

static int32_t add_mark(fm__nfa *n, int32_t from, fm__edge_kind kind)
{
    return n->spacing == FM__SPACING_LAYOUT ? fm__nfa_layout(n, from, kind, 0) : from;
}

int32_t fm__nfa_open(fm__nfa *n, int32_t from, char bracket)
{
    return add_gap(n, add_mark(n, add_byte(n, from, bracket), FM__EDGE_OPEN), FM__GAP_BEGIN);
}

int32_t fm__nfa_shut(fm__nfa *n, int32_t from, char bracket)
{
    return add_byte(n, add_mark(n, add_gap(n, from, FM__GAP_END), FM__EDGE_SHUT), bracket);
}

int32_t fm__nfa_none(fm__nfa *n, int32_t from, const char *brackets)
{
    from = add_byte(n, from, brackets[0]);
    if (n->spacing == FM__SPACING_RULE) from = add_gap(n, from, FM__GAP_BEGIN);
    return add_byte(n, from, brackets[1]);
}

/* A separator as a rule, called from many places. */
static int32_t call_separator(fm__nfa *n, int32_t from, int32_t *id, char separator)
{
    if (*id < 0) {
        *id = fm__nfa_rule(n);
        if (n->full) return from;
        const fm__rule r  = n->rule[*id];
        int32_t        at = r.start;
        if (n->spacing == FM__SPACING_RULE) at = add_gap(n, at, FM__GAP_COMMA);
        at = add_byte(n, at, separator);
        if (n->spacing == FM__SPACING_LAYOUT && separator == ':')
            fm__nfa_bytes(n, at, r.end, ' ', ' ');
        else
            at = add_gap(n, at, FM__GAP_COMMA);
        fm__nfa_empty(n, at, r.end);
    }
    return fm__nfa_call(n, from, *id);
}

int32_t fm__nfa_comma(fm__nfa *n, int32_t from)
{
    return call_separator(n, from, &n->shared.comma, ',');
}

int32_t fm__nfa_colon(fm__nfa *n, int32_t from)
{
    return call_separator(n, from, &n->shared.colon, ':');
}

int32_t fm__nfa_space_first(fm__nfa *n, int32_t from)
{
    const int32_t end = fm__nfa_state(n);
    for (int i = 0; i < MAX_FIRST; i++) {
        const int32_t next = fm__nfa_state(n);
        fm__nfa_empty(n, from, end);
        fm__nfa_bytes(n, from, next, ' ', ' ');
        fm__nfa_bytes(n, from, next, '\n', '\n');
        from = next;
    }
    fm__nfa_empty(n, from, end);
    return end;
}
