/* SPDX-License-Identifier: Apache-2.0 */
/* Characters as bytes: UTF-8, and the escapes of JSON strings. */
#include <stdio.h>

#include "llm/grammar/nfa.h"

enum { LAST_CHAR = 0x10ffff, SURROGATE_LO = 0xd800, SURROGATE_HI = 0xdfff };

static int put_utf8(unsigned char *out, uint32_t c)
{
    if (c < 0x80) {
        out[0] = (unsigned char)c;
        return 1;
    }
    const int n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (int i = n - 1; i > 0; i--, c >>= 6) out[i] = (unsigned char)(0x80 | (c & 0x3f));
    out[0] = (unsigned char)((0xf00 >> n) | c);
    return n;
}

/* lo and hi differ in their last bytes only, and these span all values: one
 * chain of byte ranges. */
static void add_chain(fm__nfa *n, int32_t from, int32_t to, uint32_t lo, uint32_t hi)
{
    unsigned char a[4], b[4];
    const int     len = put_utf8(a, lo);
    put_utf8(b, hi);
    for (int i = 0; i < len; i++) {
        const int32_t next = i == len - 1 ? to : fm__nfa_state(n);
        fm__nfa_bytes(n, from, next, a[i], b[i]);
        from = next;
    }
}

/* A range of characters, all with the same number of bytes: cut where a
 * continuation byte wraps around. */
static void add_same_length(fm__nfa *n, int32_t from, int32_t to, uint32_t lo, uint32_t hi)
{
    for (int i = 1; i < 4 && hi >= 0x80; i++) {
        const uint32_t tail = (1u << 6 * i) - 1;
        if ((lo & ~tail) == (hi & ~tail)) break;
        if (lo & tail) {
            add_same_length(n, from, to, lo, lo | tail);
            add_same_length(n, from, to, (lo | tail) + 1, hi);
            return;
        }
        if ((hi & tail) != tail) {
            add_same_length(n, from, to, lo, (hi & ~tail) - 1);
            add_same_length(n, from, to, hi & ~tail, hi);
            return;
        }
    }
    add_chain(n, from, to, lo, hi);
}

static void add_utf8(fm__nfa *n, int32_t from, int32_t to, uint32_t lo, uint32_t hi)
{
    static const uint32_t part[][2] = {{0, 0x7f},
                                       {0x80, 0x7ff},
                                       {0x800, SURROGATE_LO - 1},
                                       {SURROGATE_HI + 1, 0xffff},
                                       {0x10000, LAST_CHAR}};
    for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
        const uint32_t a = lo > part[i][0] ? lo : part[i][0], b = hi < part[i][1] ? hi : part[i][1];
        if (a <= b) add_same_length(n, from, to, a, b);
    }
}

/* The escape JSON needs for a character, or NULL. */
static const char *escape(uint32_t c, char buf[8])
{
    switch (c) {
    case '"': return "\\\"";
    case '\\': return "\\\\";
    case '\b': return "\\b";
    case '\f': return "\\f";
    case '\n': return "\\n";
    case '\r': return "\\r";
    case '\t': return "\\t";
    default: break;
    }
    if (c >= 0x20) return NULL;
    snprintf(buf, 8, "\\u%04x", (unsigned)c);
    return buf;
}

void fm__nfa_chars(fm__nfa *n, int32_t from, int32_t to, uint32_t lo, uint32_t hi, fm__spelling s)
{
    char buf[8];
    if (s == FM__PLAIN) {
        add_utf8(n, from, to, lo, hi);
        return;
    }
    for (uint32_t c = lo; c <= hi && c <= '\\'; c++) {
        const char *text = escape(c, buf);
        if (text) fm__nfa_empty(n, fm__nfa_word(n, from, text), to);
    }
    static const uint32_t raw[][2] = {{0x20, '"' - 1}, {'"' + 1, '\\' - 1}, {'\\' + 1, LAST_CHAR}};
    for (int i = 0; i < 3; i++) {
        const uint32_t a = lo > raw[i][0] ? lo : raw[i][0], b = hi < raw[i][1] ? hi : raw[i][1];
        if (a <= b) add_utf8(n, from, to, a, b);
    }
}

