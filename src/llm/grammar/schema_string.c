/* SPDX-License-Identifier: Apache-2.0 */
/* Strings: length, patterns and formats.  One condition is followed as it is;
 * of several, the automata are intersected. */
#include <stdio.h>
#include <string.h>

#include "json/read.h"
#include "llm/grammar/nfa_both.h"
#include "llm/grammar/schema_internal.h"

enum { MAX_STATE = 1 << 13 }; /* of an intersection */

typedef struct {
    const json_t *pattern; /* or NULL */
    const json_t *more;    /* a pattern or a list of them, of a merged schema; or NULL */
    const char   *format;  /* its expression, or NULL */
    int64_t       min, max;
} conditions;

static size_t n_pattern(const conditions *c)
{
    const size_t more = json_is_array(c->more) ? json_array_size(c->more) : c->more != NULL;
    return (c->pattern != NULL) + more;
}

static const json_t *pattern_at(const conditions *c, size_t i)
{
    if (c->pattern && i-- == 0) return c->pattern;
    return json_is_array(c->more) ? json_array_get(c->more, i) : c->more;
}

static fm_status check_pattern(const conditions *c)
{
    for (size_t i = 0; i < n_pattern(c); i++)
        if (!json_is_string(pattern_at(c, i)))
            return fm_fail(FM_E_FORMAT, "schema: pattern: expected a string, found %s",
                           fm_json_kind(pattern_at(c, i)));
    return FM_OK;
}

static fm_status read_conditions(conditions *c, const json_t *v)
{
    *c = (conditions){.pattern = json_object_get(v, "pattern"),
                      .more    = json_object_get(v, FM__PATTERNS),
                      .format  = fm__schema_format(json_object_get(v, "format")),
                      .max     = -1};
    FM_TRY(fm__schema_count(&c->min, v, "minLength"));
    FM_TRY(fm__schema_count(&c->max, v, "maxLength"));
    if (c->max >= 0 && c->max < c->min)
        return fm_fail(FM_E_ARG, "schema: maxLength is below minLength");
    return check_pattern(c);
}

static int32_t add_pattern(fm__nfa *n, const json_t *pattern, int32_t from, fm_status *rc)
{
    return fm__nfa_pattern(n, from, json_string_value(pattern), json_string_length(pattern),
                           FM__IN_STRING, rc);
}

static int32_t add_format(fm__nfa *n, const char *format, int32_t from, fm_status *rc)
{
    return fm__nfa_regex(n, from, format, strlen(format), FM__IN_STRING, rc);
}

/* Adds condition number i: the patterns, then the format, then the length. */
static int32_t add_condition(fm__nfa *n, const conditions *c, size_t i, int32_t from, fm_status *rc)
{
    if (i < n_pattern(c)) return add_pattern(n, pattern_at(c, i), from, rc);
    if (i == n_pattern(c) && c->format) return add_format(n, c->format, from, rc);
    return fm__nfa_string_chars(n, from, c->min, c->max);
}

static size_t n_condition(const conditions *c)
{
    return n_pattern(c) + (c->format != NULL) + (c->min > 0 || c->max >= 0);
}

static fm_status build(fm__nfa *n, const conditions *c, size_t i)
{
    fm_status rc = FM_OK;
    fm__nfa_begin(n);
    fm__nfa_close(n, add_condition(n, c, i, n->rule[0].start, &rc));
    if (rc != FM_OK) fm__nfa_fini(n);
    return rc;
}

/* The same failure, with the keywords. */
static fm_status blame(fm_status rc)
{
    char why[128];
    snprintf(why, sizeof why, "%s", fm_why());
    return fm_fail(rc, "schema: pattern, format and length together: %s", why);
}

static fm_status intersect(fm__nfa *all, const conditions *c)
{
    FM_TRY(build(all, c, 0));
    for (size_t i = 1; i < n_condition(c); i++) {
        fm__nfa   one;
        fm_status rc = build(&one, c, i);
        if (rc != FM_OK) {
            fm__nfa_fini(all);
            return rc;
        }
        rc = fm__nfa_intersect(all, &one, FM__IN_BOTH, MAX_STATE);
        fm__nfa_fini(&one);
        if (rc != FM_OK) return blame(rc);
    }
    return FM_OK;
}

/* A product beyond the limit is tried again for shorter texts, which satisfy the schema, too. */
static fm_status intersect_within_limits(fm__nfa *all, conditions c)
{
    if (c.max > MAX_STATE && c.min <= MAX_STATE) c.max = MAX_STATE;
    fm_status rc = intersect(all, &c);
    while (rc == FM_E_NOSUP && c.max / 2 > c.min && c.max > 1) {
        c.max /= 2;
        rc = intersect(all, &c);
    }
    return rc;
}

static fm_status add_conditions(fm__nfa *n, const conditions *c, int32_t from, int32_t *to)
{
    fm_status rc = FM_OK;
    fm__nfa   all;
    if (n_condition(c) == 1) {
        *to = add_condition(n, c, 0, from, &rc);
        return rc;
    }
    FM_TRY(intersect_within_limits(&all, *c));
    *to = fm__nfa_append(n, from, &all);
    fm__nfa_fini(&all);
    return FM_OK;
}

fm_status fm__schema_string(fm__schema *s, const json_t *v, int32_t from, int32_t *to)
{
    conditions c;
    if (s->is_once) return fm__schema_canonical(s, v, FM__A_STRING, from, to);
    FM_TRY(read_conditions(&c, v));
    if (!n_condition(&c)) {
        *to = fm__nfa_string(s->n, from);
        return FM_OK;
    }
    FM_TRY(add_conditions(s->n, &c, fm__nfa_word(s->n, from, "\""), to));
    *to = fm__nfa_word(s->n, *to, "\"");
    return FM_OK;
}
