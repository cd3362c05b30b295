/* SPDX-License-Identifier: Apache-2.0 */
/* The listening end: address, accepting, draining. */
#define _GNU_SOURCE
#include "net/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "net/http_internal.h"

enum { BACKLOG = 1024 };

fm_http_options fm_http_options_default(void)
{
    return (fm_http_options){.host             = "127.0.0.1",
                             .max_connections  = 4096,
                             .max_head_bytes   = 32 << 10,
                             .max_body_bytes   = (size_t)32 << 20,
                             .max_held_bytes   = (size_t)256 << 20,
                             .max_unread_bytes = (size_t)8 << 20,
                             .idle_seconds     = 75,
                             .head_seconds     = 15,
                             .body_seconds     = 30,
                             .stall_seconds    = 60};
}

static size_t held_bytes(const fm_http_options *o)
{
    return o->max_held_bytes > 4 * o->max_body_bytes ? o->max_held_bytes : 4 * o->max_body_bytes;
}

static int bind_one(const struct addrinfo *a)
{
    const int one = 1;
    const int fd =
        socket(a->ai_family, a->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, a->ai_protocol);
    if (fd < 0) return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, a->ai_addr, a->ai_addrlen) == 0) return fd;
    close(fd);
    return -1;
}

static int port_of(int fd)
{
    struct sockaddr_storage at;
    socklen_t               len = sizeof at;
    if (getsockname(fd, (struct sockaddr *)&at, &len) != 0) return 0;
    return ntohs(at.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&at)->sin6_port
                                          : ((struct sockaddr_in *)&at)->sin_port);
}

static fm_status bind_address(fm_http *h)
{
    char             port[16];
    struct addrinfo  want = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *list = NULL;
    snprintf(port, sizeof port, "%d", h->opt.port);
    const int e = getaddrinfo(h->host, port, &want, &list);
    if (e) return fm_fail(FM_E_ARG, "address %s: %s", h->host, gai_strerror(e));
    for (struct addrinfo *a = list; a && h->fd < 0; a = a->ai_next) h->fd = bind_one(a);
    const int why = errno;
    freeaddrinfo(list);
    if (h->fd < 0)
        return fm_fail(FM_E_IO, "cannot listen on %s:%d: %s", h->host, h->opt.port, strerror(why));
    h->port = port_of(h->fd);
    return FM_OK;
}

fm_status fm_http_create(fm_http **out, fm_loop *l, const fm_http_options *opt)
{
    fm_http *h = calloc(1, sizeof *h);
    if (!h) return fm_fail(FM_E_OOM, "HTTP server");
    h->opt       = *opt;
    h->opt.max_held_bytes = held_bytes(opt);
    h->loop      = l;
    h->fd        = -1;
    h->host      = strdup(opt->host);
    fm_status rc = h->host ? FM_OK : fm_fail(FM_E_OOM, "HTTP server");
    if (rc == FM_OK && opt->cert_file) rc = fm__tls_open(&h->tls, opt->cert_file, opt->key_file);
    if (rc == FM_OK) rc = bind_address(h);
    if (rc != FM_OK) {
        fm_http_destroy(h);
        return rc;
    }
    *out = h;
    return FM_OK;
}

static void on_accept(struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *from, int len,
                      void *arg)
{
    fm_http *h        = arg;
    char     host[48] = "?", port[8] = "?", peer[64];
    (void)l;
    getnameinfo(from, (socklen_t)len, host, sizeof host, port, sizeof port,
                NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(peer, sizeof peer, "%s:%s", host, port);
    fm__conn_accept(h, fd, peer);
    if (h->n_conn >= h->opt.max_connections) evconnlistener_disable(h->listener);
}

void fm__http_conn_closed(fm_http *h)
{
    h->n_conn--;
    if (h->listener && !h->draining) evconnlistener_enable(h->listener);
}

static void on_retry(evutil_socket_t fd, short what, void *arg)
{
    fm_http *h = arg;
    (void)fd;
    (void)what;
    if (h->listener && !h->draining) evconnlistener_enable(h->listener);
}

/* Out of descriptors: trying again at once would spin. */
static void on_accept_error(struct evconnlistener *l, void *arg)
{
    fm_http             *h     = arg;
    const struct timeval later = {0, 100000};
    FM_WARN("net", "accept: %s", strerror(EVUTIL_SOCKET_ERROR()));
    evconnlistener_disable(l);
    event_add(h->retry, &later);
}

fm_status fm_http_listen(fm_http *h)
{
    h->retry    = event_new(h->loop->base, -1, 0, on_retry, h);
    h->listener = evconnlistener_new(h->loop->base, on_accept, h,
                                     LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, BACKLOG, h->fd);
    if (!h->listener || !h->retry)
        return fm_fail(FM_E_IO, "cannot listen on %s:%d: %s", h->host, h->port, strerror(errno));
    evconnlistener_set_error_cb(h->listener, on_accept_error);
    return FM_OK;
}

int fm_http_port(const fm_http *h)
{
    return h->port;
}

int fm_http_n_connection(const fm_http *h)
{
    return h->n_conn;
}

int fm_http_n_exchange(const fm_http *h)
{
    return h->n_exchange;
}

static void stop_listening(fm_http *h)
{
    if (h->listener) evconnlistener_free(h->listener);
    else if (h->fd >= 0) close(h->fd);
    h->listener = NULL;
    h->fd       = -1;
}

void fm_http_drain(fm_http *h)
{
    h->draining = 1;
    stop_listening(h);
    for (fm__conn *c = h->conns, *next; c; c = next) {
        next = c->next;
        if (c->phase != FM__READ_HEAD || c->timing) continue; /* a request is under way */
        if (evbuffer_get_length(bufferevent_get_output(c->bev))) c->phase = FM__FLUSHING;
        else fm__conn_cut(c);
    }
}

void fm_http_destroy(fm_http *h)
{
    if (!h) return;
    h->draining = 1;
    stop_listening(h);
    while (h->conns) fm__conn_cut(h->conns);
    if (h->retry) event_free(h->retry);
    fm__tls_close(h->tls);
    free(h->host);
    free(h);
}
