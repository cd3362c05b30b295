/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions as far as they are regular: alternatives, groups, sets,
 * repetitions; ^ and $ at the ends.  No look-around, no back references. */
#include <stdlib.h>
#include <string.h>

#include "llm/grammar/regex_internal.h"

enum { MAX_NESTING = 100, MAX_REPEAT = 10000 };

void fm__regex_fail(fm__regex *r, fm_status rc, const char *what)
{
    int line = 1;
    if (r->rc != FM_OK) return;
    for (size_t i = 0; i < r->at && i < r->len; i++) line += r->text[i] == '\n';
    r->rc = r->has_lines ? fm_fail(rc, "grammar, line %d: %s", line, what)
                         : fm_fail(rc, "regular expression, byte %zu: %s", r->at, what);
    r->at = r->len; /* there is nothing more to read */
}

static int peek(const fm__regex *r)
{
    return r->at < r->len ? (unsigned char)r->text[r->at] : -1;
}

static int take(fm__regex *r, char c)
{
    if (peek(r) != (unsigned char)c) return 0;
    r->at++;
    return 1;
}

uint32_t fm__regex_char(fm__regex *r)
{
    const unsigned char c = (unsigned char)r->text[r->at++];
    if (c < 0x80) return c;
    const int n = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc0 ? 1 : -1;
    uint32_t  x = c & (0x3fu >> (n < 0 ? 0 : n));
    for (int i = 0; i < n && r->rc == FM_OK; i++) {
        const int next = peek(r);
        if (next < 0x80 || next > 0xbf)
            fm__regex_fail(r, FM_E_FORMAT, "it is no UTF-8");
        else
            x = x << 6 | (uint32_t)(next & 0x3f), r->at++;
    }
    if (n < 0) fm__regex_fail(r, FM_E_FORMAT, "it is no UTF-8");
    return x;
}

static int32_t read_alternatives(fm__regex *r, int32_t from);

static void skip_group_name(fm__regex *r)
{
    const char *close = memchr(r->text + r->at, '>', r->len - r->at);
    if (close)
        r->at = (size_t)(close - r->text) + 1;
    else
        fm__regex_fail(r, FM_E_FORMAT, "a group's name does not end");
}

/* Behind the parenthesis. */
static int32_t read_group(fm__regex *r, int32_t from)
{
    if (take(r, '?')) {
        const int named = take(r, 'P') || peek(r) == '<';
        if (named && take(r, '<') && peek(r) != '=' && peek(r) != '!')
            skip_group_name(r);
        else if (named || !take(r, ':'))
            fm__regex_fail(r, FM_E_NOSUP, "only plain groups are understood");
    }
    if (++r->depth > MAX_NESTING) fm__regex_fail(r, FM_E_NOSUP, "groups are nested too deep");
    const int32_t to = read_alternatives(r, from);
    r->depth--;
    if (!take(r, ')')) fm__regex_fail(r, FM_E_FORMAT, "a group is not closed");
    return to;
}

static int32_t add_single(fm__regex *r, int32_t from, uint32_t c)
{
    const fm__charset one = {.range = {{c, c}}, .n = 1};
    return fm__regex_set(r, from, &one);
}

static int32_t read_atom(fm__regex *r, int32_t from)
{
    const uint32_t c   = fm__regex_char(r);
    fm__charset    set = {.n = 0};
    uint32_t       one = 0;
    switch (c) {
    case '(': return read_group(r, from);
    case '[': return fm__regex_class(r, from);
    case '.': return fm__nfa_dot(r->n, from, r->spelling);
    case '\\':
        if (fm__regex_escape(r, &set, &one)) return add_single(r, from, one);
        return fm__regex_set(r, from, &set);
    case '*':
    case '+':
    case '?':
    case '{': fm__regex_fail(r, FM_E_FORMAT, "there is nothing to repeat"); return from;
    case '^':
    case '$': fm__regex_fail(r, FM_E_NOSUP, "^ and $ are understood at the ends only"); return from;
    default: return add_single(r, from, c);
    }
}

typedef struct {
    int min, max; /* max < 0: any number */
} repeat;

