/* SPDX-License-Identifier: Apache-2.0 */
/* Grammars in EBNF, as XGrammar and llama.cpp (GBNF) write it:
 *
 *     root  ::= "[" item ("," item)* "]"   # comment
 *     item  ::= [a-z]+ | "\"" [^"\x0a]{1,20} "\"" | root
 *
 * A rule ends where the next begins, whatever the line ends.  Every group is a
 * rule without a name, so repeating one costs calls, not copies.  A rule that
 * begins with itself, A ::= A x | y, is read as A ::= y x*. */
#include <stdlib.h>
#include <string.h>

#include "json/read.h"
#include "llm/grammar/regex_internal.h"

enum { MAX_NESTING = 100, MAX_REPEAT = 10000 };

typedef struct {
    fm__regex   r;       /* text and place in it; reads sets and characters */
    json_t     *rules;   /* name -> rule */
    json_t     *defined; /* name -> line */
    json_t     *used;    /* name -> line of its first use */
    const char *own;     /* name of the rule being read, */
    size_t      own_len;
    int32_t     again;   /* ... and where a text of it is complete and may go on */
    int         line;    /* of the piece being read, */
    size_t      counted; /* ... with the line ends before this byte */
    int         depth;
} ebnf;

/* What can be repeated: a rule to call, or characters to be read (again). */
typedef struct {
    int32_t rule; /* -1: characters */
    size_t  begin;
} atom;

static int is_done(const ebnf *e)
{
    return e->r.rc != FM_OK || e->r.n->full;
}

static int peek(const ebnf *e)
{
    return e->r.at < e->r.len ? (unsigned char)e->r.text[e->r.at] : -1;
}

static int take(ebnf *e, char c)
{
    if (peek(e) != (unsigned char)c) return 0;
    e->r.at++;
    return 1;
}

static void skip_space(ebnf *e)
{
    for (int c; (c = peek(e)) >= 0; e->r.at++) {
        if (c == '#')
            while (peek(e) >= 0 && peek(e) != '\n') e->r.at++;
        if (peek(e) < 0 || !strchr(" \t\r\n", peek(e)) || !peek(e)) return;
    }
}

