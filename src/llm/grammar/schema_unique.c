/* SPDX-License-Identifier: Apache-2.0 */
/* uniqueItems of short lists of values, and of unrestricted strings and integers.
 *
 * Items that have up to eight values (enum, const, boolean, null, few integers, and unions of
 * these): the automaton remembers which were written, a state per set.
 *
 * Strings that nothing but a least length restricts, and integers that nothing
 * but a minimum of 0 or more does: the matcher remembers them (seen_items.h).
 * From any beginning such an item can go on, so ruling out those that were
 * written never leads to a dead end; with a pattern or an upper limit it could
 * (schema_scarce.c). */
#include <string.h>

#include "llm/grammar/schema_internal.h"
#include "llm/grammar/schema_number.h"

enum { MAX_VALUES = FM__MAX_UNIQUE_SET, MAX_DEPTH = 16 };

static fm_status refuse(void)
{
    return fm_fail(FM_E_NOSUP, "schema: uniqueItems: the values of items are no short list");
}

static fm_status add_value(json_t *all, const json_t *value)
{
    size_t        i;
    const json_t *known;
    json_array_foreach(all, i, known) if (fm__schema_equal(known, value)) return FM_OK;
    if (json_array_size(all) == MAX_VALUES) return refuse();
    return json_array_append(all, (json_t *)value) ? fm_fail(FM_E_OOM, "schema") : FM_OK;
}

static fm_status add_new(json_t *all, json_t *value)
{
    const fm_status rc = add_value(all, value);
    json_decref(value);
    return rc;
}

/* Integers of a schema with both bounds. */
static fm_status add_integers(json_t *all, const json_t *v)
{
    int64_t lo = 0, hi = 0;
    if (json_object_get(v, "multipleOf") || !fm__schema_integer_range(v, &lo, &hi) ||
        hi - lo >= MAX_VALUES)
        return refuse();
    for (int64_t x = lo; x <= hi; x++) FM_TRY(add_new(all, json_integer(x)));
    return FM_OK;
}

static fm_status add_type(json_t *all, const json_t *v, const char *type)
{
    if (!strcmp(type, "null")) return add_new(all, json_null());
    if (!strcmp(type, "integer")) return add_integers(all, v);
    if (strcmp(type, "boolean")) return refuse();
    FM_TRY(add_new(all, json_true()));
    return add_new(all, json_false());
}

static fm_status add_types(json_t *all, const json_t *v)
{
    size_t        i;
    const json_t *one, *types = json_object_get(v, "type");
    if (json_is_string(types)) return add_type(all, v, json_string_value(types));
    if (!json_array_size(types)) return refuse();
    json_array_foreach(types, i, one) FM_TRY(add_type(all, v, json_string_value(one)));
    return FM_OK;
}

static fm_status collect(fm__schema *s, json_t *all, const json_t *v, int depth)
{
    size_t        i;
    const json_t *one, *list;
    if (depth > MAX_DEPTH || !v) return refuse();
    FM_TRY(fm__schema_flatten(s, v, &v));
    if (!json_is_object(v)) return refuse();
    FM_TRY(fm__schema_check_words(v));
    if ((one = json_object_get(v, "const")) != NULL)
        return fm__schema_has_type(v, one) ? add_value(all, one) : FM_OK;
    if ((list = json_object_get(v, "enum")) != NULL) {
        json_array_foreach(list, i, one) if (fm__schema_has_type(v, one))
            FM_TRY(add_value(all, one));
        return FM_OK;
    }
    list = json_object_get(v, "anyOf");
    if (!list) list = json_object_get(v, "oneOf");
    if (!list) return add_types(all, v);
    json_array_foreach(list, i, one) FM_TRY(collect(s, all, one, depth + 1));
    return FM_OK;
}

typedef struct {
    fm__nfa *n;
    int      n_value;
    int32_t  rule[MAX_VALUES]; /* of each value */
    int64_t  min, max;
    int32_t  open, close;
} unique;

static fm_status make_rules(fm__schema *s, unique *u, const json_t *all)
{
    u->n_value = (int)json_array_size(all);
    for (int i = 0; i < u->n_value; i++) {
        int32_t to = 0;
        u->rule[i] = fm__nfa_rule(u->n);
        if (u->n->full) return FM_OK;
        const fm__rule r = u->n->rule[u->rule[i]];
        FM_TRY(fm__schema_literal(s, json_array_get(all, (size_t)i), r.start, &to));
        fm__nfa_empty(u->n, to, r.end);
    }
    return FM_OK;
}

static void add_item(const unique *u, int value, int32_t from, int is_first, int32_t to)
{
    if (!is_first) from = fm__nfa_comma(u->n, from);
    fm__nfa_empty(u->n, fm__nfa_call(u->n, from, u->rule[value]), to);
}

static int n_bit(int set)
{
    int n = 0;
    for (; set; set &= set - 1) n++;
    return n;
}

