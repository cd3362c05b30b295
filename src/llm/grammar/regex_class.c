/* SPDX-License-Identifier: Apache-2.0 */
/* [a-z], \d and their like. */
#include <stdlib.h>

#include "llm/grammar/regex_internal.h"

void fm__charset_add(fm__regex *r, fm__charset *set, uint32_t lo, uint32_t hi)
{
    if (set->n == FM__MAX_RANGES)
        fm__regex_fail(r, FM_E_NOSUP, "a set has too many characters");
    else
        set->range[set->n++] = (fm__range){lo, hi};
}

static int by_start(const void *a, const void *b)
{
    const uint32_t x = ((const fm__range *)a)->lo, y = ((const fm__range *)b)->lo;
    return (x > y) - (x < y);
}

static void sort_and_join(fm__charset *set)
{
    int n = 0;
    qsort(set->range, (size_t)set->n, sizeof *set->range, by_start);
    for (int i = 0; i < set->n; i++) {
        fm__range *last = n ? &set->range[n - 1] : NULL;
        if (last && set->range[i].lo <= last->hi + 1) {
            if (set->range[i].hi > last->hi) last->hi = set->range[i].hi;
        } else {
            set->range[n++] = set->range[i];
        }
    }
    set->n = n;
}

/* Everything that is not in the set. */
static void invert(fm__regex *r, fm__charset *set)
{
    fm__charset out  = {.n = 0};
    uint32_t    next = 0;
    sort_and_join(set);
    for (int i = 0; i < set->n; i++) {
        if (set->range[i].lo > next) fm__charset_add(r, &out, next, set->range[i].lo - 1);
        next = set->range[i].hi + 1;
    }
    if (next <= FM__LAST_CHAR) fm__charset_add(r, &out, next, FM__LAST_CHAR);
    *set = out;
}

/* ECMA-262's white space and line ends. */
static const fm__range white[] = {
    {'\t', '\r'},     {' ', ' '},       {0xa0, 0xa0},     {0x1680, 0x1680}, {0x2000, 0x200a},
    {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}, {0xfeff, 0xfeff}};

static void add_named(fm__regex *r, fm__charset *set, uint32_t name)
{
    fm__charset own = {.n = 0};
    switch (name | 0x20) {
    case 'd': fm__charset_add(r, &own, '0', '9'); break;
    case 'w':
        fm__charset_add(r, &own, '0', '9');
        fm__charset_add(r, &own, 'A', 'Z');
        fm__charset_add(r, &own, '_', '_');
        fm__charset_add(r, &own, 'a', 'z');
        break;
    default:
        for (size_t i = 0; i < sizeof white / sizeof *white; i++)
            fm__charset_add(r, &own, white[i].lo, white[i].hi);
    }
    if (!(name & 0x20)) invert(r, &own);
    for (int i = 0; i < own.n; i++) fm__charset_add(r, set, own.range[i].lo, own.range[i].hi);
}

static uint32_t read_hex(fm__regex *r, int n_digit)
{
    uint32_t x = 0;
    for (int i = 0; i < n_digit; i++) {
        const uint32_t c = r->at < r->len ? (unsigned char)r->text[r->at++] : 0;
        const uint32_t d = c >= '0' && c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
        if (d > 15) {
            fm__regex_fail(r, FM_E_FORMAT, "a hexadecimal digit is missing");
            return 0;
        }
        x = 16 * x + d;
    }
    return x;
}

/* 1: one character, in *single; 0: a set, added. */
int fm__regex_escape(fm__regex *r, fm__charset *set, uint32_t *single)
{
    static const char from[] = "nrtfv0", to[] = "\n\r\t\f\v";
    if (r->at == r->len) {
        fm__regex_fail(r, FM_E_FORMAT, "it ends in a backslash");
        return 0;
    }
    const uint32_t c = fm__regex_char(r);
    for (int i = 0; from[i]; i++)
        if (c == (unsigned char)from[i]) return *single = (unsigned char)to[i], 1;
    if (c == 'x') return *single = read_hex(r, 2), 1;
    if (c == 'u') return *single = read_hex(r, 4), 1;
    if (c == 'U' && r->has_lines) return *single = read_hex(r, 8), 1;
    if (c == 'd' || c == 'D' || c == 'w' || c == 'W' || c == 's' || c == 'S') {
        add_named(r, set, c);
        return 0;
    }
    const int is_letter = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
    if (is_letter && c < 0x80) fm__regex_fail(r, FM_E_NOSUP, "this escape is not understood");
    return *single = c, 1;
}

/* A character, or a whole set (then 0 is returned). */
static int read_member(fm__regex *r, fm__charset *set, uint32_t *c)
{
    if (r->at == r->len) {
        fm__regex_fail(r, FM_E_FORMAT, "a set is not closed");
        return 0;
    }
    *c = fm__regex_char(r);
    return *c != '\\' || fm__regex_escape(r, set, c);
}

int32_t fm__regex_class(fm__regex *r, int32_t from)
{
    fm__charset set     = {.n = 0};
    const int   inverse = r->at < r->len && r->text[r->at] == '^';
    r->at += (size_t)inverse;
    for (int first = 1; r->rc == FM_OK; first = 0) {
        uint32_t lo = 0, hi = 0;
        if (r->at < r->len && r->text[r->at] == ']' && !first) break;
        if (!read_member(r, &set, &lo)) continue;
        hi = lo;
        if (r->at + 1 < r->len && r->text[r->at] == '-' && r->text[r->at + 1] != ']') {
            r->at++;
            if (!read_member(r, &set, &hi) || hi < lo) {
                fm__regex_fail(r, FM_E_FORMAT, "a range of characters is in the wrong order");
                break;
            }
        }
        fm__charset_add(r, &set, lo, hi);
    }
    if (r->rc == FM_OK) r->at++;
    if (inverse)
        invert(r, &set);
    else
        sort_and_join(&set);
    return fm__regex_set(r, from, &set);
}

static void add_ranges(fm__regex *r, int32_t from, int32_t to, const fm__charset *set)
{
    for (int i = 0; i < set->n; i++)
        fm__nfa_chars(r->n, from, to, set->range[i].lo, set->range[i].hi, r->spelling);
}

/* Sets beyond ASCII have many edges: they are a rule, shared when they are repeated. */
static int32_t call_set(fm__regex *r, int32_t from, const fm__charset *set)
{
    int32_t *rule = &r->set_behind[r->at];
    if (*rule < 0) {
        *rule = fm__nfa_rule(r->n);
        if (!r->n->full) add_ranges(r, r->n->rule[*rule].start, r->n->rule[*rule].end, set);
    }
    return fm__nfa_call(r->n, from, *rule);
}

int32_t fm__regex_set(fm__regex *r, int32_t from, const fm__charset *set)
{
    if (r->rc != FM_OK) return from;
    for (int i = 0; i < set->n; i++)
        if (set->range[i].hi >= 0x80 && set->range[i].hi > set->range[i].lo)
            return call_set(r, from, set);
    const int32_t to = fm__nfa_state(r->n);
    add_ranges(r, from, to, set);
    return to;
}