static int read_count(fm__regex *r, int *out)
{
    const size_t began = r->at;
    int          x     = 0;
    while (peek(r) >= '0' && peek(r) <= '9' && x <= MAX_REPEAT)
        x = 10 * x + (r->text[r->at++] - '0');
    if (x > MAX_REPEAT) fm__regex_fail(r, FM_E_NOSUP, "a repetition is too long");
    *out = x;
    return r->at > began;
}

static repeat read_repeat(fm__regex *r)
{
    repeat q = {1, 1};
    if (take(r, '*'))
        q = (repeat){0, -1};
    else if (take(r, '+'))
        q = (repeat){1, -1};
    else if (take(r, '?'))
        q = (repeat){0, 1};
    else if (take(r, '{')) {
        const int has_min = read_count(r, &q.min);
        q.max             = q.min;
        if (take(r, ',') && !read_count(r, &q.max)) q.max = -1;
        if (!has_min || !take(r, '}') || (q.max >= 0 && q.max < q.min))
            fm__regex_fail(r, FM_E_FORMAT, "a repetition is not of the form {m}, {m,} or {m,n}");
    } else {
        return q;
    }
    if (!take(r, '?')) take(r, '+'); /* lazy or possessive: the same texts */
    return q;
}

/* An atom and how often; further copies are made by reading it again. */
static int32_t read_piece(fm__regex *r, int32_t from)
{
    const size_t  began = r->at;
    const int32_t first = fm__nfa_state(r->n), end = fm__nfa_state(r->n);
    fm__nfa_empty(r->n, from, first);
    int32_t      last = first, at = read_atom(r, first);
    const repeat q    = read_repeat(r);
    const size_t done = r->at;
    const int    n    = q.max > q.min ? q.max : q.min;
    if (q.min == 0) fm__nfa_empty(r->n, first, end);
    if (q.max == 0) return end;
    for (int i = 1; i < n && r->rc == FM_OK && !r->n->full; i++) {
        if (i >= q.min) fm__nfa_empty(r->n, at, end);
        last = fm__nfa_state(r->n);
        fm__nfa_empty(r->n, at, last);
        r->at = began;
        at    = read_atom(r, last);
        r->at = r->rc == FM_OK ? done : r->len;
    }
    if (q.max < 0) fm__nfa_empty(r->n, at, last);
    fm__nfa_empty(r->n, at, end);
    return end;
}

static int32_t read_sequence(fm__regex *r, int32_t from)
{
    const int search = r->spelling == FM__IN_STRING && !r->depth;
    const int starts = !r->depth && take(r, '^');
    int       ends   = 0;
    if (search && !starts) from = fm__nfa_string_chars(r->n, from, 0, -1);
    while (!ends && r->rc == FM_OK && !r->n->full && peek(r) >= 0 && peek(r) != '|' &&
           peek(r) != ')') {
        const int last = r->at + 1 == r->len || r->text[r->at + 1] == '|';
        if (!r->depth && peek(r) == '$' && last)
            ends = take(r, '$');
        else
            from = read_piece(r, from);
    }
    if (search && !ends) from = fm__nfa_string_chars(r->n, from, 0, -1);
    return from;
}

static int32_t read_alternatives(fm__regex *r, int32_t from)
{
    const int32_t end = fm__nfa_state(r->n);
    do fm__nfa_empty(r->n, read_sequence(r, from), end);
    while (take(r, '|'));
    return end;
}

int32_t fm__nfa_regex(fm__nfa *n, int32_t from, const char *text, size_t len, fm__spelling s,
                      fm_status *rc)
{
    fm__regex r  = {.n = n, .text = text, .len = len, .spelling = s};
    r.set_behind = malloc((len + 1) * sizeof *r.set_behind);
    FM_BUG_UNLESS(r.set_behind != NULL);
    memset(r.set_behind, 0xff, (len + 1) * sizeof *r.set_behind);
    int32_t to = read_alternatives(&r, from);
    if (r.at < len && !n->full) fm__regex_fail(&r, FM_E_FORMAT, "a ) without its (");
    free(r.set_behind);
    *rc = r.rc;
    return to;
}
