/* SPDX-License-Identifier: Apache-2.0 */
/* Rules that call each other, each a nondeterministic automaton over bytes.
 *
 *     rule value:  (start) ──"["──> ( ) ──call ws──> ( ) ──call value──> … (end)
 *
 * Built from left to right: an add function takes the state it continues from
 * and returns the state after.  When the limit is reached the automaton is
 * `full`, further additions do nothing and the builder fails at its end.
 * Read-only once built. */
#ifndef FM_LLM_GRAMMAR_NFA_H
#define FM_LLM_GRAMMAR_NFA_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* The last three are about white space (layout.h): a container begins, it ends, a gap. */
typedef enum {
    FM__EDGE_BYTE,
    FM__EDGE_EMPTY,
    FM__EDGE_CALL,
    FM__EDGE_TOKEN,
    FM__EDGE_OPEN,
    FM__EDGE_SHUT,
    FM__EDGE_GAP
} fm__edge_kind;

typedef struct {
    int32_t       to;
    int32_t       next; /* of the same state; -1: the last */
    int32_t       what; /* the rule called, the token, or the fm__gap */
    unsigned char kind, lo, hi;
} fm__edge;

typedef struct {
    int32_t start, end; /* the end has no edges */
    int     line;       /* of an EBNF text, for messages; 0: it comes from elsewhere */
} fm__rule;

/* How characters are written: as they are, or inside a JSON string. */
typedef enum { FM__PLAIN, FM__IN_STRING } fm__spelling;

/* Marks of states: inside an array with uniqueItems whose strings must be remembered
 * (seen_items.h), inside such a string, behind its opening quote, and inside such an array of
 * numbers.  FM__IN_SCARCE: in such a string that cannot go on from every beginning.  FM__IN_VALUES:
 * inside an array of other values, with FM__BEFORE_COMMA where one can be complete. */
enum {
    FM__IN_UNIQUE    = 1,
    FM__IN_ITEM      = 2,
    FM__IN_NUMBERS   = 4,
    FM__IN_SCARCE    = 8,
    FM__IN_VALUES    = 16,
    FM__BEFORE_COMMA = 32
};
enum { FM__MAX_UNIQUE_DIGITS = 17 }; /* before the point of these numbers */

/* White space of JSON: one separator or indentation (layout.h), none, or a rule of the caller's. */
typedef enum { FM__SPACING_LAYOUT, FM__SPACING_NONE, FM__SPACING_RULE } fm__spacing;

/* Rules that are made once and called from many places; -1: not made yet. */
typedef struct {
    int32_t dot[2]; /* by fm__spelling */
    int32_t string_char, string_char_once, string, comma, colon, number, integer, value, object;
} fm__shared_rules;

typedef struct {
    int32_t         *first; /* [n_state] edge, or -1 */
    char            *ends;  /* [n_state] it is the end of a rule */
    char            *mark;  /* [n_state] of those above */
    int              has_marks;
    int32_t          n_state, cap_state;
    fm__edge        *edge;
    int32_t          n_edge, cap_edge;
    fm__rule        *rule;
    int32_t          n_rule, cap_rule;
    int              full;
    fm__spacing      spacing;
    int32_t          space_rule; /* FM__SPACING_RULE: in every gap */
    fm__shared_rules shared;
} fm__nfa;

void fm__nfa_fini(fm__nfa *n);

/* An automaton with an empty rule 0, and the end of its building: what was added ends at `to`. */
void fm__nfa_begin(fm__nfa *n);
void fm__nfa_close(fm__nfa *n, int32_t to);

int32_t fm__nfa_state(fm__nfa *n);
int32_t fm__nfa_rule(fm__nfa *n);                          /* a new rule, without edges */
void    fm__nfa_mark(fm__nfa *n, int32_t first, int mark); /* states made from `first` on */

