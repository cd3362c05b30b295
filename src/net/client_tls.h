/* SPDX-License-Identifier: Apache-2.0 */
/* TLS of a client's connections.  A server's certificate must be issued for the host name and chain
 * to a CA that this machine trusts or SSL_CERT_FILE names. */
#ifndef FM_NET_CLIENT_TLS_H
#define FM_NET_CLIENT_TLS_H

#include "base/status.h"

struct bufferevent;
struct event_base;
struct ssl_ctx_st;

fm_status fm__client_tls_open(struct ssl_ctx_st **out);
void      fm__client_tls_close(struct ssl_ctx_st *tls); /* NULL is fine */

/* For one connection that is still to be made; owned by it.  NULL: no memory. */
struct bufferevent *fm__client_tls_begin(struct event_base *base, struct ssl_ctx_st *tls,
                                         const char *host);

#endif
