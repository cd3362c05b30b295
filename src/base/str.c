/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

void fm_str_reserve(fm_str *s, size_t more)
{
    if (s->len + more + 1 <= s->cap) return;
    size_t cap = s->cap ? s->cap * 2 : 64;
    while (cap < s->len + more + 1) cap *= 2;
    char *p = realloc(s->text, cap);
    FM_BUG_UNLESS(p != NULL);
    s->text = p;
    s->cap  = cap;
}

void fm_str_add(fm_str *s, const char *bytes, size_t n)
{
    fm_str_reserve(s, n);
    if (n) memcpy(s->text + s->len, bytes, n);
    s->len += n;
    s->text[s->len] = 0;
}

void fm_str_puts(fm_str *s, const char *text)
{
    fm_str_add(s, text, strlen(text));
}

void fm_str_printf(fm_str *s, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    const int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    FM_BUG_UNLESS(n >= 0);
    fm_str_reserve(s, (size_t)n);
    vsnprintf(s->text + s->len, (size_t)n + 1, fmt, again);
    va_end(again);
    s->len += (size_t)n;
}

void fm_str_clear(fm_str *s)
{
    s->len = 0;
    if (s->text) s->text[0] = 0;
}

void fm_str_fini(fm_str *s)
{
    free(s->text);
    *s = (fm_str){0};
}
