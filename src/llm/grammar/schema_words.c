/* SPDX-License-Identifier: Apache-2.0 */
/* Which keywords a schema has. */
#include <string.h>

#include "json/read.h"
#include "llm/grammar/schema_internal.h"

/* They restrict values in ways that are not followed here. */
static const char *const refused[] = {
    "not",
    "if",
    "then",
    "else",
    "multipleOf",
    "uniqueItems",
    "contains",
    "minContains",
    "maxContains",
    "minProperties",
    "maxProperties",
    "patternProperties",
    "propertyNames",
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
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
};
enum {
    FIRST_OF_OBJECT = 7,
    FIRST_OF_ARRAY  = 10,
    FIRST_OF_STRING = 14,
    FIRST_OF_NUMBER = 17,
    N_SAID          = 21
};

enum { MAX_ONE_OF = 64 };

fm_status fm__schema_check_words(const json_t *v)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const json_t *w = json_object_get(v, refused[i]);
        if (w && !(json_is_false(w) && !strcmp(refused[i], "uniqueItems")))
            return fm_fail(FM_E_NOSUP, "schema: %s is not supported", refused[i]);
    }
    return FM_OK;
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
    return NULL;
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

/* The values a schema allows, if it lists them: const or enum. */
static int lists_value(const json_t *v, const json_t *value)
{
    size_t        i;
    const json_t *one, *list = json_object_get(v, "enum"), *only = json_object_get(v, "const");
    if (only) return json_equal((json_t *)only, (json_t *)value);
    json_array_foreach (list, i, one)
        if (json_equal((json_t *)one, (json_t *)value)) return 1;
    return 0;
}

static int have_no_common_value(const json_t *a, const json_t *b)
{
    size_t        i;
    const json_t *one, *list = json_object_get(a, "enum"), *only = json_object_get(a, "const");
    if ((!list && !only) || !(json_object_get(b, "enum") || json_object_get(b, "const"))) return 0;
    if (only) return !lists_value(b, only);
    json_array_foreach (list, i, one)
        if (lists_value(b, one)) return 0;
    return 1;
}

static int requires(const json_t *v, const char *name)
{
    size_t        i;
    const json_t *one;
    json_array_foreach (json_object_get(v, "required"), i, one)
        if (json_is_string(one) && !strcmp(json_string_value(one), name)) return 1;
    return 0;
}

/* Both are objects that must carry the same mark with different values. */
static int have_different_marks(const json_t *a, const json_t *b)
{
    const char *name;
    json_t     *own;
    json_object_foreach (json_object_get(a, "properties"), name, own) {
        const json_t *other = json_object_get(json_object_get(b, "properties"), name);
        if (other && requires(a, name) && requires(b, name) && have_no_common_value(own, other))
            return 1;
    }
    return 0;
}

static int are_two_disjoint(const json_t *a, const json_t *b)
{
    const char *ta = json_string_value(json_object_get(a, "type"));
    const char *tb = json_string_value(json_object_get(b, "type"));
    if (ta && tb && strcmp(ta, tb)) {
        const int numbers = (!strcmp(ta, "integer") || !strcmp(ta, "number")) &&
                            (!strcmp(tb, "integer") || !strcmp(tb, "number"));
        if (!numbers) return 1;
    }
    return have_no_common_value(a, b) || have_different_marks(a, b);
}

int fm__schema_are_disjoint(const json_t *list)
{
    const size_t n = json_array_size(list);
    if (n > MAX_ONE_OF) return 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = i + 1; k < n; k++)
            if (!are_two_disjoint(json_array_get(list, i), json_array_get(list, k))) return 0;
    return 1;
}
