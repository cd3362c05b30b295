/* SPDX-License-Identifier: Apache-2.0 */
/* JSON as such.  Digits are limited, so that a model cannot go on with them for
 * ever. */
#include "llm/grammar/nfa.h"

enum { MAX_DIGITS = 18, MAX_EXPONENT = 2 };

typedef void build_fn(fm__nfa *n, int32_t start, int32_t end);

/* Calls a shared rule, making it at its first use. */
static int32_t call_shared(fm__nfa *n, int32_t from, int32_t *id, build_fn *build)
{
    if (*id < 0) {
        *id = fm__nfa_rule(n);
        if (!n->full) build(n, n->rule[*id].start, n->rule[*id].end);
    }
    return fm__nfa_call(n, from, *id);
}

static void build_string(fm__nfa *n, int32_t at, int32_t end)
{
    at = fm__nfa_string_chars(n, fm__nfa_word(n, at, "\""), 0, -1);
    fm__nfa_empty(n, fm__nfa_word(n, at, "\""), end);
}

int32_t fm__nfa_digits(fm__nfa *n, int32_t at, int min, int max)
{
    const int32_t end = fm__nfa_state(n);
    for (int i = 0; i < max && !n->full; i++) {
        const int32_t next = fm__nfa_state(n);
        if (i >= min) fm__nfa_empty(n, at, end);
        fm__nfa_bytes(n, at, next, '0', '9');
        at = next;
    }
    fm__nfa_empty(n, at, end);
    return end;
}

static void build_integer(fm__nfa *n, int32_t at, int32_t end)
{
    const int32_t unsigned_at = fm__nfa_state(n), rest = fm__nfa_state(n);
    fm__nfa_empty(n, at, unsigned_at);
    fm__nfa_empty(n, fm__nfa_word(n, at, "-"), unsigned_at);
    fm__nfa_empty(n, fm__nfa_word(n, unsigned_at, "0"), end);
    fm__nfa_bytes(n, unsigned_at, rest, '1', '9');
    fm__nfa_empty(n, fm__nfa_digits(n, rest, 0, MAX_DIGITS - 1), end);
}

static void build_number(fm__nfa *n, int32_t at, int32_t end)
{
    const int32_t whole = fm__nfa_integer(n, at), with_fraction = fm__nfa_state(n);
    fm__nfa_empty(n, whole, with_fraction);
    fm__nfa_empty(n, fm__nfa_digits(n, fm__nfa_word(n, whole, "."), 1, MAX_DIGITS), with_fraction);
    fm__nfa_empty(n, with_fraction, end);

    const int32_t e = fm__nfa_state(n), sign = fm__nfa_state(n);
    fm__nfa_bytes(n, with_fraction, e, 'e', 'e');
    fm__nfa_bytes(n, with_fraction, e, 'E', 'E');
    fm__nfa_empty(n, e, sign);
    fm__nfa_bytes(n, e, sign, '+', '+');
    fm__nfa_bytes(n, e, sign, '-', '-');
    fm__nfa_empty(n, fm__nfa_digits(n, sign, 1, MAX_EXPONENT), end);
}

static void build_object(fm__nfa *n, int32_t at, int32_t end)
{
    const int32_t key = fm__nfa_open(n, at, '{'), after = fm__nfa_state(n);
    fm__nfa_empty(n, fm__nfa_none(n, at, "{}"), end);
    fm__nfa_empty(n, fm__nfa_value(n, fm__nfa_colon(n, fm__nfa_string(n, key))), after);
    fm__nfa_empty(n, fm__nfa_comma(n, after), key);
    fm__nfa_empty(n, fm__nfa_shut(n, after, '}'), end);
}

static void add_array(fm__nfa *n, int32_t at, int32_t end)
{
    const int32_t item = fm__nfa_open(n, at, '['), after = fm__nfa_state(n);
    fm__nfa_empty(n, fm__nfa_none(n, at, "[]"), end);
    fm__nfa_empty(n, fm__nfa_value(n, item), after);
    fm__nfa_empty(n, fm__nfa_comma(n, after), item);
    fm__nfa_empty(n, fm__nfa_shut(n, after, ']'), end);
}

static void build_value(fm__nfa *n, int32_t at, int32_t end)
{
    static const char *const word[] = {"true", "false", "null"};
    for (int i = 0; i < 3; i++) fm__nfa_empty(n, fm__nfa_word(n, at, word[i]), end);
    fm__nfa_empty(n, fm__nfa_string(n, at), end);
    fm__nfa_empty(n, fm__nfa_number(n, at), end);
    fm__nfa_empty(n, fm__nfa_object(n, at), end);
    add_array(n, at, end);
}

int32_t fm__nfa_string(fm__nfa *n, int32_t from)
{
    return call_shared(n, from, &n->shared.string, build_string);
}

int32_t fm__nfa_number(fm__nfa *n, int32_t from)
{
    return call_shared(n, from, &n->shared.number, build_number);
}

int32_t fm__nfa_integer(fm__nfa *n, int32_t from)
{
    return call_shared(n, from, &n->shared.integer, build_integer);
}

int32_t fm__nfa_value(fm__nfa *n, int32_t from)
{
    return call_shared(n, from, &n->shared.value, build_value);
}

int32_t fm__nfa_object(fm__nfa *n, int32_t from)
{
    return call_shared(n, from, &n->shared.object, build_object);
}
