/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas that hold at once (allOf, keywords beside $ref, anyOf or oneOf) as one
 * schema.  Merging is lazy: what lies below, a property's schema for instance,
 * becomes an allOf of two, merged when it is built. */
#include <stdio.h>
#include <string.h>

#include "json/read.h"
#include "llm/grammar/schema_internal.h"

enum { MAX_DERIVED = 1 << 13, MAX_DEPTH = 64 };

static fm_status merge(fm__schema *s, const json_t *a, const json_t *b, const json_t **out,
                       int depth);
static fm_status flatten(fm__schema *s, const json_t *v, const json_t **out, int depth);

/* A new object that lives as long as the reading. */
static fm_status derive(fm__schema *s, json_t **out)
{
    if (json_array_size(s->derived) >= MAX_DERIVED)
        return fm_fail(FM_E_NOSUP, "schema: allOf: merging it does not end");
    *out = json_object();
    if (!*out || json_array_append_new(s->derived, *out)) return fm_fail(FM_E_OOM, "schema");
    return FM_OK;
}

static void put(json_t *to, const char *key, const json_t *value)
{
    json_object_set(to, key, (json_t *)value);
}

static int has_format(const json_t *v)
{
    return fm__schema_format(json_object_get(v, "format")) != NULL;
}

int fm__schema_is_compound(const json_t *v)
{
    static const char *const whole[] = {"$ref", "anyOf", "oneOf"};
    if (json_object_get(v, "allOf")) return 1;
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if (json_object_get(v, whole[i]) && (fm__schema_other_word(v, whole[i]) || has_format(v)))
            return 1;
    return 0;
}

static int says_nothing(const json_t *v)
{
    return !fm__schema_other_word(v, "") && !has_format(v);
}

/* A keyword of v as a schema of its own. */
static fm_status isolate(fm__schema *s, const json_t *v, const char *key, const json_t **out)
{
    json_t *only = NULL;
    FM_TRY(derive(s, &only));
    put(only, key, json_object_get(v, key));
    *out = only;
    return FM_OK;
}

/* What v says without the keywords that refer to other schemas. */
static fm_status keep_plain(fm__schema *s, const json_t *v, const json_t **out)
{
    static const char *const compound[] = {"$ref", "allOf", "anyOf", "oneOf"};
    json_t                  *rest       = NULL;
    FM_TRY(derive(s, &rest));
    json_object_update(rest, (json_t *)v);
    for (size_t i = 0; i < sizeof compound / sizeof *compound; i++)
        json_object_del(rest, compound[i]);
    *out = rest;
    return FM_OK;
}

static fm_status flatten_compound(fm__schema *s, const json_t *v, const json_t **out, int depth)
{
    static const char *const others[] = {"$ref", "anyOf", "oneOf"};
    const json_t            *all = json_object_get(v, "allOf"), *part, *at = NULL;
    size_t                   i;
    FM_TRY(fm__schema_check_words(v));
    FM_TRY(keep_plain(s, v, &at));
    if (all && (!json_is_array(all) || !json_array_size(all)))
        return fm_fail(FM_E_FORMAT, "schema: allOf: expected a list of schemas");
    json_array_foreach (all, i, part) FM_TRY(merge(s, at, part, &at, depth));
    for (i = 0; i < sizeof others / sizeof *others; i++) {
        if (!json_object_get(v, others[i])) continue;
        FM_TRY(isolate(s, v, others[i], &part));
        FM_TRY(merge(s, at, part, &at, depth));
    }
    *out = at;
    return FM_OK;
}

static fm_status flatten(fm__schema *s, const json_t *v, const json_t **out, int depth)
{
    if (depth > MAX_DEPTH) return fm_fail(FM_E_NOSUP, "schema: allOf or $ref is nested too deep");
    if (json_is_object(v) && fm__schema_is_compound(v))
        return flatten_compound(s, v, out, depth + 1);
    if (json_is_object(v) && json_object_get(v, "$ref")) {
        const json_t *target = NULL;
        FM_TRY(fm__schema_resolve(s, v, &target));
        return flatten(s, target, out, depth + 1);
    }
    *out = v;
    return FM_OK;
}

fm_status fm__schema_flatten(fm__schema *s, const json_t *v, const json_t **out)
{
    return flatten(s, v, out, 0);
}

static fm_status make_pair(fm__schema *s, const json_t *a, const json_t *b, json_t **out)
{
    json_t *list = NULL;
    FM_TRY(derive(s, out));
    if (!(list = json_array())) return fm_fail(FM_E_OOM, "schema");
    json_object_set_new(*out, "allOf", list);
    json_array_append(list, (json_t *)a);
    json_array_append(list, (json_t *)b);
    return FM_OK;
}

/* What a reference refers to, so that two to the same schema count as one. */
static const json_t *target_of(const fm__schema *s, const json_t *v)
{
    const json_t *target = v;
    if (!json_object_get(v, "$ref") || fm__schema_is_compound(v)) return v;
    return fm__schema_resolve(s, v, &target) == FM_OK ? target : v;
}

/* allOf [a, b], or one of them where the other says nothing.  The same for the same two, so that
 * schemas that refer to themselves can be merged. */
