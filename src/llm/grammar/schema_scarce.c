/* SPDX-License-Identifier: Apache-2.0 */
/* uniqueItems of strings and numbers that have a pattern, a format or bounds, and strings and
 * numbers inside of items (schema_values.c).
 *
 * The matcher remembers them, and rules out beginnings that only items written before have
 * (seen_items.h).  For this each value must have one spelling, so the automaton of the items is
 * intersected with that of canonical texts; and there must be more values than items, so they
 * are counted, as far as it matters. */
#include <stdlib.h>
#include <string.h>

#include "llm/grammar/nfa_both.h"
#include "llm/grammar/schema_internal.h"

enum { MAX_LENGTH = 48, MANY = FM__MANY_VALUES, MAX_ITEMS = 1024 };

/* No zeros at the end of a fraction, no exponent, no -0. */
static const char canonical_number[] =
    "0|-?[1-9][0-9]{0,16}|-?(0|[1-9][0-9]{0,14})\\.[0-9]{0,11}[1-9]";

static const char *type_of(const json_t *v)
{
    const json_t *type = json_object_get(v, "type");
    const char   *name = type ? json_string_value(type) : fm__schema_type_of(v);
    return name ? name : "";
}

static int is_number(const json_t *v)
{
    return !strcmp(type_of(v), "number") || !strcmp(type_of(v), "integer");
}

/* Integers of a short range are handled by a state per set of them (schema_unique.c). */
static int is_short_range(const json_t *v)
{
    int64_t lo = 0, hi = 0;
    return !strcmp(type_of(v), "integer") && !json_object_get(v, "multipleOf") &&
           fm__schema_integer_range(v, &lo, &hi) && hi - lo < FM__MAX_UNIQUE_SET;
}

int fm__schema_is_scarce(fm__schema *s, const json_t *v)
{
    static const char *const others[] = {"const", "enum", "anyOf", "oneOf"};
    if (!v || fm__schema_flatten(s, v, &v) != FM_OK || !json_is_object(v)) return 0;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (json_object_get(v, others[i])) return 0;
    return (is_number(v) && !is_short_range(v)) || !strcmp(type_of(v), "string");
}

static fm__scalar scalar_of(const json_t *v)
{
    return !is_number(v) ? FM__A_STRING
                         : !strcmp(type_of(v), "integer") ? FM__AN_INTEGER : FM__A_NUMBER;
}

/* Values, as the schema has them. */
static fm_status build_values(const fm__schema *s, fm__nfa *n, const json_t *v, fm__scalar kind)
{
    fm__schema own = *s;
    int32_t    to  = 0;
    own.n          = n;
    own.is_once    = 0;
    fm__nfa_begin(n);
    const int32_t   from = n->rule[0].start;
    const fm_status rc   = kind == FM__A_STRING
                               ? fm__schema_string(&own, v, from, &to)
                               : fm__schema_number(&own, v, kind == FM__AN_INTEGER, from, &to);
    if (rc == FM_OK)
        fm__nfa_close(n, to);
    else
        fm__nfa_fini(n);
    return rc;
}

static fm_status build_canonical(fm__nfa *n, fm__scalar kind)
{
    fm_status rc = FM_OK;
    fm__nfa_begin(n);
    int32_t to = n->rule[0].start;
    if (kind != FM__A_STRING) {
        to = fm__nfa_regex(n, to, canonical_number, strlen(canonical_number), FM__PLAIN, &rc);
    } else {
        const int32_t loop = fm__nfa_state(n);
        fm__nfa_empty(n, fm__nfa_word(n, to, "\""), loop);
        fm__nfa_empty(n, fm__nfa_string_char_once(n, loop), loop);
        to = fm__nfa_word(n, loop, "\"");
    }
    fm__nfa_close(n, to);
    return rc;
}

/* Values in their only spelling: an automaton without calls. */
static fm_status build_once(const fm__schema *s, fm__nfa *values, const json_t *v, fm__scalar kind)
{
    fm__nfa canonical;
    FM_TRY(build_values(s, values, v, kind));
    fm_status rc = build_canonical(&canonical, kind);
    if (rc == FM_OK) rc = fm__nfa_intersect(values, &canonical, FM__IN_BOTH, FM__MAX_BOTH);
    fm__nfa_fini(&canonical);
    return rc == FM_E_NOSUP ? fm_fail(rc, "schema: uniqueItems: its items are too large") : rc;
}

