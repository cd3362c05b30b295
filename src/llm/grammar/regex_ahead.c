/* SPDX-License-Identifier: Apache-2.0 */
/* Look-ahead at the beginning of an expression: ^(?=A)(?!B)C are the texts of C
 * that begin as A says and not as B says, an intersection and a difference. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "llm/grammar/nfa_both.h"

enum { MAX_STATE = 1 << 13 }; /* of an intersection */

typedef struct {
    const char  *text;
    size_t       len, at; /* at: behind the look-aheads read so far */
    fm__spelling spelling;
} ahead;

static int is_ahead(const ahead *a)
{
    const char *p = a->text + a->at;
    return a->len - a->at >= 3 && p[0] == '(' && p[1] == '?' && (p[2] == '=' || p[2] == '!');
}

/* The length of a group, parentheses included; 0: it is not closed. */
static size_t group_length(const char *p, size_t len)
{
    int depth = 0, in_set = 0;
    for (size_t i = 0; i < len; i++) {
        if (p[i] == '\\')
            i++;
        else if (in_set)
            in_set = p[i] != ']';
        else if (p[i] == '[')
            in_set = 1;
        else if (p[i] == '(')
            depth++;
        else if (p[i] == ')' && !--depth)
            return i + 1;
    }
    return 0;
}

/* The condition as an expression of its own; it says nothing about the rest of the text unless
 * it ends in $. */
static void write_condition(fm_str *out, const char *p, size_t len, fm__spelling s)
{
    const int ends = len && p[len - 1] == '$' && !(len > 1 && p[len - 2] == '\\');
    if (len && *p == '^') p++, len--;
    fm_str_puts(out, "^(?:");
    fm_str_add(out, p, len - (size_t)(ends && len));
    fm_str_puts(out, ends ? ")$" : s == FM__PLAIN ? ")[\\s\\S]*$" : ")");
}

static fm_status build(fm__nfa *n, const char *text, size_t len, fm__spelling s)
{
    fm_status rc = FM_OK;
    fm__nfa_begin(n);
    fm__nfa_close(n, fm__nfa_regex(n, n->rule[0].start, text, len, s, &rc));
    if (rc != FM_OK) fm__nfa_fini(n);
    return rc;
}

/* *n loses what the expression refuses; it is freed on failure. */
static fm_status restrict_to(fm__nfa *n, const char *text, size_t len, fm__spelling s,
                             fm__both_kind kind)
{
    fm__nfa   other;
    fm_status rc = build(&other, text, len, s);
    if (rc != FM_OK) {
        fm__nfa_fini(n);
        return rc;
    }
    rc = fm__nfa_intersect(n, &other, kind, MAX_STATE);
    fm__nfa_fini(&other);
    return rc;
}

static fm_status apply_one(ahead *a, fm__nfa *n)
{
    const char  *p         = a->text + a->at;
    const size_t len       = group_length(p, a->len - a->at);
    fm_str       condition = {0};
    write_condition(&condition, p + 3, len - 4, a->spelling);
    const fm_status rc = restrict_to(n, condition.text, condition.len, a->spelling,
                                     p[2] == '=' ? FM__IN_BOTH : FM__IN_FIRST_ONLY);
    fm_str_fini(&condition);
    a->at += len;
    return rc;
}

/* In a JSON string a character has many spellings; a difference needs the one that sets have. */
static fm_status spell_once(fm__nfa *n)
{
    static const char any[] = "^[\\s\\S]*$";
    return restrict_to(n, any, strlen(any), FM__IN_STRING, FM__IN_BOTH);
}

static fm_status build_rest(fm__nfa *n, ahead a)
{
    fm_str rest = {0};
    while (is_ahead(&a)) {
        const size_t len = group_length(a.text + a.at, a.len - a.at);
        if (!len)
            return fm_fail(FM_E_FORMAT, "regular expression, byte %zu: a group is not closed",
                           a.at);
        a.at += len;
    }
    fm_str_puts(&rest, "^");
    fm_str_add(&rest, a.text + a.at, a.len - a.at);
    const fm_status rc = build(n, rest.text, rest.len, a.spelling);
    fm_str_fini(&rest);
    return rc;
}

int32_t fm__nfa_pattern(fm__nfa *n, int32_t from, const char *text, size_t len, fm__spelling s,
                        fm_status *rc)
{
    ahead   a = {.text = text, .len = len, .at = len && *text == '^', .spelling = s};
    fm__nfa t;
    if (!is_ahead(&a) || (s == FM__IN_STRING && !a.at))
        return fm__nfa_regex(n, from, text, len, s, rc);
    *rc = build_rest(&t, a);
    if (*rc == FM_OK && s == FM__IN_STRING) *rc = spell_once(&t);
    while (*rc == FM_OK && is_ahead(&a)) *rc = apply_one(&a, &t);
    if (*rc != FM_OK) return from;
    from = fm__nfa_append(n, from, &t);
    fm__nfa_fini(&t);
    return from;
}