static void add_hex(fm__nfa *n, int32_t from, int32_t to)
{
    fm__nfa_bytes(n, from, to, '0', '9');
    fm__nfa_bytes(n, from, to, 'a', 'f');
    fm__nfa_bytes(n, from, to, 'A', 'F');
}

/* \uXXXX that is no half of a surrogate pair: one character by itself. */
static void add_unicode_escape(fm__nfa *n, int32_t from, int32_t to)
{
    const int32_t u = fm__nfa_word(n, from, "\\u"), any = fm__nfa_state(n), d = fm__nfa_state(n);
    const int32_t low = fm__nfa_state(n), last = fm__nfa_state(n);
    fm__nfa_bytes(n, u, any, '0', '9');
    fm__nfa_bytes(n, u, any, 'a', 'c');
    fm__nfa_bytes(n, u, any, 'A', 'C');
    fm__nfa_bytes(n, u, any, 'e', 'f');
    fm__nfa_bytes(n, u, any, 'E', 'F');
    fm__nfa_bytes(n, u, d, 'd', 'd');
    fm__nfa_bytes(n, u, d, 'D', 'D');
    add_hex(n, any, low);
    fm__nfa_bytes(n, d, low, '0', '7');
    add_hex(n, low, last);
    add_hex(n, last, to);
}

/* ECMA-262's line ends: LF, CR, U+2028 and U+2029. */
static void build_dot(fm__nfa *n, fm__rule r, fm__spelling s)
{
    static const uint32_t part[][2] = {
        {0, '\n' - 1}, {'\n' + 1, '\r' - 1}, {'\r' + 1, 0x2027}, {0x202a, LAST_CHAR}};
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        fm__nfa_chars(n, r.start, r.end, part[i][0], part[i][1], s);
}

int32_t fm__nfa_dot(fm__nfa *n, int32_t from, fm__spelling s)
{
    if (n->shared.dot[s] < 0) {
        n->shared.dot[s] = fm__nfa_rule(n);
        if (!n->full) build_dot(n, n->rule[n->shared.dot[s]], s);
    }
    return fm__nfa_call(n, from, n->shared.dot[s]);
}

static void build_string_char(fm__nfa *n, fm__rule r)
{
    static const char short_escape[] = "\"\\/bfnrt";
    add_utf8(n, r.start, r.end, 0x20, '"' - 1);
    add_utf8(n, r.start, r.end, '"' + 1, '\\' - 1);
    add_utf8(n, r.start, r.end, '\\' + 1, LAST_CHAR);
    const int32_t escaped = fm__nfa_word(n, r.start, "\\");
    for (const char *c = short_escape; *c; c++) fm__nfa_bytes(n, escaped, r.end, *c, *c);
    add_unicode_escape(n, r.start, r.end);
}

static int32_t add_string_char(fm__nfa *n, int32_t from)
{
    if (n->shared.string_char < 0) {
        n->shared.string_char = fm__nfa_rule(n);
        if (!n->full) build_string_char(n, n->rule[n->shared.string_char]);
    }
    return fm__nfa_call(n, from, n->shared.string_char);
}

int32_t fm__nfa_string_chars(fm__nfa *n, int32_t from, int64_t min, int64_t max)
{
    const int32_t end = fm__nfa_state(n);
    for (int64_t i = 0; i < min && !n->full; i++) from = add_string_char(n, from);
    if (max < 0) {
        const int32_t loop = fm__nfa_state(n);
        fm__nfa_empty(n, from, loop);
        fm__nfa_empty(n, add_string_char(n, loop), loop);
        from = loop;
    }
    for (int64_t i = min; i < max && !n->full; i++) {
        fm__nfa_empty(n, from, end);
        from = add_string_char(n, from);
    }
    fm__nfa_empty(n, from, end);
    return end;
}

int32_t fm__nfa_string_char_once(fm__nfa *n, int32_t from)
{
    if (n->shared.string_char_once < 0) {
        n->shared.string_char_once = fm__nfa_rule(n);
        if (n->full) return from;
        const fm__rule r = n->rule[n->shared.string_char_once];
        fm__nfa_chars(n, r.start, r.end, 0, LAST_CHAR, FM__IN_STRING);
    }
    return fm__nfa_call(n, from, n->shared.string_char_once);
}
