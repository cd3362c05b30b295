/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server's records: server, connection, exchange (a request and its reply). */
#ifndef FM_NET_HTTP_INTERNAL_H
#define FM_NET_HTTP_INTERNAL_H

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>

#include "net/http.h"
#include "net/http_body.h"
#include "net/http_head.h"
#include "net/loop_internal.h"

struct ssl_ctx_st;

typedef enum {
    FM__READ_HEAD,
    FM__READ_BODY,
    FM__HANDLING,  /* the handler has it, nothing sent yet */
    FM__STREAMING, /* a reply in pieces */
    FM__FLUSHING,  /* the last bytes, then close */
    FM__LINGERING, /* refused: swallow what still comes, so that the client reads why */
    FM__CUT,       /* freed by the function that is working on it */
} fm__phase;

typedef struct fm__conn {
    fm_exchange         x; /* first: an exchange is its connection */
    fm_http            *http;
    struct bufferevent *bev;
    struct event       *deadline;
    fm__phase           phase;
    fm_http_head        head;
    char               *head_text; /* owned; what head points into */
    fm_http_body        body;
    char               *body_text; /* owned, or taken */
    size_t              scanned;   /* of the input: no empty line up to here */
    int                 timing;    /* the head has begun to arrive */
    int                 linger;
    double              lingers_since; /* fm_now() */
    int                 working; /* inside fm__conn_advance */
    char                peer[64];
    struct fm__conn    *prev, *next;
} fm__conn;

struct fm_http {
    fm_http_options        opt;
    char                  *host; /* owned copy */
    fm_loop               *loop;
    int                    fd; /* bound; the listener's once there is one */
    int                    port;
    struct evconnlistener *listener;
    struct event          *retry; /* accepting again after running out of descriptors */
    struct ssl_ctx_st     *tls;
    fm__conn              *conns;
    int                    n_conn, n_exchange, draining;
    size_t                 held_bytes;
    long                   date_of; /* the second that `date` is about */
    char                   date[40];
};

fm_status fm__tls_open(struct ssl_ctx_st **out, const char *cert_file, const char *key_file);
void      fm__tls_close(struct ssl_ctx_st *tls);
struct bufferevent *fm__tls_accept(struct event_base *base, int fd, struct ssl_ctx_st *tls);

void fm__conn_accept(fm_http *h, int fd, const char *peer); /* takes the descriptor */
void fm__conn_advance(fm__conn *c);                         /* reads on as far as it can */
void fm__conn_cut(fm__conn *c);                             /* closes now */
void fm__conn_refuse(fm__conn *c, int status, const char *why);
void fm__conn_set_deadline(fm__conn *c, double seconds); /* 0: none */
void fm__conn_reset(fm__conn *c);                        /* forgets the request */
void fm__http_conn_closed(fm_http *h);                   /* one less */

#endif
