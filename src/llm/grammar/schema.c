/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "json/read.h"
#include "llm/grammar/schema_internal.h"

enum { MAX_NESTING = 128 };

/* A JSON text, as it is written without white space, below a state of its own. */
static fm_status add_literal(fm__schema *s, const json_t *v, int32_t root, int32_t *to)
{
    char *text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY | JSON_PRESERVE_ORDER);
    if (!text) return fm_fail(FM_E_OOM, "schema");
    *to = fm__nfa_shared_text(s->n, root, text);
    free(text);
    return FM_OK;
}

/* Those of the values listed that have the type the schema names beside them. */
static fm_status add_values(fm__schema *s, const json_t *v, int32_t from, int32_t *to)
{
    const json_t *only = json_object_get(v, "const"), *list = json_object_get(v, "enum");
    const size_t  n = only ? 1 : json_array_size(list);
    if (!only && !json_is_array(list))
        return fm_fail(FM_E_FORMAT, "schema: enum: expected a list, found %s", fm_json_kind(list));
    const int32_t root = fm__nfa_state(s->n);
    fm__nfa_empty(s->n, from, root);
    *to = fm__nfa_state(s->n);
    for (size_t i = 0; i < n; i++) {
        const json_t *one = only ? only : json_array_get(list, i);
        int32_t       end = 0;
        if (!fm__schema_has_type(v, one)) continue;
        FM_TRY(add_literal(s, one, root, &end));
        fm__nfa_empty(s->n, end, *to);
    }
    return FM_OK;
}

static fm_status add_type(fm__schema *s, const json_t *v, const char *type, int32_t from,
                          int32_t *to)
{
    if (!strcmp(type, "object")) return fm__schema_object(s, v, from, to);
    if (!strcmp(type, "array")) return fm__schema_array(s, v, from, to);
    if (!strcmp(type, "string")) return fm__schema_string(s, v, from, to);
    if (!strcmp(type, "integer")) return fm__schema_number(s, v, 1, from, to);
    if (!strcmp(type, "number")) return fm__schema_number(s, v, 0, from, to);
    if (!strcmp(type, "null")) {
        *to = fm__nfa_word(s->n, from, "null");
        return FM_OK;
    }
    *to = fm__nfa_word(s->n, from, "true"); /* boolean */
    fm__nfa_empty(s->n, fm__nfa_word(s->n, from, "false"), *to);
    return FM_OK;
}

/* One type, several, or none: then the keywords say which, or it is any value. */
static fm_status add_types(fm__schema *s, const json_t *v, int32_t from, int32_t *to)
{
    size_t        i;
    const json_t *name, *types = json_object_get(v, "type");
    if (!types) {
        const char *type = fm__schema_type_of(v);
        if (type) return add_type(s, v, type, from, to);
        *to = fm__nfa_value(s->n, from);
        return FM_OK;
    }
    if (json_is_string(types)) return add_type(s, v, json_string_value(types), from, to);
    *to = fm__nfa_state(s->n);
    json_array_foreach (types, i, name) {
        int32_t end = 0;
        FM_TRY(add_type(s, v, json_string_value(name), from, &end));
        fm__nfa_empty(s->n, end, *to);
    }
    return FM_OK;
}

static fm_status add_any_of(fm__schema *s, const json_t *v, const char *key, int32_t from,
                            int32_t *to)
{
    size_t        i;
    const json_t *one, *list = json_object_get(v, key);
    if (!json_is_array(list) || !json_array_size(list))
        return fm_fail(FM_E_FORMAT, "schema: %s: expected a list of schemas", key);
    if (!strcmp(key, "oneOf") && !fm__schema_are_disjoint(list))
        return fm_fail(FM_E_NOSUP,
                       "schema: oneOf is supported where no value can satisfy two of its "
                       "schemas; use anyOf");
    if (!strcmp(key, "allOf") && json_array_size(list) > 1)
        return fm_fail(FM_E_NOSUP, "schema: allOf of several schemas is not supported");
    *to = fm__nfa_state(s->n);
    json_array_foreach (list, i, one) {
        int32_t end = 0;
        FM_TRY(fm__schema_any(s, one, from, &end));
        fm__nfa_empty(s->n, end, *to);
    }
    return FM_OK;
}

