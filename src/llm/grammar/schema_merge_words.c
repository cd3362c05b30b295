/* SPDX-License-Identifier: Apache-2.0 */
/* Keywords of two schemas that hold at once: the tighter bound, common values
 * and types, both patterns. */
#include <string.h>

#include "llm/grammar/decimal.h"
#include "llm/grammar/schema_internal.h"

typedef fm_status merge_fn(json_t *to, const char *key, const json_t *a, const json_t *b);

static fm_status keep(json_t *to, const char *key, const json_t *v)
{
    return json_object_set(to, key, (json_t *)v) ? fm_fail(FM_E_OOM, "schema") : FM_OK;
}

static int compare(const json_t *a, const json_t *b)
{
    fm__decimal  x, y;
    const double p = json_number_value(a), q = json_number_value(b);
    fm__decimal_read(&x, a);
    fm__decimal_read(&y, b);
    return x.is_huge || y.is_huge ? (p > q) - (p < q) : fm__decimal_compare(&x, &y);
}

/* What is no number is kept, so that reading it says so. */
static fm_status keep_larger(json_t *to, const char *key, const json_t *a, const json_t *b)
{
    const int first = !json_is_number(a) || (json_is_number(b) && compare(a, b) >= 0);
    return keep(to, key, first ? a : b);
}

static fm_status keep_smaller(json_t *to, const char *key, const json_t *a, const json_t *b)
{
    const int first = !json_is_number(a) || (json_is_number(b) && compare(a, b) <= 0);
    return keep(to, key, first ? a : b);
}

static fm_status keep_either(json_t *to, const char *key, const json_t *a, const json_t *b)
{
    return keep(to, key, json_is_false(a) ? b : a);
}

/* The members of both lists and texts, each once. */
static fm_status join(json_t *to, const char *key, const json_t *a, const json_t *b)
{
    const json_t *of[] = {a, b};
    json_t       *list = json_array();
    if (!list) return fm_fail(FM_E_OOM, "schema");
    for (int i = 0; i < 2; i++) {
        const size_t n = json_is_array(of[i]) ? json_array_size(of[i]) : 1;
        for (size_t k = 0; k < n; k++)
            json_array_append(list,
                              json_is_array(of[i]) ? json_array_get(of[i], k) : (json_t *)of[i]);
    }
    return json_object_set_new(to, key, list) ? fm_fail(FM_E_OOM, "schema") : FM_OK;
}

static int has_type(const json_t *types, const char *name)
{
    size_t        i;
    const json_t *one;
    if (json_is_string(types)) return !strcmp(json_string_value(types), name);
    json_array_foreach (types, i, one)
        if (!strcmp(json_string_value(one), name)) return 1;
    return 0;
}

/* Of the types, those both have; an integer is a number. */
static fm_status common_types(json_t *to, const char *key, const json_t *a, const json_t *b)
{
    static const char *const all[] = {"object", "array",   "string", "integer",
                                      "number", "boolean", "null"};
    json_t                  *list  = json_array();
    if (!list || json_object_set_new(to, key, list)) return fm_fail(FM_E_OOM, "schema");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const int whole = !strcmp(all[i], "integer");
        const int in_a  = has_type(a, all[i]) || (whole && has_type(a, "number"));
        const int in_b  = has_type(b, all[i]) || (whole && has_type(b, "number"));
        const int both  = whole && has_type(a, "number") && has_type(b, "number");
        if (in_a && in_b && !both) json_array_append_new(list, json_string(all[i]));
    }
    return FM_OK;
}

static fm_status same_only(json_t *to, const char *key, const json_t *a, const json_t *b)
{
    if (!json_equal((json_t *)a, (json_t *)b))
        return fm_fail(FM_E_NOSUP, "schema: allOf: two different %s are not supported", key);
    return keep(to, key, a);
}

