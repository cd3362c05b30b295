/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "llm/grammar/schema_number.h"

enum { MAX_DIGITS = 19, MAX_FREE_FRACTION = 18 };

typedef struct {
    fm__nfa    *n;
    const char *lo, *hi; /* the same number of digits */
    int         n_digit;
    int32_t     end;
} span;

static int32_t add_digit(fm__nfa *n, int32_t from, int lo, int hi)
{
    const int32_t to = fm__nfa_state(n);
    fm__nfa_bytes(n, from, to, lo, hi);
    return to;
}

static void add_free_digits(const span *q, int i, int32_t from)
{
    for (; i < q->n_digit; i++) from = add_digit(q->n, from, '0', '9');
    fm__nfa_empty(q->n, from, q->end);
}

/* Digits from i on; those before equal lo's (at_lo) and hi's (at_hi).  Zeros in the rest of lo and
 * nines in that of hi exclude nothing. */
static void add_digits(const span *q, int i, int at_lo, int at_hi, int32_t from)
{
    at_lo = at_lo && q->lo[i + (int)strspn(q->lo + i, "0")];
    at_hi = at_hi && q->hi[i + (int)strspn(q->hi + i, "9")];
    if (i == q->n_digit || (!at_lo && !at_hi)) {
        add_free_digits(q, i, from);
        return;
    }
    const int lo = at_lo ? q->lo[i] : '0', hi = at_hi ? q->hi[i] : '9';
    if (at_lo && at_hi && lo == hi) {
        add_digits(q, i + 1, 1, 1, add_digit(q->n, from, lo, lo));
        return;
    }
    if (at_lo) add_digits(q, i + 1, 1, 0, add_digit(q->n, from, lo, lo));
    if (at_hi) add_digits(q, i + 1, 0, 1, add_digit(q->n, from, hi, hi));
    const int first = lo + at_lo, last = hi - at_hi;
    if (first <= last) add_free_digits(q, i + 1, add_digit(q->n, from, first, last));
}

void fm__nfa_naturals(fm__nfa *n, int32_t from, int32_t end, uint64_t lo, uint64_t hi)
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

void fm__nfa_integers(fm__nfa *n, int32_t from, int32_t end, int64_t lo, int64_t hi)
{
    if (lo < 0)
        fm__nfa_naturals(n, fm__nfa_word(n, from, "-"), end, hi < 0 ? size_of(hi) : 1, size_of(lo));
    if (hi >= 0) fm__nfa_naturals(n, from, end, lo > 0 ? (uint64_t)lo : 0, (uint64_t)hi);
}

/* Behind a whole part: fractions above lo and below hi, each or NULL. */
typedef struct {
    fm__nfa         *n;
    const fm__limit *lo, *hi;
    int              max; /* digits */
    int32_t          end;
} fractions;

static int digit_at(const fm__decimal *d, int i)
{
    return i < d->n_fraction ? d->fraction[i] : '0';
}

/* May the number end after i digits that equal lo's and hi's so far?  Behind the digits that a
 * limit has, it is met exactly. */
static int may_end(const fractions *q, int i, int at_lo, int at_hi)
{
    if (at_lo && (i < q->lo->at.n_fraction || q->lo->is_open)) return 0;
    return !at_hi || i < q->hi->at.n_fraction || !q->hi->is_open;
}

static void add_fraction_digits(const fractions *q, int i, int at_lo, int at_hi, int32_t from)
{
    if (i && may_end(q, i, at_lo, at_hi)) fm__nfa_empty(q->n, from, q->end);
    if (i == q->max || q->n->full) return;
    if (!at_lo && !at_hi) {
        fm__nfa_empty(q->n, fm__nfa_digits(q->n, from, !i, q->max - i), q->end);
        return;
    }
    const int lo = at_lo ? digit_at(&q->lo->at, i) : '0',
              hi = at_hi ? digit_at(&q->hi->at, i) : '9';
    if (at_lo && at_hi && lo == hi) {
        add_fraction_digits(q, i + 1, 1, 1, add_digit(q->n, from, lo, lo));
        return;
    }
    if (at_lo && lo <= hi) add_fraction_digits(q, i + 1, 1, 0, add_digit(q->n, from, lo, lo));
    if (at_hi && lo <= hi) add_fraction_digits(q, i + 1, 0, 1, add_digit(q->n, from, hi, hi));
    const int first = lo + at_lo, last = hi - at_hi;
    if (first <= last) add_fraction_digits(q, i + 1, 0, 0, add_digit(q->n, from, first, last));
}

static void add_fraction(fm__nfa *n, int32_t whole, int32_t end, const fm__limit *lo,
                         const fm__limit *hi)
{
    fractions q = {.n = n, .lo = lo, .hi = hi, .max = MAX_FREE_FRACTION, .end = end};
    if (lo && lo->at.n_fraction > q.max) q.max = lo->at.n_fraction;
    if (hi && hi->at.n_fraction > q.max) q.max = hi->at.n_fraction;
    if (may_end(&q, 0, lo != NULL, hi != NULL)) fm__nfa_empty(n, whole, end);
    add_fraction_digits(&q, 0, lo != NULL, hi != NULL, fm__nfa_word(n, whole, "."));
}

static void add_whole_and_fraction(fm__nfa *n, int32_t from, int32_t end, uint64_t first,
                                   uint64_t last, const fm__limit *lo, const fm__limit *hi)
{
    const int32_t whole = fm__nfa_state(n);
    fm__nfa_naturals(n, from, whole, first, last);
    add_fraction(n, whole, end, lo, hi);
}

static int is_closed_integer(const fm__limit *l)
{
    return !l->at.n_fraction && !l->is_open;
}

/* Sizes from lo to hi: the whole part of lo with a fraction above its own, that of hi with one
 * below, and any fraction between. */
static void add_sizes(fm__nfa *n, int32_t from, int32_t end, const fm__limit *lo,
                      const fm__limit *hi)
{
    uint64_t first = lo->at.whole;
    if (lo->at.whole == hi->at.whole) {
        add_whole_and_fraction(n, from, end, first, first, lo, hi);
        return;
    }
    if (!is_closed_integer(lo)) {
        add_whole_and_fraction(n, from, end, first, first, lo, NULL);
        first++;
    }
    if (first < hi->at.whole)
        add_whole_and_fraction(n, from, end, first, hi->at.whole - 1, NULL, NULL);
    add_whole_and_fraction(n, from, end, hi->at.whole, hi->at.whole, NULL, hi);
}

static int is_negative(const fm__limit *l)
{
    return l->at.is_negative && (l->at.whole || l->at.n_fraction);
}

static int is_zero(const fm__limit *l)
{
    return !l->at.whole && !l->at.n_fraction;
}

void fm__nfa_decimals(fm__nfa *n, int32_t from, int32_t end, const fm__interval *v)
{
    static const fm__limit zero  = {.is_open = 0};
    const int              below = is_negative(&v->least), above = !is_negative(&v->most);
    if (below) {
        const fm__limit  shut = {.is_open = is_zero(&v->most) && v->most.is_open};
        const fm__limit *near = above ? &shut : &v->most;
        add_sizes(n, fm__nfa_word(n, from, "-"), end, near, &v->least);
    }
    if (above) add_sizes(n, from, end, below ? &zero : &v->least, &v->most);
}