/* One step of a JSON pointer: a member or an item. */
static const json_t *descend(const json_t *at, const char *name, size_t len)
{
    char   key[256];
    size_t n = 0;
    for (size_t i = 0; i < len && n + 1 < sizeof key; i++) {
        const int escaped =
            name[i] == '~' && i + 1 < len && (name[i + 1] == '0' || name[i + 1] == '1');
        key[n++] = !escaped ? name[i] : name[i + 1] == '0' ? '~' : '/';
        i += (size_t)escaped;
    }
    key[n] = 0;
    if (json_is_array(at)) return json_array_get(at, (size_t)strtoul(key, NULL, 10));
    return json_object_get(at, key);
}

static const json_t *resolve(const fm__schema *s, const char *ref)
{
    const json_t *at = s->root;
    if (*ref++ != '#') return NULL;
    while (at && *ref == '/') {
        const size_t len = strcspn(++ref, "/");
        at               = descend(at, ref, len);
        ref += len;
    }
    return *ref ? NULL : at;
}

/* The rule of a schema that is referred to; made at the first reference. */
static fm_status add_ref(fm__schema *s, const json_t *v, int32_t from, int32_t *to)
{
    const json_t *ref    = json_object_get(v, "$ref");
    const json_t *target = json_is_string(ref) ? resolve(s, json_string_value(ref)) : NULL;
    if (!target)
        return fm_fail(FM_E_FORMAT, "schema: $ref: nothing in this schema is called \"%.80s\"",
                       json_is_string(ref) ? json_string_value(ref) : "");
    for (int i = 0; i < s->n_made; i++)
        if (s->made[i].schema == target) {
            *to = fm__nfa_call(s->n, from, s->made[i].rule);
            return FM_OK;
        }
    if (s->n_made == s->cap_made) {
        s->cap_made = s->cap_made ? 2 * s->cap_made : 16;
        s->made     = realloc(s->made, (size_t)s->cap_made * sizeof *s->made);
        FM_BUG_UNLESS(s->made != NULL);
    }
    const int32_t rule   = fm__nfa_rule(s->n);
    s->made[s->n_made++] = (fm__schema_rule){target, rule};
    *to                  = fm__nfa_call(s->n, from, rule);
    if (s->n->full) return FM_OK;
    int32_t end = 0;
    FM_TRY(fm__schema_any(s, target, s->n->rule[rule].start, &end));
    fm__nfa_empty(s->n, end, s->n->rule[rule].end);
    return FM_OK;
}

static fm_status add_schema(fm__schema *s, const json_t *v, int32_t from, int32_t *to)
{
    static const char *const whole[] = {"$ref", "const", "enum", "anyOf", "oneOf", "allOf"};
    FM_TRY(fm__schema_check_words(v));
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        if (!json_object_get(v, whole[i])) continue;
        const char *other     = fm__schema_other_word(v, whole[i]);
        const int   says_type = other && !strcmp(other, "type") && (i == 1 || i == 2);
        if (other && !says_type)
            return fm_fail(FM_E_NOSUP, "schema: %s together with %s is not supported", whole[i],
                           other);
        if (i == 0) return add_ref(s, v, from, to);
        return i <= 2 ? add_values(s, v, from, to) : add_any_of(s, v, whole[i], from, to);
    }
    return add_types(s, v, from, to);
}

fm_status fm__schema_any(fm__schema *s, const json_t *v, int32_t from, int32_t *to)
{
    if (json_is_true(v)) {
        *to = fm__nfa_value(s->n, from);
        return FM_OK;
    }
    if (json_is_false(v)) {
        *to = fm__nfa_state(s->n); /* nothing leads there */
        return FM_OK;
    }
    if (!json_is_object(v))
        return fm_fail(FM_E_FORMAT, "schema: expected an object, found %s", fm_json_kind(v));
    if (s->depth == MAX_NESTING) return fm_fail(FM_E_NOSUP, "schema: it is nested too deep");
    s->depth++;
    const fm_status rc = add_schema(s, v, from, to);
    s->depth--;
    return rc;
}

fm_status fm__nfa_schema(fm__nfa *n, json_t *root, int32_t from, int32_t *to)
{
    fm__schema      s  = {.n = n, .root = root};
    const fm_status rc = fm__schema_any(&s, root, from, to);
    free(s.made);
    return rc;
}
