/* SPDX-License-Identifier: Apache-2.0 */
/* Objects without named properties: keys that propertyNames allows (any, if it is
 * absent), values of additionalProperties; or keys of the one pattern in
 * patternProperties with its values.  A key can come twice, and then counts
 * once: so a minimum above one property cannot be promised. */
#include <stdlib.h>

#include "llm/grammar/schema_internal.h"

typedef struct {
    const json_t *key, *value; /* schemas; NULL: any */
    int64_t       min, max;    /* max < 0: any number */
} map;

/* {"type": "string"} and, with a pattern, that. */
static fm_status make_key(fm__schema *s, const char *pattern, const json_t **out)
{
    json_t *key = pattern ? json_pack("{s:s,s:s}", "type", "string", "pattern", pattern)
                          : json_pack("{s:s}", "type", "string");
    if (!key || json_array_append_new(s->derived, key)) return fm_fail(FM_E_OOM, "schema");
    *out = key;
    return FM_OK;
}

static fm_status read_patterns(fm__schema *s, map *m, const json_t *patterns)
{
    const char *pattern = NULL, *name;
    json_t     *one;
    if (!json_is_object(patterns) || json_object_size(patterns) != 1)
        return fm_fail(FM_E_NOSUP, "schema: patternProperties is supported with one pattern");
    json_object_foreach ((json_t *)patterns, name, one) {
        pattern  = name;
        m->value = one;
    }
    return make_key(s, pattern, &m->key);
}

static fm_status read_map(fm__schema *s, map *m, const json_t *v)
{
    const json_t *names    = json_object_get(v, "propertyNames");
    const json_t *patterns = json_object_get(v, "patternProperties");
    *m                     = (map){.value = json_object_get(v, "additionalProperties"), .max = -1};
    FM_TRY(fm__schema_count(&m->min, v, "minProperties"));
    FM_TRY(fm__schema_count(&m->max, v, "maxProperties"));
    if (m->min > 1) return fm_fail(FM_E_NOSUP, "schema: minProperties above 1 is not supported");
    if (m->max >= 0 && m->max < m->min)
        return fm_fail(FM_E_ARG, "schema: maxProperties is below minProperties");
    if (patterns) FM_TRY(read_patterns(s, m, patterns));
    if (names && !m->key) FM_TRY(make_key(s, NULL, &m->key));
    return names ? fm__schema_both(s, m->key, names, &m->key) : FM_OK;
}

/* "key": value, as a rule. */
static fm_status make_entry(fm__schema *s, const map *m, int32_t *rule)
{
    fm__nfa *n = s->n;
    *rule      = fm__nfa_rule(n);
    if (n->full) return FM_OK;
    const fm__rule r  = n->rule[*rule];
    int32_t        at = r.start;
    if (m->key)
        FM_TRY(fm__schema_any(s, m->key, at, &at));
    else
        at = fm__nfa_string(n, at);
    at = fm__nfa_colon(n, at);
    if (m->value)
        FM_TRY(fm__schema_any(s, m->value, at, &at));
    else
        at = fm__nfa_value(n, at);
    fm__nfa_empty(n, at, r.end);
    return FM_OK;
}

/* Entries between states that exist: counted up to a limit, or a loop. */
static void add_entries(fm__nfa *n, const map *m, int32_t rule, int32_t open, int32_t close)
{
    int32_t at = fm__nfa_call(n, open, rule);
    if (m->max < 0) {
        const int32_t loop = fm__nfa_state(n);
        fm__nfa_empty(n, at, loop);
        fm__nfa_empty(n, fm__nfa_call(n, fm__nfa_comma(n, loop), rule), loop);
        fm__nfa_empty(n, loop, close);
        return;
    }
    for (int64_t i = 1; i <= m->max && !n->full; i++) {
        fm__nfa_empty(n, at, close);
        if (i < m->max) at = fm__nfa_call(n, fm__nfa_comma(n, at), rule);
    }
}

fm_status fm__schema_map(fm__schema *s, const json_t *v, int32_t from, int32_t *to)
{
    fm__nfa *n    = s->n;
    int32_t  rule = 0;
    map      m;
    FM_TRY(fm__schema_need_one_spelling(s));
    FM_TRY(read_map(s, &m, v));
    if (!m.key && (!m.value || json_is_true(m.value)) && !m.min && m.max < 0) {
        *to = fm__nfa_object(n, from);
        return FM_OK;
    }
    *to = fm__nfa_state(n);
    if (!m.min) fm__nfa_empty(n, fm__nfa_none(n, from, "{}"), *to);
    if (!m.max) return FM_OK;
    const int32_t open = fm__nfa_open(n, from, '{'), close = fm__nfa_state(n);
    FM_TRY(make_entry(s, &m, &rule));
    add_entries(n, &m, rule, open, close);
    fm__nfa_empty(n, fm__nfa_shut(n, close, '}'), *to);
    return FM_OK;
}
