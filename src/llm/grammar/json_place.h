/* SPDX-License-Identifier: Apache-2.0 */
/* Where a JSON value stands, byte by byte from its beginning: how many containers are open, and
 * whether a string is. */
#ifndef FM_LLM_GRAMMAR_JSON_PLACE_H
#define FM_LLM_GRAMMAR_JSON_PLACE_H

#include <stdint.h>

typedef struct {
    int32_t depth;
    char    in_string, is_escaped;
} fm__json_place;

static inline int fm__json_is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* White space between tokens of JSON, which is no part of a value. */
static inline int fm__json_is_gap(const fm__json_place *p, char c)
{
    return !p->in_string && fm__json_is_space(c);
}

/* Does this byte, of the array around the value, end it? */
static inline int fm__json_ends_value(const fm__json_place *p, char c)
{
    return !p->depth && !p->in_string && (c == ',' || c == ']');
}

static inline void fm__json_byte(fm__json_place *p, char c)
{
    if (p->is_escaped)
        p->is_escaped = 0;
    else if (p->in_string) {
        p->is_escaped = c == '\\';
        p->in_string  = c != '"';
    } else {
        p->in_string = c == '"';
        p->depth += (c == '{' || c == '[') - (c == '}' || c == ']');
    }
}

#endif
