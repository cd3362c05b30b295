/* SPDX-License-Identifier: Apache-2.0 */
/* A text as a JSON string.  "<" is escaped, too: inside a page no text ends a script. */
#ifndef FM_TRACE_REPORT_QUOTED_H
#define FM_TRACE_REPORT_QUOTED_H

#include <stdio.h>

static inline void fm__put_quoted(FILE *to, const char *text)
{
    putc('"', to);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        if (*c < 0x20 || *c == '"' || *c == '\\' || *c == '<' || *c >= 0x7f)
            fprintf(to, "\\u%04x", *c);
        else
            putc(*c, to);
    putc('"', to);
}

#endif
