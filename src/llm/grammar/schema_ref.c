/* SPDX-License-Identifier: Apache-2.0 */
/* References: a schema that is referred to becomes a rule of its own, made at the
 * first reference, so that it can refer to itself. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "llm/grammar/schema_internal.h"

enum { FIRST_SLOTS = 64 };

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

static const json_t *find(const fm__schema *s, const char *ref)
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

fm_status fm__schema_resolve(const fm__schema *s, const json_t *v, const json_t **out)
{
    const json_t *ref    = json_object_get(v, "$ref");
    const json_t *target = json_is_string(ref) ? find(s, json_string_value(ref)) : NULL;
    if (!target)
        return fm_fail(FM_E_FORMAT, "schema: $ref: nothing in this schema is called \"%.80s\"",
                       json_is_string(ref) ? json_string_value(ref) : "");
    *out = target;
    return FM_OK;
}

/* The slot of a schema in one spelling or any, or the empty one where it belongs. */
static fm__schema_rule *slot_of(const fm__schema *s, const json_t *v, int is_once)
{
    for (size_t at = (size_t)((uintptr_t)v >> 4) * 0x9e3779b1u;; at++) {
        fm__schema_rule *slot = &s->made[at & s->made_mask];
        if (!slot->schema || (slot->schema == v && slot->is_once == is_once)) return slot;
    }
}

static void grow_made(fm__schema *s)
{
    fm__schema_rule *old = s->made;
    const size_t     n   = old ? s->made_mask + 1 : 0;
    s->made_mask         = (n ? 2 * n : FIRST_SLOTS) - 1;
    s->made              = calloc(s->made_mask + 1, sizeof *s->made);
    FM_BUG_UNLESS(s->made != NULL);
    for (size_t i = 0; i < n; i++)
        if (old[i].schema) *slot_of(s, old[i].schema, old[i].is_once) = old[i];
    free(old);
}

static fm_status build_rule(fm__schema *s, const json_t *v, int32_t rule)
{
    const json_t *flat = v;
    int32_t       to   = 0;
    if (json_is_object(v) && fm__schema_is_compound(v)) FM_TRY(fm__schema_flatten(s, v, &flat));
    FM_TRY(fm__schema_any(s, flat, s->n->rule[rule].start, &to));
    fm__nfa_empty(s->n, to, s->n->rule[rule].end);
    return FM_OK;
}

fm_status fm__schema_call(fm__schema *s, const json_t *v, int32_t from, int32_t *to)
{
    if (!s->made || 2 * s->n_made > s->made_mask) grow_made(s);
    fm__schema_rule *slot = slot_of(s, v, s->is_once);
    if (slot->schema) {
        *to = fm__nfa_call(s->n, from, slot->rule);
        return FM_OK;
    }
    const int32_t rule = fm__nfa_rule(s->n);
    *slot              = (fm__schema_rule){v, rule, s->is_once};
    s->n_made++;
    *to = fm__nfa_call(s->n, from, rule);
    return s->n->full ? FM_OK : build_rule(s, v, rule);
}

fm_status fm__schema_ref(fm__schema *s, const json_t *v, int32_t from, int32_t *to)
{
    const json_t *target = NULL;
    FM_TRY(fm__schema_resolve(s, v, &target));
    return fm__schema_call(s, target, from, to);
}

static int is_plain_ref(const json_t *v)
{
    return json_object_get(v, "$ref") && !fm__schema_is_compound(v);
}

/* {"allOf": [v, {"required": names}]} */
static json_t *make_required(const json_t *v, json_t *names)
{
    const char *name;
    json_t     *unused, *list = json_array(), *made = NULL;
    json_object_foreach (names, name, unused) json_array_append_new(list, json_string(name));
    (void)unused;
    made = json_pack("{s:[O,{s:o}]}", "allOf", (json_t *)v, "required", list);
    return made;
}

fm_status fm__schema_require(fm__schema *s, const json_t *v, json_t *names, const json_t **out)
{
    fm_str      key = {0};
    const char *name;
    json_t     *unused;
    if (is_plain_ref(v)) FM_TRY(fm__schema_resolve(s, v, &v));
    fm_str_printf(&key, "%p", (const void *)v);
    json_object_foreach (names, name, unused) fm_str_printf(&key, "\n%s", name);
    (void)unused;
    *out = json_object_get(s->required, key.text);
    if (!*out) {
        json_t *made = make_required(v, names);
        *out         = made;
        if (!made || json_object_set_new(s->required, key.text, made)) *out = NULL;
    }
    fm_str_fini(&key);
    return *out ? FM_OK : fm_fail(FM_E_OOM, "schema");
}

static int is_in(const json_t *names, const char *name)
{
    size_t        i;
    const json_t *one;
    json_array_foreach (names, i, one)
        if (json_is_string(one) && !strcmp(json_string_value(one), name)) return 1;
    return 0;
}

int fm__schema_requires(fm__schema *s, const json_t *v, const char *name)
{
    if (fm__schema_flatten(s, v, &v) != FM_OK) return 0;
    return is_in(json_object_get(v, "required"), name);
}
