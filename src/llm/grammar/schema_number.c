/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers with bounds and multipleOf. */
#include "llm/grammar/schema_number.h"

#include "json/read.h"
#include "llm/grammar/nfa_both.h"
#include "llm/grammar/schema_internal.h"

typedef struct {
    fm__interval in;
    int          has_least, has_most;
    int          has_unit;
    fm__decimal  unit; /* multipleOf */
} conditions;

typedef struct {
    const char *key;
    int         is_upper, opens;
} bound_word;

static fm_status read_number(fm__decimal *d, const json_t *w, const char *key)
{
    if (!json_is_number(w))
        return fm_fail(FM_E_FORMAT, "schema: %s: expected a number, found %s", key,
                       fm_json_kind(w));
    fm__decimal_read(d, w);
    return FM_OK;
}

static fm_status read_bound(conditions *c, const json_t *v, bound_word k)
{
    const json_t *w   = json_object_get(v, k.key);
    fm__limit    *l   = k.is_upper ? &c->in.most : &c->in.least;
    fm__limit     own = {.is_open = k.opens};
    if (!w) return FM_OK;
    FM_TRY(read_number(&own.at, w, k.key));
    *(k.is_upper ? &c->has_most : &c->has_least) = 1;
    if (own.at.is_huge) { /* on the far side it says nothing about what we can write */
        if (own.at.is_negative != k.is_upper) return FM_OK;
        return fm_fail(FM_E_NOSUP, "schema: %s: %.17g leaves no number within 64 bits", k.key,
                       json_number_value(w));
    }
    const int order = fm__decimal_compare(&own.at, &l->at);
    if (!order) l->is_open |= k.opens;
    if (k.is_upper ? order < 0 : order > 0) *l = own;
    return FM_OK;
}

static fm_status read_conditions(conditions *c, const json_t *v)
{
    static const bound_word word[] = {{"minimum", 0, 0},
                                      {"maximum", 1, 0},
                                      {"exclusiveMinimum", 0, 1},
                                      {"exclusiveMaximum", 1, 1}};
    const json_t           *unit   = json_object_get(v, "multipleOf");
    *c                             = (conditions){.has_unit = unit != NULL};
    fm__decimal_of_integer(&c->in.least.at, INT64_MIN);
    fm__decimal_of_integer(&c->in.most.at, INT64_MAX);
    for (size_t i = 0; i < sizeof word / sizeof *word; i++) FM_TRY(read_bound(c, v, word[i]));
    if (!unit) return FM_OK;
    FM_TRY(read_number(&c->unit, unit, "multipleOf"));
    if (json_number_value(unit) <= 0)
        return fm_fail(FM_E_FORMAT, "schema: multipleOf: expected a number above 0");
    return FM_OK;
}

/* The integer nearest to a limit inside the interval; 0: it is beyond 64 bits. */
static int round_inwards(int64_t *out, const fm__limit *l, int is_upper)
{
    const int      towards_zero = l->at.is_negative != is_upper;
    const int      moves        = l->is_open || l->at.n_fraction;
    const uint64_t most         = (uint64_t)INT64_MAX + (uint64_t)l->at.is_negative;
    uint64_t       size         = l->at.whole;
    if (moves && towards_zero && !l->at.n_fraction) {
        if (!size) return *out = is_upper ? -1 : 1, 1; /* beyond 0, on the other side */
        size--;
    }
    if (moves && !towards_zero && ++size > most) return 0;
    *out = l->at.is_negative ? (int64_t)(0 - size) : (int64_t)size;
    return 1;
}

int fm__schema_integer_range(const json_t *v, int64_t *lo, int64_t *hi)
{
    conditions c;
    return read_conditions(&c, v) == FM_OK && c.has_least && c.has_most &&
           round_inwards(lo, &c.in.least, 0) && round_inwards(hi, &c.in.most, 1) && *lo <= *hi &&
           (uint64_t)*hi - (uint64_t)*lo <= INT64_MAX;
}

