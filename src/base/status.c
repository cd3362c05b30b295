/* SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static _Thread_local char why[1024];

const char *fm_status_text(fm_status s)
{
    switch (s) {
#define CASE(name, code, text)                                                                     \
    case FM_##name: return text;
        FM_STATUS_MAP(CASE)
#undef CASE
    }
    return "unknown status";
}

const char *fm_why(void)
{
    return why;
}

fm_status fm_fail(fm_status s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    return s;
}

_Noreturn void fm_bug(const char *file, int line, const char *what)
{
    fprintf(stderr, "fathom: bug at %s:%d: %s does not hold\n", file, line, what);
    abort();
}