/* How many texts a deterministic automaton without calls has, at least; MANY or more are alike.
 * way[i]: those of the current length that lead to state i. */
static int64_t count_texts(const fm__nfa *n)
{
    double *way = calloc((size_t)n->n_state, sizeof *way), total = 0;
    double *next = calloc((size_t)n->n_state, sizeof *next);
    FM_BUG_UNLESS(way && next);
    way[n->rule[0].start] = 1;
    for (int len = 0; len <= MAX_LENGTH && total < MANY; len++) {
        memset(next, 0, (size_t)n->n_state * sizeof *next);
        for (int32_t i = 0; i < n->n_state; i++)
            for (int32_t e = way[i] > 0 ? n->first[i] : -1; e >= 0; e = n->edge[e].next) {
                const fm__edge *g = &n->edge[e];
                if (g->kind == FM__EDGE_EMPTY && g->to == n->rule[0].end)
                    total += way[i];
                else if (g->kind == FM__EDGE_BYTE)
                    next[g->to] += way[i] * (g->hi - g->lo + 1);
            }
        double *const swap = way;
        way                = next;
        next               = swap;
    }
    free(way);
    free(next);
    return total < MANY ? (int64_t)total : MANY;
}

static int is_accepting(const fm__nfa *n, int32_t state)
{
    for (int32_t e = n->first[state]; e >= 0; e = n->edge[e].next)
        if (n->edge[e].kind == FM__EDGE_EMPTY && n->edge[e].to == n->rule[0].end) return 1;
    return 0;
}

/* The states between the quotes of strings, behind `first` in n, are inside an item. */
static void mark_strings(fm__nfa *n, int32_t first, const fm__nfa *values)
{
    n->has_marks = 1;
    for (int32_t i = 0; i < values->n_state; i++)
        if (i != values->rule[0].start && i != values->rule[0].end && !is_accepting(values, i))
            n->mark[first + i] |= FM__IN_ITEM | FM__IN_SCARCE;
}

static void add_rule(fm__nfa *n, const fm__nfa *values, fm__unique_items *out)
{
    out->rule = fm__nfa_rule(n);
    if (n->full) return;
    const int32_t first = n->n_state;
    const int32_t to    = fm__nfa_append(n, n->rule[out->rule].start, values);
    if (n->full) return;
    if (out->mark == FM__IN_UNIQUE) mark_strings(n, first, values);
    fm__nfa_empty(n, to, n->rule[out->rule].end);
}

int64_t fm__schema_item_limit(int64_t n_value)
{
    return n_value >= MANY ? -1 : n_value > MAX_ITEMS ? MAX_ITEMS : n_value;
}

fm_status fm__schema_scarce(fm__schema *s, const json_t *v, fm__unique_items *out)
{
    fm__nfa values;
    FM_TRY(fm__schema_flatten(s, v, &v));
    FM_TRY(fm__schema_check_words(v));
    out->mark = is_number(v) ? FM__IN_NUMBERS : FM__IN_UNIQUE;
    FM_TRY(build_once(s, &values, v, scalar_of(v)));
    out->max = fm__schema_item_limit(count_texts(&values));
    add_rule(s->n, &values, out);
    fm__nfa_fini(&values);
    return FM_OK;
}

fm_status fm__schema_canonical(fm__schema *s, const json_t *v, fm__scalar kind, int32_t from,
                               int32_t *to)
{
    fm__nfa values;
    FM_TRY(build_once(s, &values, v, kind));
    *to = fm__nfa_append(s->n, from, &values);
    fm__nfa_fini(&values);
    return FM_OK;
}

fm_status fm__schema_count_texts(fm__schema *s, const json_t *v, fm__scalar kind, int64_t *n)
{
    fm__nfa values;
    FM_TRY(build_once(s, &values, v, kind));
    *n = count_texts(&values);
    fm__nfa_fini(&values);
    return FM_OK;
}