/* A format that is not followed says nothing. */
static fm_status known_format(json_t *to, const char *key, const json_t *a, const json_t *b)
{
    if (!fm__schema_format(a)) return keep(to, key, b);
    if (!fm__schema_format(b)) return keep(to, key, a);
    return same_only(to, key, a, b);
}

static json_int_t common_divisor(json_int_t a, json_int_t b)
{
    while (b) {
        const json_int_t r = a % b;
        a = b, b = r;
    }
    return a;
}

static fm_status common_multiple(json_t *to, const char *key, const json_t *a, const json_t *b)
{
    const json_int_t x = json_integer_value(a), y = json_integer_value(b);
    if (x <= 0 || y <= 0 || x > 1 << 20 || y > 1 << 20) return same_only(to, key, a, b);
    json_t *both = json_integer(x / common_divisor(x, y) * y);
    return json_object_set_new(to, key, both) ? fm_fail(FM_E_OOM, "schema") : FM_OK;
}

static const struct {
    const char *key;
    merge_fn   *merge;
} word[] = {
    {"type", common_types},
    {"required", join},
    {"minItems", keep_larger},
    {"maxItems", keep_smaller},
    {"minProperties", keep_larger},
    {"maxProperties", keep_smaller},
    {"patternProperties", same_only},
    {"minLength", keep_larger},
    {"maxLength", keep_smaller},
    {"minimum", keep_larger},
    {"maximum", keep_smaller},
    {"exclusiveMinimum", keep_larger},
    {"exclusiveMaximum", keep_smaller},
    {"uniqueItems", keep_either},
    {"multipleOf", common_multiple},
    {FM__PATTERNS, join},
    {"format", known_format},
};

/* The values listed by one that the other lists, too. */
static fm_status common_values(json_t *to, const json_t *a, const json_t *b)
{
    const json_t *only = json_object_get(a, "const"), *list = json_object_get(a, "enum");
    json_t       *common = json_array();
    if (!common || json_object_set_new(to, "enum", common)) return fm_fail(FM_E_OOM, "schema");
    for (size_t i = 0; i < (only ? 1 : json_array_size(list)); i++) {
        json_t *one = only ? (json_t *)only : json_array_get(list, i);
        if (fm__schema_lists(b, one)) json_array_append(common, one);
    }
    return FM_OK;
}

static int lists_values(const json_t *v)
{
    return json_object_get(v, "const") || json_object_get(v, "enum");
}

static fm_status merge_values(json_t *to, const json_t *a, const json_t *b)
{
    static const char *const key[] = {"const", "enum"};
    if (lists_values(a) && lists_values(b)) return common_values(to, a, b);
    for (int i = 0; i < 2; i++) {
        const json_t *own = json_object_get(lists_values(a) ? a : b, key[i]);
        if (own) FM_TRY(keep(to, key[i], own));
    }
    return FM_OK;
}

/* Both patterns go into one list, which only merged schemas have. */
static fm_status merge_patterns(json_t *to, const json_t *a, const json_t *b)
{
    const json_t *x = json_object_get(a, "pattern"), *y = json_object_get(b, "pattern");
    if (x && y && !json_equal((json_t *)x, (json_t *)y)) {
        FM_TRY(keep(to, "pattern", x));
        if (!json_object_get(to, FM__PATTERNS)) return keep(to, FM__PATTERNS, y);
        return join(to, FM__PATTERNS, json_object_get(to, FM__PATTERNS), y);
    }
    return x || y ? keep(to, "pattern", x ? x : y) : FM_OK;
}

fm_status fm__schema_merge_words(json_t *to, const json_t *a, const json_t *b)
{
    for (size_t i = 0; i < sizeof word / sizeof *word; i++) {
        const json_t *x = json_object_get(a, word[i].key), *y = json_object_get(b, word[i].key);
        if (x && y)
            FM_TRY(word[i].merge(to, word[i].key, x, y));
        else if (x || y)
            FM_TRY(keep(to, word[i].key, x ? x : y));
    }
    FM_TRY(merge_patterns(to, a, b));
    return merge_values(to, a, b);
}
