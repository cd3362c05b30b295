/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers.  Bounds are followed digit by digit, within the integers of 64 bits;
 * those of numbers that are no integers must be whole, and such numbers have no
 * exponent. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "json/read.h"
#include "llm/grammar/schema_internal.h"

enum { MAX_DIGITS = 19, MAX_FRACTION = 18 };

typedef struct {
    fm__nfa    *n;
    const char *lo, *hi; /* the same number of digits */
    int         n_digit;
    int32_t     end;
} span;

static int32_t add_digit(const span *q, int32_t from, int lo, int hi)
{
    const int32_t to = fm__nfa_state(q->n);
    fm__nfa_bytes(q->n, from, to, lo, hi);
    return to;
}

static void add_free_digits(const span *q, int i, int32_t from)
{
    for (; i < q->n_digit; i++) from = add_digit(q, from, '0', '9');
    fm__nfa_empty(q->n, from, q->end);
}

/* Digits from i on; those before equal lo's (at_lo) and hi's (at_hi). */
static void add_digits(const span *q, int i, int at_lo, int at_hi, int32_t from)
{
    if (i == q->n_digit || (!at_lo && !at_hi)) {
        add_free_digits(q, i, from);
        return;
    }
    const int lo = at_lo ? q->lo[i] : '0', hi = at_hi ? q->hi[i] : '9';
    if (at_lo && at_hi && lo == hi) {
        add_digits(q, i + 1, 1, 1, add_digit(q, from, lo, lo));
        return;
    }
    if (at_lo) add_digits(q, i + 1, 1, 0, add_digit(q, from, lo, lo));
    if (at_hi) add_digits(q, i + 1, 0, 1, add_digit(q, from, hi, hi));
    const int first = lo + at_lo, last = hi - at_hi;
    if (first <= last) add_free_digits(q, i + 1, add_digit(q, from, first, last));
}

/* Integers of [lo, hi]. */
static void add_natural(fm__nfa *n, int32_t from, int32_t end, uint64_t lo, uint64_t hi)
{
    uint64_t ten = 1;
    for (int n_digit = 1; n_digit <= MAX_DIGITS && lo <= hi; n_digit++) {
        ten *= 10;
        const uint64_t last = hi < ten - 1 ? hi : ten - 1;
        if (lo > last) continue;
        char a[24], b[24];
        snprintf(a, sizeof a, "%" PRIu64, lo);
        snprintf(b, sizeof b, "%" PRIu64, last);
        const span q = {.n = n, .lo = a, .hi = b, .n_digit = n_digit, .end = end};
        add_digits(&q, 0, 1, 1, from);
        lo = last + 1;
    }
}

static uint64_t size_of(int64_t x)
{
    return x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
}

static void add_integers(fm__nfa *n, int32_t from, int32_t end, int64_t lo, int64_t hi)
{
    if (lo < 0)
        add_natural(n, fm__nfa_word(n, from, "-"), end, hi < 0 ? size_of(hi) : 1, size_of(lo));
    if (hi >= 0) add_natural(n, from, end, lo > 0 ? (uint64_t)lo : 0, (uint64_t)hi);
}

/* One end of an interval: the last integer that belongs to it, and whether it
 * is the end itself; else some numbers beyond it belong to it, too. */
typedef struct {
    int64_t at;
    int     is_exact;
} limit;

typedef struct {
    limit least, most;
    int   is_given; /* any of the four */
} bounds;

/* A bound that excludes everything we can write. */
static fm_status refuse_bound(const char *key, const json_t *w)
{
    return fm_fail(FM_E_NOSUP, "schema: %s: %.17g leaves no integer of 64 bits", key,
                   json_number_value(w));
}

/* The integer at or below w; 0: beyond 64 bits. */
static int round_down(int64_t *out, const json_t *w)
{
    const double x = json_number_value(w);
    if (json_is_integer(w))
        *out = json_integer_value(w);
    else if (x >= -0x1p63 && x < 0x1p63)
        *out = (int64_t)floor(x);
    else
        return 0;
    return 1;
}

typedef struct {
    const char *key;
    int         is_upper, opens;
} bound_word;

