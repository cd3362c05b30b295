/* SPDX-License-Identifier: Apache-2.0 */
/* A client of one HTTP server: any number of calls in flight on one event
 * loop, streamed answers event by event with the time each arrived.
 *
 *     send ──> connection (a used one, or new) ──> event, event, … ──> done
 *
 * One thread owns a client; callbacks run inside fm_client_run() and may send
 * further calls.  Connections are kept and used again. */
#ifndef FM_NET_CLIENT_H
#define FM_NET_CLIENT_H

#include <stddef.h>

#include "base/status.h"

typedef struct fm_client fm_client;

/* How a call ended; borrowed, valid during the callback. */
typedef struct {
    int         status; /* HTTP's; 0: no whole reply, `why` says why */
    const char *body;   /* NUL-terminated; empty where events were delivered */
    size_t      body_len;
    double      sent, ended; /* fm_now() */
    const char *why;         /* NULL, or one sentence */
} fm_client_reply;

/* All pointers are borrowed; path and body until `done` returns. */
typedef struct {
    const char *path; /* behind the base URL: "/generate" */
    const char *body; /* JSON to POST; NULL: GET */
    size_t      body_len;
    /* Called for each event of a stream; NULL: the body is collected.  The body of a reply
     * with another status than 200 is collected in any case. */
    void (*event)(void *ctx, const char *data, size_t len, double now);
    void (*done)(void *ctx, const fm_client_reply *reply);
    void *ctx;
} fm_client_call;

/* "http://127.0.0.1:30000" or https, with or without a path.  FM_E_ARG says what is
 * wrong with it; nothing is connected yet.  A call fails when no byte has arrived for
 * `timeout` seconds. */
fm_status fm_client_create(fm_client **out, const char *base_url, double timeout);
void      fm_client_destroy(fm_client *c); /* NULL is fine; not inside a callback */

void fm_client_header(fm_client *c, const char *name, const char *value); /* on later calls */

/* `done` follows, perhaps before this returns; not when this fails. */
fm_status fm_client_send(fm_client *c, const fm_client_call *call);
fm_status fm_client_after(fm_client *c, double seconds, void (*fn)(void *ctx), void *ctx);

/* Until no call and no timer is left.  FM_E_IO: the event loop failed. */
fm_status fm_client_run(fm_client *c);

#endif