static fm_status add_integer(fm__nfa *n, const conditions *c, int32_t from, int32_t *to)
{
    int64_t lo = 0, hi = 0;
    if (!round_inwards(&lo, &c->in.least, 0))
        return fm_fail(FM_E_NOSUP,
                       "schema: minimum or exclusiveMinimum leaves no integer of 64 bits");
    if (!round_inwards(&hi, &c->in.most, 1))
        return fm_fail(FM_E_NOSUP,
                       "schema: maximum or exclusiveMaximum leaves no integer of 64 bits");
    if (lo > hi) return fm_fail(FM_E_ARG, "schema: no integer is between minimum and maximum");
    *to = fm__nfa_state(n);
    fm__nfa_integers(n, from, *to, lo, hi);
    return FM_OK;
}

static fm_status add_decimal(fm__nfa *n, const conditions *c, int32_t from, int32_t *to)
{
    const int order = fm__decimal_compare(&c->in.least.at, &c->in.most.at);
    if (order > 0) return fm_fail(FM_E_ARG, "schema: maximum is below minimum");
    if (!order && (c->in.least.is_open || c->in.most.is_open))
        return fm_fail(FM_E_ARG, "schema: no number is between minimum and maximum");
    *to = fm__nfa_state(n);
    fm__nfa_decimals(n, from, *to, &c->in);
    return FM_OK;
}

static fm_status add_bounded(fm__nfa *n, const conditions *c, int is_integer, int32_t from,
                             int32_t *to)
{
    return is_integer ? add_integer(n, c, from, to) : add_decimal(n, c, from, to);
}

/* Where no bound is given, fewer digits keep the intersection small. */
static void limit_digits(conditions *c)
{
    fm__limit most = {.is_open = 1};
    most.at.whole  = 1;
    for (int i = fm__multiples_digits(&c->unit); i > 0; i--) most.at.whole *= 10;
    fm__limit least      = most;
    least.at.is_negative = 1;
    if (!c->has_most && fm__decimal_compare(&c->in.least.at, &most.at) < 0) c->in.most = most;
    if (!c->has_least && fm__decimal_compare(&c->in.most.at, &least.at) > 0) c->in.least = least;
}

static fm_status build_multiples(fm__nfa *n, const conditions *c)
{
    int32_t to = 0;
    fm__nfa_begin(n);
    const fm_status rc = fm__nfa_multiples(n, n->rule[0].start, &to, &c->unit);
    fm__nfa_close(n, to);
    if (rc != FM_OK) fm__nfa_fini(n);
    return rc;
}

static fm_status build_bounded(fm__nfa *n, const conditions *c, int is_integer)
{
    int32_t to = 0;
    fm__nfa_begin(n);
    const fm_status rc = add_bounded(n, c, is_integer, n->rule[0].start, &to);
    if (rc == FM_OK)
        fm__nfa_close(n, to);
    else
        fm__nfa_fini(n);
    return rc;
}

static fm_status add_multiples(fm__nfa *n, conditions *c, int is_integer, int32_t from, int32_t *to)
{
    fm__nfa all, unit;
    limit_digits(c);
    FM_TRY(build_bounded(&all, c, is_integer));
    fm_status rc = build_multiples(&unit, c);
    if (rc != FM_OK) {
        fm__nfa_fini(&all);
        return rc;
    }
    rc = fm__nfa_intersect(&all, &unit, FM__IN_BOTH, FM__MAX_BOTH);
    fm__nfa_fini(&unit);
    if (rc == FM_E_NOSUP)
        return fm_fail(FM_E_NOSUP, "schema: multipleOf: with these bounds it is too large");
    FM_TRY(rc);
    *to = fm__nfa_append(n, from, &all);
    fm__nfa_fini(&all);
    return FM_OK;
}

fm_status fm__schema_number(fm__schema *s, const json_t *v, int is_integer, int32_t from,
                            int32_t *to)
{
    conditions c;
    if (s->is_once)
        return fm__schema_canonical(s, v, is_integer ? FM__AN_INTEGER : FM__A_NUMBER, from, to);
    FM_TRY(read_conditions(&c, v));
    if (c.has_unit) return add_multiples(s->n, &c, is_integer, from, to);
    if (c.has_least || c.has_most) return add_bounded(s->n, &c, is_integer, from, to);
    *to = is_integer ? fm__nfa_integer(s->n, from) : fm__nfa_number(s->n, from);
    return FM_OK;
}
