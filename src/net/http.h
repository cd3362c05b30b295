/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP/1.1 server on a loop, made for long streamed replies.
 *
 *     accept ──> read head ──admit()──> read body ──handle()──> reply or stream ──┐
 *                   ^                                                             │
 *                   └───────────────────────── keep-alive ────────────────────────┘
 *
 * libevent's own evhttp stops reading while a reply is made and so cannot see
 * the client leave, bounds neither the time of a whole request nor the unread
 * output of a slow reader, and answers its own errors in HTML; hence this room
 * stands on bufferevents.
 *
 * Everything happens on the loop's thread.  An exchange is one request and
 * its reply; the handler owns it until it has ended the reply, a write has
 * failed, or gone() was called: then it must not be touched again. */
#ifndef FM_NET_HTTP_H
#define FM_NET_HTTP_H

#include <stddef.h>

#include "base/status.h"
#include "base/str.h"
#include "net/loop.h"

typedef struct fm_http fm_http;

typedef struct {
    const char *method, *path, *query, *peer; /* borrowed; path is percent-decoded */
    const char *body;                         /* [body_len] and a NUL */
    size_t      body_len;
    double      began;      /* fm_now() when its head was complete, */
    double      received;   /* and its body */
    int         status;     /* of the reply, 0 before it begins */
    size_t      sent_bytes; /* of the reply's body */
    char        request_id[129]; /* the handler's; not "": the reply carries it as x-request-id */
    const char *always;     /* header lines of its reply, whatever it is; the handler's, or NULL */
    void       *user;       /* the handler's */
} fm_exchange;

typedef struct {
    const char *host;
    int         port; /* 0: any free one */
    const char *cert_file, *key_file; /* PEM; NULL: no TLS */
    int         max_connections;
    size_t      max_head_bytes, max_body_bytes;
    size_t      max_held_bytes;   /* bodies of all unanswered requests together; four at least */
    size_t      max_unread_bytes; /* of one reply: a slower reader is cut off */
    double      idle_seconds;     /* between requests */
    double      head_seconds;     /* to send a head */
    double      body_seconds;     /* to send a body, plus a second per 64 KiB */
    double      stall_seconds;    /* without the client reading anything */

    /* Called for a request that has a body, before any of it is read or "100 Continue" is sent; or
     * NULL.  Returns 1 if it refused the request and replied; the connection closes when the client
     * has had time to read the reply. */
    int (*admit)(void *ctx, fm_exchange *x);
    void (*handle)(void *ctx, fm_exchange *x);
    void (*gone)(void *ctx, fm_exchange *x);  /* the client left before the reply ended */
    void (*ended)(void *ctx, const fm_exchange *x); /* after every exchange, for logs; or NULL */
    /* The body of a refusal made here (bad syntax, too large, too slow). */
    void (*refusal)(void *ctx, const fm_exchange *x, int status, const char *why, fm_str *body);
    void *ctx;
} fm_http_options;

/* Limits that suit an API on a trusted or half-trusted network. */
fm_http_options fm_http_options_default(void);

/* Binds the address and reads the certificate, but does not listen yet. */
fm_status fm_http_create(fm_http **out, fm_loop *l, const fm_http_options *opt);
fm_status fm_http_listen(fm_http *h);
int       fm_http_port(const fm_http *h);
int       fm_http_n_connection(const fm_http *h);
int       fm_http_n_exchange(const fm_http *h); /* handled, not ended */
void      fm_http_drain(fm_http *h);   /* no new connection, idle ones close, replies end */
void      fm_http_destroy(fm_http *h); /* NULL is fine; cuts off what is left, without gone() */

const char *fm_exchange_header(const fm_exchange *x, const char *name); /* or NULL */
char       *fm_exchange_take_body(fm_exchange *x); /* the caller frees it; NULL if taken or empty */

/* `more` is further header lines, each ending in CR LF, or NULL. */
void fm_exchange_reply(fm_exchange *x, int status, const char *type, const char *more,
                       const void *body, size_t len);

/* A reply in pieces.  FM_E_FULL: the client reads too slowly; it was cut off
 * and the exchange is over, without gone().  What counts is what was unread
 * before, so a piece may have any size. */
void      fm_exchange_begin(fm_exchange *x, int status, const char *type, const char *more);
fm_status fm_exchange_write(fm_exchange *x, const void *bytes, size_t len);
size_t    fm_exchange_unread(const fm_exchange *x); /* bytes that still wait for the client */
void      fm_exchange_end(fm_exchange *x);
void      fm_exchange_cut(fm_exchange *x); /* closes now: the client sees that more was to come */

#endif
