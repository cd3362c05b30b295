/* SPDX-License-Identifier: Apache-2.0 */
/* Objects: properties come in the schema's order, optional ones may be left
 * out, as long as minProperties is kept.  Others come only where the schema names none: then an
 * object is a map (schema_map.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/read.h"
#include "llm/grammar/schema_internal.h"

enum { MAX_REQUIRED = 2048, MAX_COUNTED = 32 };

/* "name": value, as a rule. */
static fm_status make_property(fm__schema *s, const char *name, const json_t *v, int32_t *rule)
{
    fm__nfa *n    = s->n;
    json_t  *key  = json_string(name);
    char    *text = key ? json_dumps(key, JSON_ENCODE_ANY) : NULL;
    int32_t  to   = 0;
    json_decref(key);
    if (!text) return fm_fail(FM_E_OOM, "schema");
    *rule = fm__nfa_rule(n);
    if (n->full) {
        free(text);
        return FM_OK;
    }
    to = fm__nfa_colon(n, fm__nfa_word(n, n->rule[*rule].start, text));
    free(text);
    if (n->full) return FM_OK;
    FM_TRY(fm__schema_any(s, v, to, &to));
    fm__nfa_empty(n, to, n->rule[*rule].end);
    return FM_OK;
}

/* After each property, a state for each number of properties written so far, as far as it
 * matters: from `top` on they are one, or, where maxProperties says so, no more may come. */
typedef struct {
    int32_t count[MAX_COUNTED + 1];
    int     top, is_limited;
} chain;

/* The same failure, with the property it is about: the innermost. */
static fm_status name_property(fm__schema *s, const char *name, fm_status rc)
{
    char why[256];
    if (rc == FM_OK || s->has_named) return rc;
    s->has_named = 1;
    snprintf(why, sizeof why, "%s", fm_why());
    return fm_fail(rc, "%s (property \"%.60s\")", why, name);
}

static fm_status add_property(fm__schema *s, chain *c, const char *name, const json_t *v,
                              int is_required)
{
    fm__nfa *n    = s->n;
    int32_t  rule = 0, next[MAX_COUNTED + 1];
    FM_TRY(name_property(s, name, make_property(s, name, v, &rule)));
    for (int i = 0; i <= c->top; i++) next[i] = fm__nfa_state(n);
    for (int i = 0; i <= c->top; i++) {
        if (!is_required) fm__nfa_empty(n, c->count[i], next[i]);
        if (i == c->top && c->is_limited) continue;
        const int32_t at = i ? fm__nfa_comma(n, c->count[i]) : c->count[i];
        fm__nfa_empty(n, fm__nfa_call(n, at, rule), next[i < c->top ? i + 1 : i]);
    }
    memcpy(c->count, next, sizeof next);
    return FM_OK;
}

/* Is it among the first n? */
static int is_among(const json_t *names, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        const char *one = json_string_value(json_array_get(names, i));
        if (one && !strcmp(one, name)) return 1;
    }
    return 0;
}

/* Names that are required but not described: additionalProperties is for them. */
static fm_status add_undescribed(fm__schema *s, chain *c, const json_t *v, const json_t *more)
{
    size_t        i;
    const json_t *one, *properties = json_object_get(v, "properties");
    const json_t *required = json_object_get(v, "required");
    json_t       *anything = json_true();
    json_array_foreach(required, i, one)
    {
        const char *name = json_string_value(one);
        if (!name)
            return fm_fail(FM_E_FORMAT, "schema: required: expected strings, found %s",
                           fm_json_kind(one));
        if (!json_object_get(properties, name) && !is_among(required, i, name))
            FM_TRY(add_property(s, c, name, more ? more : anything, 1));
    }
    return FM_OK;
}

