/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens that are cut out of the text before it is split: leftmost first,
 * the longest of those that begin at the same byte. */
#ifndef FM_LLM_TEXT_ADDED_INTERNAL_H
#define FM_LLM_TEXT_ADDED_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { FM__MAX_ADDED_BYTES = 512 }; /* of one token: bounds the work per byte of text */

typedef struct {
    char   *text; /* owned */
    size_t  n;
    int32_t id;
} fm__added_token;

typedef struct {
    fm__added_token *token; /* [n] owned; sorted by bytes once sealed */
    int              n, cap;
    unsigned char    begins[256]; /* does a token begin with this byte? */
} fm__added;

fm_status fm__added_put(fm__added *a, const char *text, size_t n, int32_t id);
void      fm__added_seal(fm__added *a); /* after the last put, before the first find */
void      fm__added_fini(fm__added *a);

typedef struct {
    size_t  begin, end;
    int32_t id;
} fm__added_match;

/* The first token in text[from..n); 0: none. */
int     fm__added_find(const fm__added *a, const char *text, size_t n, size_t from,
                       fm__added_match *out);
int32_t fm__added_id(const fm__added *a, const char *text, size_t n); /* -1: none */

#endif
