/* SPDX-License-Identifier: Apache-2.0 */
/* White space of a JSON text, so that a model cannot go on with it for ever.
 *
 * A container is written on one line, with at most one space behind each comma,
 * or one element per line, each indented by its depth; what is on one line has
 * only containers on one line inside.  The unit of indentation (two or four
 * spaces or a tab) is the same in the whole text.
 *
 * A layout says where a text stands in this: an integer, part of a place
 * (states.h). */
#ifndef FM_LLM_GRAMMAR_LAYOUT_H
#define FM_LLM_GRAMMAR_LAYOUT_H

#include <stdint.h>

typedef int32_t fm__layout; /* 0: at the beginning */

/* Gaps where white space can be. */
typedef enum { FM__GAP_BEGIN, FM__GAP_COMMA, FM__GAP_END } fm__gap;

enum { FM__MAX_OPENINGS = 4 };

/* A container begins: the layouts it can have.  Returns how many. */
int fm__layout_open(fm__layout at, fm__layout out[FM__MAX_OPENINGS]);
/* It ends. */
fm__layout fm__layout_shut(fm__layout at);

int fm__layout_is_inline(fm__layout at); /* of a container's gaps: no line ends in them */
/* A line ends in a gap of an indented container: the layout behind it, where the indentation of
 * the next line is due. */
fm__layout fm__layout_end_line(fm__layout at, fm__gap gap);

/* The character of indentation that is due, or 0; and the layout behind it. */
char       fm__layout_due(fm__layout at);
fm__layout fm__layout_indent(fm__layout at);

#endif
