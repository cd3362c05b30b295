/* SPDX-License-Identifier: Apache-2.0 */
/* Which keywords a schema has, and what they say without being followed. */
#include <math.h>
#include <string.h>

#include "json/read.h"
#include "llm/grammar/schema_internal.h"

/* They restrict values in ways that are not followed here. */
static const char *const refused[] = {
    "not",
    "if",
    "then",
    "else",
    "contains",
    "minContains",
    "maxContains",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "additionalItems",
    "unevaluatedItems",
    "unevaluatedProperties",
    "$dynamicRef",
    "$recursiveRef",
};

/* Keywords about the value; what is in neither list says nothing about it. */
static const char *const said[] = {
    "$ref",
    "const",
    "enum",
    "anyOf",
    "oneOf",
    "allOf",
    "type",
    "properties",
    "required",
    "additionalProperties",
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "uniqueItems",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
};
enum {
    FIRST_OF_OBJECT = 7,
    FIRST_OF_ARRAY  = 14,
    FIRST_OF_STRING = 19,
    FIRST_OF_NUMBER = 22,
    N_SAID          = 27
};

static fm_status check_type(const json_t *type)
{
    static const char *const known[] = {"object", "array",   "string", "integer",
                                        "number", "boolean", "null"};
    const char              *name    = json_string_value(type);
    if (!name)
        return fm_fail(FM_E_FORMAT, "schema: type: expected strings, found %s", fm_json_kind(type));
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(name, known[i])) return FM_OK;
    return fm_fail(FM_E_FORMAT, "schema: there is no type \"%.40s\"", name);
}

static fm_status check_types(const json_t *types)
{
    size_t        i;
    const json_t *one;
    if (!types) return FM_OK;
    if (json_is_string(types)) return check_type(types);
    if (!json_is_array(types))
        return fm_fail(FM_E_FORMAT, "schema: type: expected a string or a list, found %s",
                       fm_json_kind(types));
    json_array_foreach (types, i, one) FM_TRY(check_type(one));
    return FM_OK;
}

fm_status fm__schema_check_words(const json_t *v)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        if (json_object_get(v, refused[i]))
            return fm_fail(FM_E_NOSUP, "schema: %s is not supported", refused[i]);
    }
    return check_types(json_object_get(v, "type"));
}

const char *fm__schema_other_word(const json_t *v, const char *but)
{
    const char *found = NULL;
    for (int i = N_SAID - 1; i >= 0; i--)
        if (strcmp(said[i], but) && json_object_get(v, said[i]) &&
            (!found || strcmp(said[i], "type")))
            found = said[i];
    return found;
}

const char *fm__schema_type_of(const json_t *v)
{
    for (int i = FIRST_OF_OBJECT; i < N_SAID; i++)
        if (json_object_get(v, said[i]))
            return i < FIRST_OF_ARRAY    ? "object"
                   : i < FIRST_OF_STRING ? "array"
                   : i < FIRST_OF_NUMBER ? "string"
                                         : "number";
    return fm__schema_format(json_object_get(v, "format")) ? "string" : NULL;
}

static int is_of_type(const json_t *value, const char *type)
{
    const double x = json_number_value(value);
    switch (json_typeof(value)) {
    case JSON_OBJECT: return !strcmp(type, "object");
    case JSON_ARRAY: return !strcmp(type, "array");
    case JSON_STRING: return !strcmp(type, "string");
    case JSON_NULL: return !strcmp(type, "null");
    case JSON_TRUE:
    case JSON_FALSE: return !strcmp(type, "boolean");
    default: return !strcmp(type, "number") || (!strcmp(type, "integer") && x == floor(x));
    }
}

int fm__schema_has_type(const json_t *v, const json_t *value)
{
    size_t        i;
    const json_t *one, *types = json_object_get(v, "type");
    if (!types) return 1;
    if (json_is_string(types)) return is_of_type(value, json_string_value(types));
    json_array_foreach (types, i, one)
        if (is_of_type(value, json_string_value(one))) return 1;
    return 0;
}

fm_status fm__schema_count(int64_t *out, const json_t *v, const char *key)
{
    const json_t *w = json_object_get(v, key);
    if (!w) return FM_OK;
    if (!json_is_integer(w) || json_integer_value(w) < 0)
        return fm_fail(FM_E_FORMAT, "schema: %s: expected a number from 0 on", key);
    *out = json_integer_value(w);
    return FM_OK;
}
