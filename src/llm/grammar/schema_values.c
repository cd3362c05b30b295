/* SPDX-License-Identifier: Apache-2.0 */
/* uniqueItems of objects, arrays, and unions that no list of values describes.
 *
 * The matcher remembers the items (seen_values.h).  For this each value must have one spelling: in
 * an item, strings and numbers are canonical (schema_scarce.c), and there is neither a value of
 * any type nor a map, whose keys come in any order.  And there must be no fewer values than
 * items: they are counted, from below, as far as it matters. */
#include <stdio.h>
#include <string.h>

#include "llm/grammar/schema_internal.h"

enum { MAX_LISTED = 1024, MAX_LENGTH = 64 };

fm_status fm__schema_need_one_spelling(const fm__schema *s)
{
    if (!s->is_once) return FM_OK;
    return fm_fail(FM_E_NOSUP,
                   "schema: uniqueItems: items with a value of any type, or with keys that "
                   "properties does not name, are not supported");
}

/* Schemas of items whose values are counted, or are being counted: a schema that refers to itself
 * has at least those values that do not. */
typedef struct {
    fm__schema *s;
    json_t     *known; /* number of values by address */
} tally;

static int64_t times(int64_t a, int64_t b)
{
    return a >= FM__MANY_VALUES || b >= FM__MANY_VALUES || a * b >= FM__MANY_VALUES
               ? (a && b ? FM__MANY_VALUES : 0)
               : a * b;
}

static fm_status count_values(tally *t, const json_t *v, int64_t *n);

static int64_t count_listed(const json_t *v)
{
    const json_t *list = json_object_get(v, "enum");
    int64_t       n    = 0;
    if (json_object_get(v, "const")) return fm__schema_has_type(v, json_object_get(v, "const"));
    for (size_t i = 0; i < json_array_size(list) && n < MAX_LISTED; i++)
        n += fm__schema_has_type(v, json_array_get(list, i)) && !fm__schema_is_repeated(list, i);
    return n;
}

static fm_status count_largest(tally *t, const json_t *members, int64_t *n)
{
    size_t        i;
    const json_t *one;
    *n = 0;
    json_array_foreach (members, i, one) {
        int64_t own = 0;
        FM_TRY(count_values(t, one, &own));
        if (own > *n) *n = own;
    }
    return FM_OK;
}

static fm_status count_object(tally *t, const json_t *v, int64_t *n)
{
    const char *name;
    json_t     *one;
    *n = 1;
    json_object_foreach (json_object_get(v, "properties"), name, one) {
        int64_t own = 0;
        FM_TRY(count_values(t, one, &own));
        if (own) *n = times(*n, own); /* one without values is left out, or nothing satisfies v */
    }
    return FM_OK;
}

/* Those of one length. */
static fm_status count_array(tally *t, const json_t *v, int64_t *n)
{
    const json_t *prefix = json_object_get(v, "prefixItems"), *items = json_object_get(v, "items");
    int64_t       min = 0, max = -1, n_prefix = (int64_t)json_array_size(prefix);
    FM_TRY(fm__schema_count(&min, v, "minItems"));
    FM_TRY(fm__schema_count(&max, v, "maxItems"));
    if (json_is_false(items) && (max < 0 || max > n_prefix)) max = n_prefix;
    int64_t len = max >= 0 ? max : min > n_prefix ? min : n_prefix ? n_prefix : 1;
    *n          = 1;
    for (int64_t i = 0; i < len && i < MAX_LENGTH && *n < FM__MANY_VALUES; i++) {
        int64_t       own = 1;
        const json_t *one = i < n_prefix ? json_array_get(prefix, (size_t)i) : items;
        if (one) FM_TRY(count_values(t, one, &own));
        if (json_is_true(json_object_get(v, "uniqueItems"))) own -= i;
        *n = times(*n, own > 0 ? own : 1);
    }
    return FM_OK;
}

static fm_status count_type(tally *t, const json_t *v, const char *type, int64_t *n)
{
    if (!strcmp(type, "object")) return count_object(t, v, n);
    if (!strcmp(type, "array")) return count_array(t, v, n);
    if (!strcmp(type, "string")) return fm__schema_count_texts(t->s, v, FM__A_STRING, n);
    if (!strcmp(type, "integer")) return fm__schema_count_texts(t->s, v, FM__AN_INTEGER, n);
    if (!strcmp(type, "number")) return fm__schema_count_texts(t->s, v, FM__A_NUMBER, n);
    *n = !strcmp(type, "boolean") ? 2 : 1;
    return FM_OK;
}

static fm_status count_types(tally *t, const json_t *v, int64_t *n)
{
    size_t        i;
    const json_t *one, *types = json_object_get(v, "type");
    const char   *type = types ? json_string_value(types) : fm__schema_type_of(v);
    if (type) return count_type(t, v, type, n);
    if (!types) return fm__schema_need_one_spelling(t->s);
    *n = 0;
    json_array_foreach (types, i, one) {
        int64_t own = 0;
        FM_TRY(count_type(t, v, json_string_value(one), &own));
        if (own > *n) *n = own;
    }
    return FM_OK;
}

static fm_status count_plain(tally *t, const json_t *v, int64_t *n)
{
    FM_TRY(fm__schema_check_words(v));
    if (json_object_get(v, "const") || json_object_get(v, "enum")) {
        *n = count_listed(v);
        return FM_OK;
    }
    const json_t *any = json_object_get(v, "anyOf"), *one = json_object_get(v, "oneOf");
    if (any || one) return count_largest(t, any ? any : one, n);
    return count_types(t, v, n);
}

/* Each schema once. */
static fm_status count_values(tally *t, const json_t *v, int64_t *n)
{
    char          key[32];
    const json_t *known;
    *n = 0;
    if (json_is_false(v)) return FM_OK;
    if (json_is_true(v)) return fm__schema_need_one_spelling(t->s);
    FM_TRY(fm__schema_flatten(t->s, v, &v));
    if (!json_is_object(v)) return fm__schema_need_one_spelling(t->s);
    snprintf(key, sizeof key, "%p", (const void *)v);
    known = json_object_get(t->known, key);
    *n    = known ? json_integer_value(known) : 1;
    if (known) return FM_OK;
    if (json_object_set_new(t->known, key, json_integer(1))) return fm_fail(FM_E_OOM, "schema");
    FM_TRY(count_plain(t, v, n));
    return json_object_set_new(t->known, key, json_integer(*n)) ? fm_fail(FM_E_OOM, "schema")
                                                                : FM_OK;
}

static fm_status add_rule(fm__schema *s, const json_t *v, int32_t *rule)
{
    int32_t to = 0;
    *rule      = fm__nfa_rule(s->n);
    if (s->n->full) return FM_OK;
    FM_TRY(fm__schema_any(s, v, s->n->rule[*rule].start, &to));
    fm__nfa_empty(s->n, to, s->n->rule[*rule].end);
    return FM_OK;
}

fm_status fm__schema_values(fm__schema *s, const json_t *v, fm__unique_items *out)
{
    int64_t n = 0;
    tally   t = {s, json_object()};
    if (!t.known) return fm_fail(FM_E_OOM, "schema");
    s->is_once   = 1;
    fm_status rc = v ? count_values(&t, v, &n) : fm__schema_need_one_spelling(s);
    json_decref(t.known);
    if (rc == FM_OK) rc = add_rule(s, v, &out->rule);
    s->is_once = 0;
    out->mark  = FM__IN_VALUES;
    out->max   = fm__schema_item_limit(n);
    return rc;
}
