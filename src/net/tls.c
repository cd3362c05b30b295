/* SPDX-License-Identifier: Apache-2.0 */
/* TLS under the bufferevents, by OpenSSL. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <event2/bufferevent_ssl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509err.h>

#include "net/http_internal.h"

/* What OpenSSL says is a code and a routine: for a file that cannot be read the system's reason
 * stands in its place, otherwise what the file should hold. */
static fm_status refuse_file(const char *what, const char *file, const char *instead)
{
    FILE *f = fopen(file, "r");
    if (!f) return fm_fail(FM_E_IO, "%s %s: %s", what, file, strerror(errno));
    fclose(f);
    return fm_fail(FM_E_FORMAT, "%s %s: %s", what, file, instead);
}

/* A key under a pass phrase is refused: nobody is there to type it. */
static int no_pass_phrase(char *buf, int size, int writing, void *ctx)
{
    (void)buf, (void)size, (void)writing, (void)ctx;
    return -1;
}

static fm_status read_files(SSL_CTX *tls, const char *cert_file, const char *key_file)
{
    if (SSL_CTX_use_certificate_chain_file(tls, cert_file) != 1)
        return refuse_file("certificate", cert_file, "there is no certificate in PEM form in it");
    if (!key_file && SSL_CTX_use_PrivateKey_file(tls, cert_file, SSL_FILETYPE_PEM) != 1)
        return fm_fail(FM_E_ARG,
                       "certificate %s: its private key is not in this file; name the "
                       "key's with --ssl-keyfile",
                       cert_file);
    if (key_file && SSL_CTX_use_PrivateKey_file(tls, key_file, SSL_FILETYPE_PEM) != 1)
        return refuse_file(
            "private key", key_file,
            ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH
                ? "it is not the certificate's"
                : "there is no private key in PEM form, without a pass phrase, in it");
    return FM_OK;
}

fm_status fm__tls_open(struct ssl_ctx_st **out, const char *cert_file, const char *key_file)
{
    SSL_CTX *tls = SSL_CTX_new(TLS_server_method());
    if (!tls) return fm_fail(FM_E_OOM, "TLS");
    SSL_CTX_set_min_proto_version(tls, TLS1_2_VERSION);
    SSL_CTX_set_mode(tls, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_default_passwd_cb(tls, no_pass_phrase);
    ERR_clear_error();
    const fm_status rc = read_files(tls, cert_file, key_file);
    if (rc != FM_OK)
        SSL_CTX_free(tls);
    else
        *out = tls;
    return rc;
}

void fm__tls_close(struct ssl_ctx_st *tls) { SSL_CTX_free(tls); }

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
