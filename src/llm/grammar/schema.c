/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "json/read.h"
#include "llm/grammar/schema_internal.h"

enum { MAX_NESTING = 128 };

/* Below a state that only literals leave. */
fm_status fm__schema_literal(fm__schema *s, const json_t *v, int32_t root, int32_t *to)
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
        if (s->is_once && fm__schema_is_repeated(list, i)) continue; /* 1 and 1.0 */
        FM_TRY(fm__schema_literal(s, one, root, &end));
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
        FM_TRY(fm__schema_need_one_spelling(s));
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

static fm_status add_schema(fm__schema *s, const json_t *v, int32_t from, int32_t *to)
{
    static const char *const values[] = {"const", "enum"}, *const unions[] = {"anyOf", "oneOf"};
    FM_TRY(fm__schema_check_words(v));
    if (fm__schema_is_compound(v)) return fm__schema_call(s, v, from, to);
    if (json_object_get(v, "$ref")) return fm__schema_ref(s, v, from, to);
    for (int i = 0; i < 2; i++) {
        if (!json_object_get(v, values[i])) continue;
        const char *other = fm__schema_other_word(v, values[i]);
        if (other && strcmp(other, "type"))
            return fm_fail(FM_E_NOSUP, "schema: %s together with %s is not supported", values[i],
                           other);
        return add_values(s, v, from, to);
    }
    for (int i = 0; i < 2; i++)
        if (json_object_get(v, unions[i])) return fm__schema_union(s, v, unions[i], from, to);
    return add_types(s, v, from, to);
}

fm_status fm__schema_any(fm__schema *s, const json_t *v, int32_t from, int32_t *to)
{
    if (json_is_true(v)) {
        FM_TRY(fm__schema_need_one_spelling(s));
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
    fm__schema      s        = {.n        = n,
                                .root     = root,
                                .derived  = json_array(),
                                .pairs    = json_object(),
                                .required = json_object()};
    const int       is_ready = s.derived && s.pairs && s.required;
    const fm_status rc =
        is_ready ? fm__schema_any(&s, root, from, to) : fm_fail(FM_E_OOM, "schema");
    json_decref(s.derived);
    json_decref(s.pairs);
    json_decref(s.required);
    free(s.made);
    return rc;
}
