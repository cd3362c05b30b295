/* SPDX-License-Identifier: Apache-2.0 */
/* A request of the router's own to one worker, whose reply is read whole: health checks, the
 * cache feed, metrics.  The worker's API key goes with it.  The loop's thread alone. */
#ifndef FM_LLM_ROUTE_QUERY_H
#define FM_LLM_ROUTE_QUERY_H

#include <stddef.h>

#include "base/str.h"
#include "net/upstream.h"

struct fm_worker;

/* Pointers but ctx are borrowed until fm_query_send returns. */
typedef struct {
    const char *method, *target;
    const char *headers; /* further lines, each with CR LF; NULL: none */
    const char *body;
    size_t      body_len;
    double      seconds;    /* to connect, until the reply's head, and without a byte after it */
    size_t      most_bytes; /* a longer reply is a failure */

    /* why: NULL, status and reply are complete; else what went wrong.  The query may be freed
     * or sent anew by the call. */
    void (*done)(void *ctx, const char *why);
    void *ctx;
} fm_query_ask;

typedef struct {
    fm_fetch *fetch;  /* under way, or NULL */
    int       status; /* of the last reply; 0: none came */
    char      type[80];
    fm_str    reply; /* owned */

    size_t most_bytes;
    int    is_too_long;
    void (*done)(void *ctx, const char *why);
    void *ctx;
} fm_query; /* {0} was never sent */

/* Sends it; one under way is cancelled.  Never calls done() before it returns.  0: no memory or
 * descriptors, done() is not called. */
int  fm_query_send(fm_query *q, struct fm_worker *w, const fm_query_ask *ask);
void fm_query_fini(fm_query *q); /* cancels it; {0} again */

#endif
