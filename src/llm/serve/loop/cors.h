/* SPDX-License-Identifier: Apache-2.0 */
/* Which pages of other sites may read the replies (--cors-origins). */
#ifndef FM_LLM_SERVE_LOOP_CORS_H
#define FM_LLM_SERVE_LOOP_CORS_H

#include "net/http.h"

enum { FM__MAX_ORIGINS = 64 };

typedef struct {
    char *origin[FM__MAX_ORIGINS]; /* [n] owned; "*": any */
    char *lines[FM__MAX_ORIGINS];  /* [n] owned: the header lines for it */
    int   n;
} fm__cors;

/* A list with commas; NULL: none.  FM_E_ARG: one of them cannot be an origin. */
fm_status fm__cors_init(fm__cors *c, const char *list);
void      fm__cors_fini(fm__cors *c);

/* Is it one of the list? */
int fm__cors_allows(const fm__cors *c, const char *origin);

/* Gives the exchange its header lines.  1: it was the browser's question
 * beforehand, and is answered. */
int fm__cors_handle(const fm__cors *c, fm_exchange *x);

#endif
