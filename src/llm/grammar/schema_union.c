/* SPDX-License-Identifier: Apache-2.0 */
/* anyOf and oneOf.  A value must satisfy one member of a oneOf and no second, so
 * no two may have a value in common.  Objects are told apart by a property that
 * lists different values in each (a tag); where a member does not require its
 * tag, as a default in Pydantic has it, we write it nevertheless. */
#include <string.h>

#include "llm/grammar/schema_internal.h"

enum { MAX_ONE_OF = 64, MAX_DEPTH = 8 };

int fm__schema_equal(const json_t *a, const json_t *b)
{
    if (json_is_number(a) && json_is_number(b)) return json_number_value(a) == json_number_value(b);
    return json_equal((json_t *)a, (json_t *)b);
}

int fm__schema_lists(const json_t *v, const json_t *value)
{
    size_t        i;
    const json_t *one, *list = json_object_get(v, "enum"), *only = json_object_get(v, "const");
    if (only) return fm__schema_equal(only, value);
    json_array_foreach (list, i, one)
        if (fm__schema_equal(one, value)) return 1;
    return 0;
}

int fm__schema_is_repeated(const json_t *list, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (fm__schema_equal(json_array_get(list, k), json_array_get(list, i))) return 1;
    return 0;
}

static int have_no_common_value(const json_t *a, const json_t *b)
{
    size_t        i;
    const json_t *one, *list = json_object_get(a, "enum"), *only = json_object_get(a, "const");
    if ((!list && !only) || !(json_object_get(b, "enum") || json_object_get(b, "const"))) return 0;
    if (only) return !fm__schema_lists(b, only);
    json_array_foreach (list, i, one)
        if (fm__schema_lists(b, one)) return 0;
    return 1;
}

static int have_different_types(const json_t *a, const json_t *b)
{
    const char *ta = json_string_value(json_object_get(a, "type"));
    const char *tb = json_string_value(json_object_get(b, "type"));
    if (!ta || !tb || !strcmp(ta, tb)) return 0;
    const int numbers = (!strcmp(ta, "integer") || !strcmp(ta, "number")) &&
                        (!strcmp(tb, "integer") || !strcmp(tb, "number"));
    return !numbers;
}

/* Two members, and the tags by which they are told apart so far. */
typedef struct {
    fm__schema *s;
    json_t     *tags_a, *tags_b; /* sets: keys of objects */
} duel;

static int flat(fm__schema *s, const json_t **v)
{
    return fm__schema_flatten(s, *v, v) == FM_OK;
}

/* Both are objects with the same property, and its values differ. */
static int have_different_tags(const duel *d, const json_t *a, const json_t *b)
{
    const char *name;
    json_t     *own;
    json_object_foreach (json_object_get(a, "properties"), name, own) {
        const json_t *mine = own, *other = json_object_get(json_object_get(b, "properties"), name);
        if (!other || !flat(d->s, &mine) || !flat(d->s, &other)) continue;
        if (!have_no_common_value(mine, other)) continue;
        json_object_set_new(d->tags_a, name, json_true());
        json_object_set_new(d->tags_b, name, json_true());
        return 1;
    }
    return 0;
}

static const json_t *members_of(const json_t *v)
{
    const json_t *any = json_object_get(v, "anyOf");
    return any ? any : json_object_get(v, "oneOf");
}

static int are_two_disjoint(const duel *d, const json_t *a, const json_t *b, int depth)
{
    size_t        i;
    const json_t *one, *list;
    if (depth > MAX_DEPTH || !flat(d->s, &a) || !flat(d->s, &b)) return 0;
    if (json_is_false(a) || json_is_false(b)) return 1;
    if ((list = members_of(a)) != NULL) {
        json_array_foreach (list, i, one)
            if (!are_two_disjoint(d, one, b, depth + 1)) return 0;
        return 1;
    }
    if (members_of(b)) {
        const duel turned = {d->s, d->tags_b, d->tags_a};
        return are_two_disjoint(&turned, b, a, depth + 1);
    }
    return have_different_types(a, b) || have_no_common_value(a, b) || have_different_tags(d, a, b);
}

/* The members made plain, once for all comparisons; a set of tags for each. */
static fm_status flatten_all(fm__schema *s, const json_t *list, const json_t **flats, json_t *tags)
{
    size_t        i;
    const json_t *one;
    json_array_foreach (list, i, one) {
        FM_TRY(fm__schema_flatten(s, one, &flats[i]));
        json_array_append_new(tags, json_object());
    }
    return FM_OK;
}

static fm_status check_disjoint(fm__schema *s, const json_t *list, json_t *tags)
{
    const json_t *flats[MAX_ONE_OF];
    const size_t  n     = json_array_size(list);
    int           apart = n <= MAX_ONE_OF;
    if (apart) FM_TRY(flatten_all(s, list, flats, tags));
    for (size_t i = 0; apart && i < n; i++)
        for (size_t k = i + 1; apart && k < n; k++) {
            const duel d = {s, json_array_get(tags, i), json_array_get(tags, k)};
            apart        = are_two_disjoint(&d, flats[i], flats[k], 0);
        }
    if (apart) return FM_OK;
    return fm_fail(FM_E_NOSUP,
                   "schema: oneOf is supported for up to %d schemas where no value can satisfy two "
                   "of them; use anyOf",
                   MAX_ONE_OF);
}

/* The member with its tags required. */
static fm_status add_tagged(fm__schema *s, const json_t *member, json_t *tags, int32_t from,
                            int32_t *to)
{
    const json_t *tagged = NULL;
    const char   *name;
    json_t       *unused;
    int           is_new = 0;
    json_object_foreach (tags, name, unused) is_new |= !fm__schema_requires(s, member, name);
    (void)unused;
    if (!is_new) return fm__schema_any(s, member, from, to);
    FM_TRY(fm__schema_require(s, member, tags, &tagged));
    return fm__schema_call(s, tagged, from, to);
}

static fm_status add_members(fm__schema *s, const json_t *list, const json_t *tags, int32_t from,
                             int32_t *to)
{
    size_t        i;
    const json_t *one;
    *to = fm__nfa_state(s->n);
    json_array_foreach (list, i, one) {
        int32_t end = 0;
        FM_TRY(add_tagged(s, one, json_array_get(tags, i), from, &end));
        fm__nfa_empty(s->n, end, *to);
    }
    return FM_OK;
}

fm_status fm__schema_union(fm__schema *s, const json_t *v, const char *key, int32_t from,
                           int32_t *to)
{
    const json_t *list = json_object_get(v, key);
    fm_status     rc   = FM_OK;
    if (!json_is_array(list) || !json_array_size(list))
        return fm_fail(FM_E_FORMAT, "schema: %s: expected a list of schemas", key);
    json_t *tags = json_array();
    if (!tags) return fm_fail(FM_E_OOM, "schema");
    if (!strcmp(key, "oneOf")) rc = check_disjoint(s, list, tags);
    if (rc == FM_OK) rc = add_members(s, list, tags, from, to);
    json_decref(tags);
    return rc;
}