static int is_name_char(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

static size_t name_length(const ebnf *e, size_t at)
{
    size_t n = 0;
    while (at + n < e->r.len && is_name_char((unsigned char)e->r.text[at + n])) n++;
    return n;
}

/* Does a rule begin here: a name and ::= ? */
static int is_definition(const ebnf *e)
{
    size_t at = e->r.at + name_length(e, e->r.at);
    if (at == e->r.at) return 0;
    while (at < e->r.len && e->r.text[at] && strchr(" \t\r\n", e->r.text[at])) at++;
    return e->r.len - at >= 3 && !memcmp(e->r.text + at, "::=", 3);
}

static void count_lines(ebnf *e)
{
    for (; e->counted < e->r.at; e->counted++) e->line += e->r.text[e->counted] == '\n';
}

/* A rule by name, made when it is met first, used or defined. */
static int32_t rule_of(ebnf *e, const char *name, size_t len)
{
    const json_t *known = json_object_getn(e->rules, name, len);
    if (known) return (int32_t)json_integer_value(known);
    const int32_t rule = json_object_size(e->rules) ? fm__nfa_rule(e->r.n) : 0;
    json_object_setn_new(e->rules, name, len, json_integer(rule));
    return rule;
}

static int32_t new_group(ebnf *e)
{
    const int32_t rule = fm__nfa_rule(e->r.n);
    if (!e->r.n->full) e->r.n->rule[rule].line = e->line;
    return rule;
}

static int32_t read_alternatives(ebnf *e, int32_t from, int is_top);

/* Behind the parenthesis. */
static atom read_group(ebnf *e)
{
    const atom a = {.rule = new_group(e)};
    if (peek(e) == '=') fm__regex_fail(&e->r, FM_E_NOSUP, "look-ahead is not understood");
    if (++e->depth > MAX_NESTING) fm__regex_fail(&e->r, FM_E_NOSUP, "groups are nested too deep");
    if (is_done(e)) return a;
    const fm__rule r  = e->r.n->rule[a.rule];
    const int32_t  to = read_alternatives(e, r.start, 0);
    if (!is_done(e)) fm__nfa_empty(e->r.n, to, r.end);
    e->depth--;
    if (!take(e, ')')) fm__regex_fail(&e->r, FM_E_FORMAT, "a group is not closed");
    return a;
}

static atom read_reference(ebnf *e)
{
    const char  *name = e->r.text + e->r.at;
    const size_t len  = name_length(e, e->r.at);
    if (!json_object_getn(e->used, name, len))
        json_object_setn_new(e->used, name, len, json_integer(e->line));
    e->r.at += len;
    return (atom){.rule = rule_of(e, name, len)};
}

/* Behind the opening quote. */
static int32_t read_literal(ebnf *e, int32_t from)
{
    while (!is_done(e) && !take(e, '"')) {
        fm__charset set = {.n = 0};
        uint32_t    c   = 0;
        if (peek(e) < 0 || peek(e) == '\n') {
            fm__regex_fail(&e->r, FM_E_FORMAT, "a text is not closed by its \"");
            return from;
        }
        c = fm__regex_char(&e->r);
        if (c == '\\' && !fm__regex_escape(&e->r, &set, &c) && e->r.rc == FM_OK)
            fm__regex_fail(&e->r, FM_E_FORMAT, "this escape is not understood");
        fm__charset_add(&e->r, &set, c, c);
        from = fm__regex_set(&e->r, from, &set);
    }
    return from;
}

static int32_t read_characters(ebnf *e, int32_t from)
{
    if (take(e, '"')) return read_literal(e, from);
    if (take(e, '[')) return fm__regex_class(&e->r, from);
    const fm__charset any = {.range = {{0, FM__LAST_CHAR}}, .n = 1};
    if (take(e, '.')) return fm__regex_set(&e->r, from, &any);
    fm__regex_fail(&e->r, FM_E_FORMAT, "expected a text in quotes, a set, a group or a rule");
    return from;
}

/* One more of an atom; the first of characters has been read when `from` was left. */
static int32_t add_atom(ebnf *e, atom a, int32_t from)
{
    if (a.rule >= 0) return fm__nfa_call(e->r.n, from, a.rule);
    e->r.at = a.begin;
    return read_characters(e, from);
}

static int read_count(ebnf *e, int *out)
{
    const size_t began = e->r.at;
    int          x     = 0;
    while (peek(e) >= '0' && peek(e) <= '9' && x <= MAX_REPEAT)
        x = 10 * x + (e->r.text[e->r.at++] - '0');
    if (x > MAX_REPEAT) fm__regex_fail(&e->r, FM_E_NOSUP, "a repetition is too long");
    if (e->r.at > began) *out = x;
    return e->r.at > began;
}

typedef struct {
    int min, max; /* max < 0: any number */
} repeat;

/* Behind the opening brace. */
static repeat read_braces(ebnf *e)
{
    repeat q = {0, -1};
    skip_space(e);
    const int has_min = read_count(e, &q.min);
    skip_space(e);
    const int has_comma = take(e, ',');
    skip_space(e);
    const int has_max = has_comma && read_count(e, &q.max);
    skip_space(e);
    if (!has_comma) q.max = q.min;
    if (!(has_min || has_max) || !take(e, '}') || (q.max >= 0 && q.max < q.min))
        fm__regex_fail(&e->r, FM_E_FORMAT,
                       "a repetition is not of the form {m}, {m,}, {,n} or {m,n}");
    return q;
}

static repeat read_repeat(ebnf *e)
{
    if (take(e, '*')) return (repeat){0, -1};
    if (take(e, '+')) return (repeat){1, -1};
    if (take(e, '?')) return (repeat){0, 1};
    if (take(e, '{')) return read_braces(e);
    return (repeat){1, 1};
}

static atom read_atom(ebnf *e, int32_t from, int32_t *to)
{
    atom a = {.rule = -1, .begin = e->r.at};
    if (take(e, '('))
        a = read_group(e);
    else if (name_length(e, e->r.at))
        a = read_reference(e);
    else
        *to = read_characters(e, from);
    if (a.rule >= 0 && !is_done(e)) *to = fm__nfa_call(e->r.n, from, a.rule);
    return a;
}

static int32_t read_piece(ebnf *e, int32_t from)
{
    fm__nfa      *n     = e->r.n;
    const int32_t first = fm__nfa_state(n), end = fm__nfa_state(n);
    int32_t       last = first, at = first;
    fm__nfa_empty(n, from, first);
    const atom a = read_atom(e, first, &at);
    skip_space(e);
    const repeat q    = is_done(e) ? (repeat){1, 1} : read_repeat(e);
    const size_t done = e->r.at;
    const int    most = q.max > q.min ? q.max : q.min;
    if (q.min == 0) fm__nfa_empty(n, first, end);
    if (q.max == 0) return end;
    for (int i = 1; i < most && !is_done(e); i++) {
        if (i >= q.min) fm__nfa_empty(n, at, end);
        fm__nfa_empty(n, at, last = fm__nfa_state(n));
        at = add_atom(e, a, last);
    }
    if (e->r.rc == FM_OK) e->r.at = done;
    if (q.max < 0) fm__nfa_empty(n, at, last);
    fm__nfa_empty(n, at, end);
    return end;
}

/* The rule's own name, as the first piece of one of its alternatives and not repeated. */
static int take_own_name(ebnf *e)
{
    const size_t began = e->r.at, len = name_length(e, began);
    if (len != e->own_len || memcmp(e->r.text + began, e->own, len)) return 0;
    e->r.at += len;
    skip_space(e);
    if (peek(e) < 0 || !strchr("*+?{", peek(e)) || !peek(e)) return 1;
    e->r.at = began;
    return 0;
}

static int32_t read_sequence(ebnf *e, int32_t from, int is_top)
{
    skip_space(e);
    if (is_top && !is_definition(e) && take_own_name(e)) from = e->again;
    for (;;) {
        skip_space(e);
        count_lines(e);
        if (is_done(e) || peek(e) < 0 || peek(e) == '|' || peek(e) == ')') return from;
        if (is_definition(e)) return from;
        from = read_piece(e, from);
    }
}

static int32_t read_alternatives(ebnf *e, int32_t from, int is_top)
{
    const int32_t end = fm__nfa_state(e->r.n);
    if (is_top) e->again = end;
    do fm__nfa_empty(e->r.n, read_sequence(e, from, is_top), end);
    while (!is_done(e) && take(e, '|'));
    return end;
}

static void read_rule(ebnf *e)
{
    const size_t len = name_length(e, e->r.at);
    e->own           = e->r.text + e->r.at;
    e->own_len       = len;
    if (!is_definition(e)) {
        fm__regex_fail(&e->r, FM_E_FORMAT, "expected a rule: name ::= ...");
        return;
    }
    if (json_object_getn(e->defined, e->own, len)) {
        fm__regex_fail(&e->r, FM_E_FORMAT, "a rule is defined a second time");
        return;
    }
    json_object_setn_new(e->defined, e->own, len, json_integer(e->line));
    const int32_t rule = rule_of(e, e->own, len);
    if (e->r.n->full) return;
    const fm__rule r        = e->r.n->rule[rule];
    e->r.n->rule[rule].line = e->line;
    e->r.at += len;
    while (e->r.text[e->r.at] != ':') e->r.at++;
    e->r.at += strlen("::=");
    const int32_t to = read_alternatives(e, r.start, 1);
    if (!is_done(e)) fm__nfa_empty(e->r.n, to, r.end);
    if (peek(e) == ')') fm__regex_fail(&e->r, FM_E_FORMAT, "a ) without its (");
}

/* Every rule that is used must be defined. */
static fm_status check_used(const ebnf *e)
{
    const char *name;
    json_t     *line;
    json_object_foreach (e->used, name, line)
        if (!json_object_get(e->defined, name))
            return fm_fail(FM_E_FORMAT, "grammar, line %d: there is no rule \"%.80s\"",
                           (int)json_integer_value(line), name);
    if (!json_object_get(e->defined, "root"))
        return fm_fail(FM_E_FORMAT, "grammar: there is no rule \"root\"");
    return FM_OK;
}

static fm_status read_all(ebnf *e)
{
    rule_of(e, "root", strlen("root")); /* rule 0 */
    for (skip_space(e); !is_done(e) && peek(e) >= 0; skip_space(e)) {
        count_lines(e);
        read_rule(e);
    }
    if (e->r.rc != FM_OK || e->r.n->full) return e->r.rc;
    return check_used(e);
}

fm_status fm__nfa_ebnf(fm__nfa *n, const char *text, size_t len)
{
    ebnf      e  = {.r = {.n = n, .text = text, .len = len, .spelling = FM__PLAIN, .has_lines = 1},
                    .line    = 1,
                    .rules   = json_object(),
                    .defined = json_object(),
                    .used    = json_object()};
    fm_status rc = FM_OK;
    e.r.set_behind = malloc((len + 1) * sizeof *e.r.set_behind);
    if (!e.rules || !e.defined || !e.used || !e.r.set_behind) {
        rc = fm_fail(FM_E_OOM, "grammar");
    } else {
        memset(e.r.set_behind, 0xff, (len + 1) * sizeof *e.r.set_behind);
        rc = read_all(&e);
    }
    json_decref(e.rules);
    json_decref(e.defined);
    json_decref(e.used);
    free(e.r.set_behind);
    return rc;
}
