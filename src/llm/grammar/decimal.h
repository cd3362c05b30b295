/* SPDX-License-Identifier: Apache-2.0 */
/* A JSON number in decimal notation, so that bounds such as 0.1 are compared
 * digit by digit and not as their binary neighbours. */
#ifndef FM_LLM_GRAMMAR_DECIMAL_H
#define FM_LLM_GRAMMAR_DECIMAL_H

#include <jansson.h>
#include <stdint.h>

enum { FM__MAX_FRACTION = 344 }; /* digits behind the point of any double, written shortest */

typedef struct {
    int      is_negative;
    int      is_huge; /* at or beyond 2^63 either way; then the rest says nothing */
    uint64_t whole;   /* at most 2^63 */
    char     fraction[FM__MAX_FRACTION + 1]; /* without zeros at its end */
    int      n_fraction;
} fm__decimal;

/* A real is taken as the shortest decimal that reads back as it. */
void fm__decimal_read(fm__decimal *d, const json_t *number);
void fm__decimal_of_integer(fm__decimal *d, int64_t x);

/* < 0, 0, > 0.  Neither is huge. */
int fm__decimal_compare(const fm__decimal *a, const fm__decimal *b);

#endif
