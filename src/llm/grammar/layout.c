/* SPDX-License-Identifier: Apache-2.0 */
/* The bits of a layout, from the lowest: 7 of the indentation that is due, 2 of
 * the unit, 5 of the depth of indented containers, 17 of the depth of those on
 * one line. */
#include "llm/grammar/layout.h"

enum { UNIT_AT = 7, DEPTH_AT = 9, INLINE_AT = 14 };
enum { DUE_MASK = 127, UNIT_MASK = 3, DEPTH_MASK = 31, INLINE_MASK = (1 << 17) - 1 };
enum { NO_UNIT, TWO_SPACES, FOUR_SPACES, TAB, N_UNIT };
enum { MAX_INDENTED = 16 }; /* deeper containers are on one line */

static int unit_of(fm__layout at)
{
    return at >> UNIT_AT & UNIT_MASK;
}

static int depth_of(fm__layout at)
{
    return at >> DEPTH_AT & DEPTH_MASK;
}

static int inline_depth_of(fm__layout at)
{
    return at >> INLINE_AT & INLINE_MASK;
}

int fm__layout_is_inline(fm__layout at)
{
    return inline_depth_of(at) > 0;
}

int fm__layout_open(fm__layout at, fm__layout out[FM__MAX_OPENINGS])
{
    int n = 0;
    if (inline_depth_of(at) == INLINE_MASK) return out[0] = at, 1; /* for ever on one line */
    out[n++] = at + (1 << INLINE_AT);
    if (fm__layout_is_inline(at) || depth_of(at) == MAX_INDENTED) return n;
    if (unit_of(at) != NO_UNIT)
        out[n++] = at + (1 << DEPTH_AT);
    else
        for (int unit = TWO_SPACES; unit < N_UNIT; unit++)
            out[n++] = at + (1 << DEPTH_AT) + (unit << UNIT_AT);
    return n;
}

fm__layout fm__layout_shut(fm__layout at)
{
    if (inline_depth_of(at) == INLINE_MASK) return at;
    if (fm__layout_is_inline(at)) return at - (1 << INLINE_AT);
    return depth_of(at) ? at - (1 << DEPTH_AT) : at;
}

fm__layout fm__layout_end_line(fm__layout at, fm__gap gap)
{
    static const int width[N_UNIT] = {0, 2, 4, 1};
    return at + width[unit_of(at)] * (depth_of(at) - (gap == FM__GAP_END));
}

char fm__layout_due(fm__layout at)
{
    if (!(at & DUE_MASK)) return 0;
    return unit_of(at) == TAB ? '\t' : ' ';
}

fm__layout fm__layout_indent(fm__layout at)
{
    return at - 1;
}
