/* SPDX-License-Identifier: Apache-2.0 */
/* TLS under the bufferevents, by OpenSSL. */
#include <event2/bufferevent_ssl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "net/http_internal.h"

static fm_status complain(SSL_CTX *tls, const char *what, const char *file)
{
    char why[160];
    ERR_error_string_n(ERR_get_error(), why, sizeof why);
    SSL_CTX_free(tls);
    return fm_fail(FM_E_IO, "%s %s: %s", what, file, why);
}

fm_status fm__tls_open(struct ssl_ctx_st **out, const char *cert_file, const char *key_file)
{
    if (!key_file) key_file = cert_file; /* one PEM may hold both */
    SSL_CTX *tls = SSL_CTX_new(TLS_server_method());
    if (!tls) return fm_fail(FM_E_OOM, "TLS");
    SSL_CTX_set_min_proto_version(tls, TLS1_2_VERSION);
    SSL_CTX_set_mode(tls, SSL_MODE_RELEASE_BUFFERS);
    if (SSL_CTX_use_certificate_chain_file(tls, cert_file) != 1)
        return complain(tls, "certificate", cert_file);
    if (SSL_CTX_use_PrivateKey_file(tls, key_file, SSL_FILETYPE_PEM) != 1)
        return complain(tls, "private key", key_file);
    if (SSL_CTX_check_private_key(tls) != 1) return complain(tls, "private key", key_file);
    *out = tls;
    return FM_OK;
}

void fm__tls_close(struct ssl_ctx_st *tls)
{
    SSL_CTX_free(tls);
}

struct bufferevent *fm__tls_accept(struct event_base *base, int fd, struct ssl_ctx_st *tls)
{
    SSL *ssl = SSL_new(tls);
    FM_BUG_UNLESS(ssl != NULL);
    struct bufferevent *bev = bufferevent_openssl_socket_new(
        base, fd, ssl, BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
    /* Clients often close without saying so; that is an end like any other. */
    if (bev) bufferevent_openssl_set_allow_dirty_shutdown(bev, 1);
    return bev;
}
