/* SPDX-License-Identifier: Apache-2.0 */
#include "json/read.h"
#include "llm/grammar/schema_internal.h"

typedef struct {
    const json_t *prefix, *items; /* schemas by position, then of all others */
    int32_t       rule;           /* of an item beyond the prefix; -1: there is none */
    int64_t       min, max;       /* max < 0: any number */
    int           comma_mark;     /* of the states behind a comma */
} array;

static fm_status make_item_rule(fm__schema *s, array *a)
{
    fm__nfa *n  = s->n;
    int32_t  to = 0;
    a->rule     = fm__nfa_rule(n);
    if (n->full) return FM_OK;
    if (!a->items && (a->max < 0 || a->max > (int64_t)json_array_size(a->prefix)))
        FM_TRY(fm__schema_need_one_spelling(s));
    if (a->items)
        FM_TRY(fm__schema_any(s, a->items, n->rule[a->rule].start, &to));
    else
        to = fm__nfa_value(n, n->rule[a->rule].start);
    fm__nfa_empty(n, to, n->rule[a->rule].end);
    return FM_OK;
}

static fm_status add_item(fm__schema *s, const array *a, int64_t i, int32_t from, int32_t *to)
{
    if (i < (int64_t)json_array_size(a->prefix))
        return fm__schema_any(s, json_array_get(a->prefix, (size_t)i), from, to);
    *to = fm__nfa_call(s->n, from, a->rule);
    return FM_OK;
}

static int32_t add_comma(fm__nfa *n, const array *a, int32_t from)
{
    const int32_t to = fm__nfa_comma(n, from);
    if (a->comma_mark && !n->full) n->mark[to] |= (char)a->comma_mark;
    return to;
}

/* Items one by one as far as positions matter, then a loop if there is no limit. */
static fm_status add_items(fm__schema *s, const array *a, int32_t open, int32_t close)
{
    fm__nfa      *n        = s->n;
    const int64_t n_prefix = (int64_t)json_array_size(a->prefix);
    const int64_t counted  = a->max >= 0 ? a->max : a->min > n_prefix ? a->min : n_prefix;
    int32_t       at       = open;
    for (int64_t i = 0; i < counted && !n->full; i++) {
        FM_TRY(add_item(s, a, i, i ? add_comma(n, a, at) : at, &at));
        if (i + 1 >= a->min) fm__nfa_empty(n, at, close);
    }
    if (a->max >= 0) return FM_OK;
    const int32_t loop = fm__nfa_state(n);
    if (counted)
        fm__nfa_empty(n, at, loop);
    else
        fm__nfa_empty(n, fm__nfa_call(n, at, a->rule), loop);
    fm__nfa_empty(n, fm__nfa_call(n, add_comma(n, a, loop), a->rule), loop);
    fm__nfa_empty(n, loop, close);
    return FM_OK;
}

/* Are there two items to tell apart, and must they differ? */
static fm_status read_unique(const array *a, const json_t *v, int *is_unique)
{
    const json_t *w = json_object_get(v, "uniqueItems");
    if (w && !json_is_boolean(w))
        return fm_fail(FM_E_FORMAT, "schema: uniqueItems: expected true or false, found %s",
                       fm_json_kind(w));
    *is_unique = json_is_true(w) && (a->max < 0 || a->max > 1);
    if (*is_unique && a->prefix)
        return fm_fail(FM_E_NOSUP,
                       "schema: uniqueItems together with prefixItems is not supported");
    return FM_OK;
}

static fm_status read_array(array *a, const json_t *v)
{
    *a = (array){.prefix = json_object_get(v, "prefixItems"),
                 .items  = json_object_get(v, "items"),
                 .max    = -1};
    if (a->prefix && !json_is_array(a->prefix))
        return fm_fail(FM_E_FORMAT, "schema: prefixItems: expected a list, found %s",
                       fm_json_kind(a->prefix));
    FM_TRY(fm__schema_count(&a->min, v, "minItems"));
    FM_TRY(fm__schema_count(&a->max, v, "maxItems"));
    const int64_t n_prefix = (int64_t)json_array_size(a->prefix);
    if (json_is_false(a->items) && (a->max < 0 || a->max > n_prefix)) a->max = n_prefix;
    if (a->max >= 0 && a->max < a->min)
        return fm_fail(FM_E_ARG, "schema: maxItems is below minItems");
    return FM_OK;
}

static fm_status make_remembered(fm__schema *s, const json_t *v, fm__unique_items *out)
{
    if (s->is_once)
        return fm_fail(FM_E_NOSUP, "schema: uniqueItems inside an item of an array with "
                                   "uniqueItems is supported for short lists of values");
    if (fm__schema_is_free(s, v)) return fm__schema_remembered(s, v, &out->rule, &out->mark);
    if (fm__schema_is_scarce(s, v)) return fm__schema_scarce(s, v, out);
    return fm__schema_values(s, v, out);
}

/* Every state from the opening bracket on is marked, so that the matcher knows the array's end. */
static fm_status add_remembered(fm__schema *s, array *a, int32_t open, int32_t close)
{
    fm__nfa         *n     = s->n;
    fm__unique_items items = {.max = -1};
    FM_TRY(make_remembered(s, a->items, &items));
    if (items.max >= 0 && a->min > items.max)
        return fm_fail(FM_E_NOSUP, "schema: uniqueItems: there are not minItems different items");
    if (items.max >= 0 && (a->max < 0 || a->max > items.max)) a->max = items.max;
    a->rule       = items.rule;
    a->comma_mark = items.mark == FM__IN_VALUES ? FM__BEFORE_COMMA : 0;
    fm__nfa_comma(n, fm__nfa_state(n)); /* its rule is made before, and not marked */
    const int32_t first = fm__nfa_state(n), last = fm__nfa_state(n);
    fm__nfa_empty(n, open, first);
    FM_TRY(add_items(s, a, first, last));
    fm__nfa_empty(n, last, close);
    if (!n->full) fm__nfa_mark(n, first, items.mark);
    return FM_OK;
}

/* Few values: the automaton itself knows which were written. */
static fm_status add_unique(fm__schema *s, array *a, int32_t open, int32_t close)
{
    fm_status rc = FM_E_NOSUP;
    if (!fm__schema_is_free(s, a->items) && !fm__schema_is_scarce(s, a->items))
        rc = fm__schema_unique(s, a->items, a->min, a->max, open, close);
    return rc == FM_E_NOSUP ? add_remembered(s, a, open, close) : rc;
}

fm_status fm__schema_array(fm__schema *s, const json_t *v, int32_t from, int32_t *to)
{
    fm__nfa *n = s->n;
    array    a;
    int      is_unique = 0;
    FM_TRY(read_array(&a, v));
    FM_TRY(read_unique(&a, v, &is_unique));
    const int32_t open = fm__nfa_open(n, from, '['), close = fm__nfa_state(n);
    *to = fm__nfa_state(n);
    if (is_unique) {
        FM_TRY(add_unique(s, &a, open, close));
    } else {
        FM_TRY(make_item_rule(s, &a));
        FM_TRY(add_items(s, &a, open, close));
    }
    if (a.min == 0) fm__nfa_empty(n, fm__nfa_none(n, from, "[]"), *to);
    fm__nfa_empty(n, fm__nfa_shut(n, close, ']'), *to);
    return FM_OK;
}
