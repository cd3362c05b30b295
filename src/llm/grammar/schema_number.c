/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers.  Bounds are followed digit by digit; those of numbers that are no
 * integers must be whole, and such numbers have no exponent. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "json/read.h"
#include "llm/grammar/schema_internal.h"

static const int64_t largest = 999999999999999999; /* 18 digits */

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

/* Integers of [lo, hi], 0 <= lo. */
static void add_natural(fm__nfa *n, int32_t from, int32_t end, int64_t lo, int64_t hi)
{
    int64_t ten = 1;
    for (int n_digit = 1; n_digit <= 18 && lo <= hi; n_digit++) {
        ten *= 10;
        const int64_t last = hi < ten - 1 ? hi : ten - 1;
        if (lo > last) continue;
        char a[24], b[24];
        snprintf(a, sizeof a, "%" PRId64, lo);
        snprintf(b, sizeof b, "%" PRId64, last);
        const span q = {.n = n, .lo = a, .hi = b, .n_digit = n_digit, .end = end};
        add_digits(&q, 0, 1, 1, from);
        lo = last + 1;
    }
}

static void add_integers(fm__nfa *n, int32_t from, int32_t end, int64_t lo, int64_t hi)
{
    if (lo < 0) {
        const int64_t nearest = hi < -1 ? -hi : 1;
        add_natural(n, fm__nfa_word(n, from, "-"), end, nearest, -lo);
    }
    if (hi >= 0) add_natural(n, from, end, lo > 0 ? lo : 0, hi);
}

typedef struct {
    double least, most; /* infinite: no bound */
    int    open_least, open_most;
} bounds;

static fm_status read_bound(double *x, int *is_open, const json_t *v, const char *key, int opens)
{
    const json_t *w = json_object_get(v, key);
    if (!w) return FM_OK;
    if (!json_is_number(w))
        return fm_fail(FM_E_FORMAT, "schema: %s: expected a number, found %s", key,
                       fm_json_kind(w));
    const double y = json_number_value(w);
    const int    tighter =
        !strncmp(key + (opens ? 9 : 0), opens ? "Min" : "min", 3) ? y >= *x : y <= *x;
    if (!tighter) return FM_OK;
    *is_open = opens || (*is_open && y == *x);
    *x       = y;
    return FM_OK;
}

static fm_status read_bounds(bounds *b, const json_t *v)
{
    *b = (bounds){.least = -INFINITY, .most = INFINITY};
    FM_TRY(read_bound(&b->least, &b->open_least, v, "minimum", 0));
    FM_TRY(read_bound(&b->most, &b->open_most, v, "maximum", 0));
    FM_TRY(read_bound(&b->least, &b->open_least, v, "exclusiveMinimum", 1));
    return read_bound(&b->most, &b->open_most, v, "exclusiveMaximum", 1);
}

static int64_t as_integer(double x)
{
    return x <= -(double)largest ? -largest : x >= (double)largest ? largest : (int64_t)x;
}

static fm_status add_integer(fm__nfa *n, const bounds *b, int32_t from, int32_t *to)
{
    const double least = ceil(b->least) + (b->open_least && ceil(b->least) == b->least);
    const double most  = floor(b->most) - (b->open_most && floor(b->most) == b->most);
    if (least > most) return fm_fail(FM_E_ARG, "schema: no integer is between minimum and maximum");
    *to = fm__nfa_state(n);
    add_integers(n, from, *to, as_integer(least), as_integer(most));
    return FM_OK;
}

/* Numbers of [lo, hi], 0 <= lo: a whole part below hi and any fraction, or hi. */
static void add_positive(fm__nfa *n, int32_t from, int32_t end, int64_t lo, int64_t hi)
{
    const int32_t whole = fm__nfa_state(n), most = fm__nfa_state(n);
    add_natural(n, from, whole, lo, hi - 1);
    fm__nfa_empty(n, whole, end);
    fm__nfa_empty(n, fm__nfa_digits(n, fm__nfa_word(n, whole, "."), 1, 18), end);
    add_natural(n, from, most, hi, hi);
    fm__nfa_empty(n, most, end);
    fm__nfa_empty(n, fm__nfa_word(n, most, ".0"), end);
}

static fm_status add_number(fm__nfa *n, const bounds *b, int32_t from, int32_t *to)
{
    const int is_whole = (isinf(b->least) || b->least == floor(b->least)) &&
                         (isinf(b->most) || b->most == floor(b->most));
    if (!is_whole || b->open_least || b->open_most)
        return fm_fail(FM_E_NOSUP,
                       "schema: of type number, only minimum and maximum that are whole "
                       "numbers are supported");
    if (b->least > b->most) return fm_fail(FM_E_ARG, "schema: maximum is below minimum");
    const int64_t lo = as_integer(b->least), hi = as_integer(b->most);
    *to = fm__nfa_state(n);
    if (lo < 0) add_positive(n, fm__nfa_word(n, from, "-"), *to, hi < 0 ? -hi : 0, -lo);
    if (hi >= 0) add_positive(n, from, *to, lo > 0 ? lo : 0, hi);
    return FM_OK;
}

fm_status fm__schema_number(fm__schema *s, const json_t *v, int is_integer, int32_t from,
                            int32_t *to)
{
    bounds b;
    FM_TRY(read_bounds(&b, v));
    if (!isinf(b.least) || !isinf(b.most))
        return is_integer ? add_integer(s->n, &b, from, to) : add_number(s->n, &b, from, to);
    *to = is_integer ? fm__nfa_integer(s->n, from) : fm__nfa_number(s->n, from);
    return FM_OK;
}
