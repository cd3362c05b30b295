/* SPDX-License-Identifier: Apache-2.0 */
/* A string that grows.  {0} is an empty one; text is NUL-terminated whenever
 * it is not NULL.  Running out of memory here ends the process: strings are
 * small and bounded by what was read. */
#ifndef FM_BASE_STR_H
#define FM_BASE_STR_H

#include <stddef.h>

typedef struct {
    char  *text; /* owned; may hold NUL bytes, `len` counts */
    size_t len, cap;
} fm_str;

void fm_str_add(fm_str *s, const char *bytes, size_t n);
void fm_str_puts(fm_str *s, const char *text);
void fm_str_printf(fm_str *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void fm_str_reserve(fm_str *s, size_t more); /* adding up to `more` bytes allocates nothing */
void fm_str_clear(fm_str *s); /* keeps the memory */
void fm_str_fini(fm_str *s);

#endif