void    fm__nfa_empty(fm__nfa *n, int32_t from, int32_t to);
int32_t fm__nfa_layout(fm__nfa *n, int32_t from, fm__edge_kind kind, int32_t what);
void    fm__nfa_bytes(fm__nfa *n, int32_t from, int32_t to, int lo, int hi);
int32_t fm__nfa_call(fm__nfa *n, int32_t from, int32_t rule);
int32_t fm__nfa_token(fm__nfa *n, int32_t from, int32_t token);
int32_t fm__nfa_text(fm__nfa *n, int32_t from, const char *text, size_t len);
/* The same below a state that only texts added so leave: equal beginnings are shared. */
int32_t fm__nfa_shared_text(fm__nfa *n, int32_t root, const char *text);
int32_t fm__nfa_word(fm__nfa *n, int32_t from, const char *text); /* NUL-terminated */

/* chars.c: one character of [lo, hi], between states that exist. */
void fm__nfa_chars(fm__nfa *n, int32_t from, int32_t to, uint32_t lo, uint32_t hi, fm__spelling s);
int32_t fm__nfa_dot(fm__nfa *n, int32_t from, fm__spelling s); /* any that ends no line */
/* Of a JSON string: at least `min` and at most `max` characters; max < 0: any number. */
int32_t fm__nfa_string_chars(fm__nfa *n, int32_t from, int64_t min, int64_t max);
int32_t fm__nfa_string_char_once(fm__nfa *n, int32_t from); /* one, in its only spelling */

/* Does an edge lead on without a byte or a token?  One of a gap may. */
static inline int fm__edge_is_silent(const fm__edge *e)
{
    return e->kind != FM__EDGE_BYTE && e->kind != FM__EDGE_TOKEN && e->kind != FM__EDGE_CALL;
}

/* json_space.c: brackets and separators with the white space that belongs to them.  A container
 * with elements is open ... comma ... shut, one without is none. */
int32_t fm__nfa_open(fm__nfa *n, int32_t from, char bracket);
int32_t fm__nfa_shut(fm__nfa *n, int32_t from, char bracket);
int32_t fm__nfa_none(fm__nfa *n, int32_t from, const char *brackets);
int32_t fm__nfa_comma(fm__nfa *n, int32_t from);
int32_t fm__nfa_colon(fm__nfa *n, int32_t from);
int32_t fm__nfa_space_first(fm__nfa *n, int32_t from); /* before a whole text */

/* json_value.c: JSON without a schema. */
int32_t fm__nfa_string(fm__nfa *n, int32_t from);
int32_t fm__nfa_number(fm__nfa *n, int32_t from);
int32_t fm__nfa_digits(fm__nfa *n, int32_t from, int min, int max);
int32_t fm__nfa_integer(fm__nfa *n, int32_t from);
int32_t fm__nfa_value(fm__nfa *n, int32_t from);
int32_t fm__nfa_object(fm__nfa *n, int32_t from);

/* regex.c: the expression, matched as a whole (FM__PLAIN) or, as a schema's
 * pattern (FM__IN_STRING), anywhere unless it is anchored.  *rc says whether it could be read. */
int32_t fm__nfa_regex(fm__nfa *n, int32_t from, const char *text, size_t len, fm__spelling s,
                      fm_status *rc);

/* regex_ahead.c: the same, with (?=...) and (?!...) behind the ^ of a pattern or at the beginning
 * of an expression. */
int32_t fm__nfa_pattern(fm__nfa *n, int32_t from, const char *text, size_t len, fm__spelling s,
                        fm_status *rc);

/* ebnf.c: rule 0 becomes the rule "root".  FM_E_FORMAT and FM_E_NOSUP name the line. */
fm_status fm__nfa_ebnf(fm__nfa *n, const char *text, size_t len);

/* nfa_check.c: removes what leads nowhere and what no text comes by, finds rules
 * that call themselves before anything is written.  Rule 0 is the whole text. */
fm_status fm__nfa_finish(fm__nfa *n);

#endif