/* How many properties there can be: the described ones and the others that are required. */
static int64_t n_named(const json_t *v)
{
    const json_t *properties = json_object_get(v, "properties");
    const json_t *required   = json_object_get(v, "required");
    int64_t       n          = (int64_t)json_object_size(properties);
    for (size_t i = 0; i < json_array_size(required); i++) {
        const char *name = json_string_value(json_array_get(required, i));
        n += name && !json_object_get(properties, name) && !is_among(required, i, name);
    }
    return n;
}

/* What must be counted for minProperties and maxProperties. */
static fm_status read_limits(chain *c, int64_t *min, const json_t *v)
{
    static const char *const of_maps[] = {"propertyNames", "patternProperties"};
    const int64_t            n         = n_named(v);
    int64_t                  max       = INT64_MAX;
    FM_TRY(fm__schema_count(min, v, "minProperties"));
    FM_TRY(fm__schema_count(&max, v, "maxProperties"));
    for (size_t i = 0; i < 2; i++)
        if (json_object_get(v, of_maps[i]))
            return fm_fail(FM_E_NOSUP, "schema: %s together with properties is not supported",
                           of_maps[i]);
    if (max < *min) return fm_fail(FM_E_ARG, "schema: maxProperties is below minProperties");
    if (*min > n)
        return fm_fail(FM_E_NOSUP, "schema: minProperties is above the number of properties that "
                                   "have names");
    c->is_limited     = max < n;
    const int64_t top = c->is_limited ? max : *min > 1 ? *min : 1;
    if (top > MAX_COUNTED)
        return fm_fail(FM_E_NOSUP,
                       "schema: minProperties and maxProperties above %d are not supported beside "
                       "properties",
                       MAX_COUNTED);
    c->top = (int)top;
    return FM_OK;
}

static fm_status add_described(fm__schema *s, const json_t *v, int32_t from, int32_t *to)
{
    fm__nfa      *n        = s->n;
    const json_t *required = json_object_get(v, "required");
    const char   *name;
    json_t       *one;
    chain         c   = {.top = 0};
    int64_t       min = 0;
    FM_TRY(read_limits(&c, &min, v));
    c.count[0] = fm__nfa_open(n, from, '{');
    for (int i = 1; i <= c.top; i++) c.count[i] = fm__nfa_state(n);
    json_object_foreach(json_object_get(v, "properties"), name, one)
        FM_TRY(add_property(s, &c, name, one, is_among(required, json_array_size(required), name)));
    FM_TRY(add_undescribed(s, &c, v, json_object_get(v, "additionalProperties")));
    const int32_t close = fm__nfa_state(n);
    *to                 = fm__nfa_state(n);
    for (int i = min > 1 ? (int)min : 1; i <= c.top; i++) fm__nfa_empty(n, c.count[i], close);
    if (!json_array_size(required) && !min) fm__nfa_empty(n, fm__nfa_none(n, from, "{}"), *to);
    fm__nfa_empty(n, fm__nfa_shut(n, close, '}'), *to);
    return FM_OK;
}

fm_status fm__schema_object(fm__schema *s, const json_t *v, int32_t from, int32_t *to)
{
    const json_t *properties = json_object_get(v, "properties"),
                 *required   = json_object_get(v, "required");
    const json_t *more       = json_object_get(v, "additionalProperties");
    if (properties && !json_is_object(properties))
        return fm_fail(FM_E_FORMAT, "schema: properties: expected an object, found %s",
                       fm_json_kind(properties));
    if (required && !json_is_array(required))
        return fm_fail(FM_E_FORMAT, "schema: required: expected a list, found %s",
                       fm_json_kind(required));
    if (json_array_size(required) > MAX_REQUIRED)
        return fm_fail(FM_E_NOSUP, "schema: required has more than %d names", MAX_REQUIRED);
    if (!json_object_size(properties) && !json_array_size(required) &&
        (!json_is_false(more) || json_object_get(v, "patternProperties")) && !properties)
        return fm__schema_map(s, v, from, to);
    return add_described(s, v, from, to);
}
