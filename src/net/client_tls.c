/* SPDX-License-Identifier: Apache-2.0 */
#include "net/client_tls.h"

#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

fm_status fm__client_tls_open(struct ssl_ctx_st **out)
{
    SSL_CTX *tls = SSL_CTX_new(TLS_client_method());
    if (!tls) return fm_fail(FM_E_OOM, "TLS");
    SSL_CTX_set_min_proto_version(tls, TLS1_2_VERSION);
    SSL_CTX_set_verify(tls, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_default_verify_paths(tls);
    *out = tls;
    return FM_OK;
}

void fm__client_tls_close(struct ssl_ctx_st *tls) { SSL_CTX_free(tls); }

struct bufferevent *fm__client_tls_begin(struct event_base *base, struct ssl_ctx_st *tls,
                                         const char *host)
{
    SSL *ssl = SSL_new(tls);
    if (!ssl) return NULL;
    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) != 1) { /* a name, not a number */
        SSL_set1_host(ssl, host);
        SSL_set_tlsext_host_name(ssl, host);
    }
    struct bufferevent *b = bufferevent_openssl_socket_new(
        base, -1, ssl, BUFFEREVENT_SSL_CONNECTING, BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
    /* Servers often close without saying so; that is an end like any other. */
    if (b)
        bufferevent_openssl_set_allow_dirty_shutdown(b, 1);
    else
        SSL_free(ssl);
    return b;
}