static fm_status both(fm__schema *s, const json_t *a, const json_t *b, const json_t **out)
{
    char    key[64];
    json_t *made = NULL;
    if (!a || json_is_true(a) || (b && json_equal((json_t *)a, (json_t *)b))) {
        *out = b;
        return FM_OK;
    }
    if (!b || json_is_true(b)) {
        *out = a;
        return FM_OK;
    }
    snprintf(key, sizeof key, "%p %p", (const void *)target_of(s, a),
             (const void *)target_of(s, b));
    *out = json_object_get(s->pairs, key);
    if (*out) return FM_OK;
    FM_TRY(make_pair(s, a, b, &made));
    json_object_set(s->pairs, key, made);
    *out = made;
    return FM_OK;
}

fm_status fm__schema_both(fm__schema *s, const json_t *a, const json_t *b, const json_t **out)
{
    return both(s, a, b, out);
}

static const char *union_word(const json_t *v)
{
    return json_object_get(v, "anyOf") ? "anyOf" : json_object_get(v, "oneOf") ? "oneOf" : NULL;
}

/* Every member of a union together with another schema, whose properties come first or last. */
static fm_status distribute(fm__schema *s, const json_t *of, const json_t *other, int is_first,
                            const json_t **out)
{
    const char   *word = union_word(of);
    const json_t *member, *list = json_object_get(of, word), *one = NULL;
    json_t       *made = NULL, *members = json_array();
    size_t        i;
    fm_status     rc = members ? derive(s, &made) : fm_fail(FM_E_OOM, "schema");
    if (rc != FM_OK) {
        json_decref(members);
        return rc;
    }
    json_object_set_new(made, word, members);
    json_array_foreach (list, i, member) {
        FM_TRY(is_first ? both(s, other, member, &one) : both(s, member, other, &one));
        json_array_append(members, (json_t *)one);
    }
    *out = made;
    return FM_OK;
}

static const json_t *property_or_rest(const json_t *v, const char *name)
{
    const json_t *own = json_object_get(json_object_get(v, "properties"), name);
    return own ? own : json_object_get(v, "additionalProperties");
}

static fm_status merge_properties(fm__schema *s, json_t *to, const json_t *a, const json_t *b)
{
    const json_t *of[] = {a, b}, *one = NULL;
    const char   *name;
    json_t       *own, *all = json_object();
    if (!all) return fm_fail(FM_E_OOM, "schema");
    json_object_set_new(to, "properties", all);
    for (int i = 0; i < 2; i++)
        json_object_foreach (json_object_get(of[i], "properties"), name, own) {
            if (json_object_get(all, name)) continue;
            FM_TRY(both(s, property_or_rest(a, name), property_or_rest(b, name), &one));
            put(all, name, one ? one : json_true());
        }
    return FM_OK;
}

static const json_t *item_or_rest(const json_t *v, size_t i)
{
    const json_t *own = json_array_get(json_object_get(v, "prefixItems"), i);
    return own ? own : json_object_get(v, "items");
}

static fm_status merge_prefix(fm__schema *s, json_t *to, const json_t *a, const json_t *b)
{
    const size_t  n_a = json_array_size(json_object_get(a, "prefixItems"));
    const size_t  n_b = json_array_size(json_object_get(b, "prefixItems"));
    const json_t *one = NULL;
    json_t       *all = json_array();
    if (!all) return fm_fail(FM_E_OOM, "schema");
    json_object_set_new(to, "prefixItems", all);
    for (size_t i = 0; i < n_a || i < n_b; i++) {
        FM_TRY(both(s, item_or_rest(a, i), item_or_rest(b, i), &one));
        json_array_append(all, (json_t *)(one ? one : json_true()));
    }
    return FM_OK;
}

static fm_status merge_plain(fm__schema *s, const json_t *a, const json_t *b, const json_t **out)
{
    static const char *const nested[] = {"additionalProperties", "propertyNames", "items"};
    json_t                  *made     = NULL;
    FM_TRY(derive(s, &made));
    FM_TRY(fm__schema_merge_words(made, a, b));
    for (size_t i = 0; i < sizeof nested / sizeof *nested; i++) {
        const json_t *one = NULL;
        FM_TRY(both(s, json_object_get(a, nested[i]), json_object_get(b, nested[i]), &one));
        if (one) put(made, nested[i], one);
    }
    if (json_object_get(a, "properties") || json_object_get(b, "properties"))
        FM_TRY(merge_properties(s, made, a, b));
    if (json_object_get(a, "prefixItems") || json_object_get(b, "prefixItems"))
        FM_TRY(merge_prefix(s, made, a, b));
    *out = made;
    return FM_OK;
}

static fm_status merge(fm__schema *s, const json_t *a, const json_t *b, const json_t **out,
                       int depth)
{
    FM_TRY(flatten(s, b, &b, depth)); /* a is flat already */
    if (json_is_true(b) || json_is_false(a)) return *out = a, FM_OK;
    if (json_is_true(a) || json_is_false(b)) return *out = b, FM_OK;
    if (!json_is_object(b))
        return fm_fail(FM_E_FORMAT, "schema: expected an object, found %s", fm_json_kind(b));
    FM_TRY(fm__schema_check_words(b));
    if (says_nothing(b)) return *out = a, FM_OK;
    if (says_nothing(a)) return *out = b, FM_OK;
    if (union_word(a)) return distribute(s, a, b, 0, out);
    if (union_word(b)) return distribute(s, b, a, 1, out);
    return merge_plain(s, a, b, out);
}