static fm_status read_bound(bounds *b, const json_t *v, bound_word k)
{
    const json_t *w  = json_object_get(v, k.key);
    limit        *l  = k.is_upper ? &b->most : &b->least;
    int64_t       at = 0;
    if (!w) return FM_OK;
    if (!json_is_number(w))
        return fm_fail(FM_E_FORMAT, "schema: %s: expected a number, found %s", k.key,
                       fm_json_kind(w));
    b->is_given = 1;
    if (!round_down(&at, w)) /* beyond on the far side, it says nothing about what we can write */
        return (json_number_value(w) > 0) == k.is_upper ? FM_OK : refuse_bound(k.key, w);
    const int is_whole = json_is_integer(w) || json_real_value(w) == floor(json_real_value(w));
    const int inwards  = k.is_upper ? k.opens && is_whole : k.opens || !is_whole;
    if (inwards && at == (k.is_upper ? INT64_MIN : INT64_MAX)) return refuse_bound(k.key, w);
    at += k.is_upper ? -inwards : inwards;

    const int is_exact = is_whole && !k.opens;
    if (at == l->at) l->is_exact |= is_exact;
    if (k.is_upper ? at < l->at : at > l->at) *l = (limit){at, is_exact};
    return FM_OK;
}

static fm_status read_bounds(bounds *b, const json_t *v)
{
    static const bound_word word[] = {{"minimum", 0, 0},
                                      {"maximum", 1, 0},
                                      {"exclusiveMinimum", 0, 1},
                                      {"exclusiveMaximum", 1, 1}};
    *b = (bounds){.least = {INT64_MIN, 1}, .most = {INT64_MAX, 1}};
    for (size_t i = 0; i < sizeof word / sizeof *word; i++) FM_TRY(read_bound(b, v, word[i]));
    return FM_OK;
}

static fm_status add_integer(fm__nfa *n, const bounds *b, int32_t from, int32_t *to)
{
    if (b->least.at > b->most.at)
        return fm_fail(FM_E_ARG, "schema: no integer is between minimum and maximum");
    *to = fm__nfa_state(n);
    add_integers(n, from, *to, b->least.at, b->most.at);
    return FM_OK;
}

/* Numbers of [lo, hi]: a whole part below hi and any fraction, or hi. */
static void add_positive(fm__nfa *n, int32_t from, int32_t end, uint64_t lo, uint64_t hi)
{
    const int32_t whole = fm__nfa_state(n), most = fm__nfa_state(n);
    if (hi) add_natural(n, from, whole, lo, hi - 1);
    fm__nfa_empty(n, whole, end);
    fm__nfa_empty(n, fm__nfa_digits(n, fm__nfa_word(n, whole, "."), 1, MAX_FRACTION), end);
    add_natural(n, from, most, hi, hi);
    fm__nfa_empty(n, most, end);
    fm__nfa_empty(n, fm__nfa_word(n, most, ".0"), end);
}

static fm_status add_number(fm__nfa *n, const bounds *b, int32_t from, int32_t *to)
{
    const int64_t lo = b->least.at, hi = b->most.at;
    if (!b->least.is_exact || !b->most.is_exact)
        return fm_fail(FM_E_NOSUP,
                       "schema: of type number, only minimum and maximum that are whole "
                       "numbers are supported");
    if (lo > hi) return fm_fail(FM_E_ARG, "schema: maximum is below minimum");
    *to = fm__nfa_state(n);
    if (lo < 0)
        add_positive(n, fm__nfa_word(n, from, "-"), *to, hi < 0 ? size_of(hi) : 0, size_of(lo));
    if (hi >= 0) add_positive(n, from, *to, lo > 0 ? (uint64_t)lo : 0, (uint64_t)hi);
    return FM_OK;
}

fm_status fm__schema_number(fm__schema *s, const json_t *v, int is_integer, int32_t from,
                            int32_t *to)
{
    bounds b;
    FM_TRY(read_bounds(&b, v));
    if (b.is_given)
        return is_integer ? add_integer(s->n, &b, from, to) : add_number(s->n, &b, from, to);
    *to = is_integer ? fm__nfa_integer(s->n, from) : fm__nfa_number(s->n, from);
    return FM_OK;
}