static void add_sets(const unique *u)
{
    int32_t state[1 << MAX_VALUES];
    for (int set = 0; set < 1 << u->n_value; set++)
        state[set] = set ? fm__nfa_state(u->n) : u->open;
    for (int set = 0; set < 1 << u->n_value; set++) {
        const int n_item = n_bit(set);
        if (set && n_item >= u->min) fm__nfa_empty(u->n, state[set], u->close);
        if (u->max >= 0 && n_item >= u->max) continue;
        for (int i = 0; i < u->n_value; i++)
            if (!(set >> i & 1)) add_item(u, i, state[set], !set, state[set | 1 << i]);
    }
}

fm_status fm__schema_unique(fm__schema *s, const json_t *items, int64_t min, int64_t max,
                            int32_t open, int32_t close)
{
    unique    u   = {.n = s->n, .min = min, .max = max, .open = open, .close = close};
    json_t   *all = json_array();
    fm_status rc  = all ? collect(s, all, items, 0) : fm_fail(FM_E_OOM, "schema");
    if (rc == FM_OK) rc = make_rules(s, &u, all);
    json_decref(all);
    FM_TRY(rc);
    add_sets(&u);
    return FM_OK;
}

static int has_any(const json_t *v, const char *const *word, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (json_object_get(v, word[i])) return 1;
    return 0;
}

static int is_free_string(const json_t *v)
{
    static const char *const limits[] = {"pattern", "maxLength"};
    return !has_any(v, limits, 2) && !fm__schema_format(json_object_get(v, "format"));
}

static int is_free_integer(const json_t *v)
{
    static const char *const limits[] = {"maximum", "exclusiveMaximum", "multipleOf"};
    const json_t            *min      = json_object_get(v, "minimum");
    const json_t            *open     = json_object_get(v, "exclusiveMinimum");
    return !has_any(v, limits, 3) && (!min || json_number_value(min) >= 0) &&
           (!open || json_number_value(open) >= 0);
}

int fm__schema_is_free(fm__schema *s, const json_t *v)
{
    static const char *const others[] = {"const", "enum", "anyOf", "oneOf"};
    if (!v || fm__schema_flatten(s, v, &v) != FM_OK || has_any(v, others, 4)) return 0;
    const char *type = json_string_value(json_object_get(v, "type"));
    if (!type) return 0;
    return (!strcmp(type, "string") && is_free_string(v)) ||
           (!strcmp(type, "integer") && is_free_integer(v));
}

static void add_string(fm__nfa *n, fm__rule r, int64_t min)
{
    const int32_t quoted = fm__nfa_word(n, r.start, "\"");
    int32_t       at     = quoted;
    for (int64_t i = 0; i < min && !n->full; i++) at = fm__nfa_string_char_once(n, at);
    const int32_t loop = fm__nfa_state(n);
    fm__nfa_empty(n, at, loop);
    fm__nfa_empty(n, fm__nfa_string_char_once(n, loop), loop);
    if (!n->full) fm__nfa_mark(n, quoted, FM__IN_ITEM);
    fm__nfa_empty(n, fm__nfa_word(n, loop, "\""), r.end);
}

static fm_status add_integer(fm__nfa *n, fm__rule r, const json_t *v)
{
    int64_t most = 1, lo = 0, hi = 0;
    for (int i = 0; i < FM__MAX_UNIQUE_DIGITS; i++) most *= 10;
    const int has_least = json_object_get(v, "minimum") || json_object_get(v, "exclusiveMinimum");
    json_t   *bounded   = json_copy((json_t *)v);
    if (!bounded) return fm_fail(FM_E_OOM, "schema");
    json_object_set_new(bounded, "exclusiveMaximum", json_integer(most));
    if (!has_least) json_object_set_new(bounded, "exclusiveMinimum", json_integer(-most));
    const int is_range = fm__schema_integer_range(bounded, &lo, &hi);
    json_decref(bounded);
    if (!is_range) return fm_fail(FM_E_NOSUP, "schema: uniqueItems: minimum is too large");
    fm__nfa_integers(n, r.start, r.end, lo, hi);
    return FM_OK;
}

fm_status fm__schema_remembered(fm__schema *s, const json_t *v, int32_t *rule, int *mark)
{
    fm__nfa *n   = s->n;
    int64_t  min = 0;
    FM_TRY(fm__schema_flatten(s, v, &v));
    FM_TRY(fm__schema_check_words(v));
    FM_TRY(fm__schema_count(&min, v, "minLength"));
    fm__nfa_string_char_once(n, fm__nfa_state(n)); /* its rule is made before, and not marked */
    *rule = fm__nfa_rule(n);
    if (n->full) return FM_OK;
    const int is_integer = !strcmp(json_string_value(json_object_get(v, "type")), "integer");
    *mark                = is_integer ? FM__IN_NUMBERS : FM__IN_UNIQUE;
    if (is_integer) return add_integer(n, n->rule[*rule], v);
    add_string(n, n->rule[*rule], min);
    return FM_OK;
}
