/* SPDX-License-Identifier: Apache-2.0 */
/* A server behind this one: its address, kept connections and requests under way. */
#ifndef FM_NET_UPSTREAM_INTERNAL_H
#define FM_NET_UPSTREAM_INTERNAL_H

#include <event2/bufferevent.h>

#include "net/lookup.h"
#include "net/loop_internal.h"
#include "net/upstream.h"

enum { FM__MAX_IDLE = 256 }; /* kept connections */

typedef struct fm__idle {
    fm_upstream        *upstream;
    struct bufferevent *bev;
    struct fm__idle    *prev, *next;
} fm__idle;

struct fm_upstream {
    fm_loop           *loop;
    struct ssl_ctx_st *tls;                       /* NULL: plain http */
    char              *host, *authority, *prefix; /* prefix: "" or "/path" */
    fm_lookup         *lookup;
    fm__idle          *idle; /* the latest first */
    int                n_idle;
    fm_fetch          *fetches;
    int                n_fetch;
};

struct bufferevent *fm__upstream_new_connection(fm_upstream *u); /* not connected yet; or NULL */
struct bufferevent *fm__upstream_take_idle(fm_upstream *u);      /* or NULL */
void                fm__upstream_keep(fm_upstream *u, struct bufferevent *bev);

#endif
