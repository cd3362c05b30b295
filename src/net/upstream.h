/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP/1.1 server behind this process, seen from an event loop: requests are
 * sent on kept connections, replies are handed on piece by piece as they arrive.
 *
 *     fm_upstream_send ──> connect ──> head() ──> data(), data(), … ──> done()
 *                             └─ a kept connection, where one is idle
 *
 * Everything happens on the loop's thread.  A fetch is one request and its
 * reply; it is over when done() is called or when it is cancelled. */
#ifndef FM_NET_UPSTREAM_H
#define FM_NET_UPSTREAM_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "net/http_head.h"
#include "net/loop.h"

typedef struct fm_upstream fm_upstream;
typedef struct fm_fetch    fm_fetch;

/* Pointers are borrowed until fm_upstream_send returns. */
typedef struct {
    const char *method, *target; /* target: path and query, as they go on the wire */
    const char *headers;         /* further lines, each with CR LF; NULL: none */
    const char *body[2];         /* sent one behind the other */
    size_t      body_len[2];
    double      connect_seconds; /* 0: no limit, as below */
    double      head_seconds;    /* until the reply's head is there, from the send on */
    double      idle_seconds;    /* without a byte of the reply's body */

    /* A head is passed once; the fields are valid during the call. */
    void (*head)(void *ctx, int status, const fm_http_head *h);
    void (*data)(void *ctx, const char *bytes, size_t n);
    /* why: NULL, the reply is complete; else what went wrong, in a few words. */
    void (*done)(void *ctx, const char *why);
    void *ctx;
} fm_fetch_ask;

/* "http://host:port" or https, with or without a path in front of all targets.  FM_E_ARG says
 * what is wrong with it.  Names are looked up beside the loop (lookup.h), again after failures;
 * until one is known requests fail. */
fm_status   fm_upstream_create(fm_upstream **out, fm_loop *l, const char *url);
void        fm_upstream_destroy(fm_upstream *u); /* NULL is fine; what is under way is cancelled */
int         fm_upstream_is_pending(fm_upstream *u);      /* its name is still looked up */

/* Never calls back before it returns.  NULL: out of memory or descriptors. */
fm_fetch *fm_upstream_send(fm_upstream *u, const fm_fetch_ask *ask);
void      fm_fetch_cancel(fm_fetch *f);            /* closes its connection; no further callback */
void      fm_fetch_pause(fm_fetch *f, int paused); /* reads no more of the reply for now */
int       fm_upstream_n_fetch(const fm_upstream *u);

#endif
