/* SPDX-License-Identifier: Apache-2.0 */
/* The address of a server behind this one, and its kept connections. */
#define _GNU_SOURCE
#include "net/upstream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>
#include <event2/http.h>

#include "base/str.h"
#include "net/client_tls.h"
#include "net/upstream_internal.h"

static char *copy_host(const char *host) /* "[::1]" -> "::1" */
{
    const size_t n = strlen(host);
    return *host == '[' && n > 2 ? strndup(host + 1, n - 2) : strdup(host);
}

/* What would have no effect is an error. */
static fm_status check_url(const char *url, const struct evhttp_uri *uri)
{
    const char *host = uri ? evhttp_uri_get_host(uri) : NULL;
    if (!host || !*host || !evhttp_uri_get_scheme(uri) || evhttp_uri_get_port(uri) == 0)
        return fm_fail(FM_E_ARG, "\"%s\" is no address like http://127.0.0.1:30000", url);
    if (evhttp_uri_get_userinfo(uri) || evhttp_uri_get_query(uri) || evhttp_uri_get_fragment(uri))
        return fm_fail(FM_E_ARG, "%s: an address has no user, query or fragment here", url);
    return FM_OK;
}

static fm_status read_url(fm_upstream *u, const char *url, const struct evhttp_uri *uri)
{
    FM_TRY(check_url(url, uri));
    const char *scheme = evhttp_uri_get_scheme(uri), *host = evhttp_uri_get_host(uri);
    const char *path     = evhttp_uri_get_path(uri);
    const int   is_https = !strcmp(scheme, "https");
    if (!is_https && strcmp(scheme, "http"))
        return fm_fail(FM_E_NOSUP, "%s: only http:// and https:// are spoken", url);
    const int given = evhttp_uri_get_port(uri), port = given > 0 ? given : is_https ? 443 : 80;
    size_t    n = path ? strlen(path) : 0;
    while (n && path[n - 1] == '/') n--;
    u->host   = copy_host(host);
    u->prefix = strndup(path ? path : "", n);
    if (!u->host || !u->prefix || asprintf(&u->authority, "%s:%d", host, port) < 0)
        return fm_fail(FM_E_OOM, "address");
    if (is_https) FM_TRY(fm__client_tls_open(&u->tls));
    return fm_lookup_create(&u->lookup, u->host, port);
}

fm_status fm_upstream_create(fm_upstream **out, fm_loop *l, const char *url)
{
    fm_upstream *u = calloc(1, sizeof *u);
    if (!u) return fm_fail(FM_E_OOM, "address");
    u->loop                = l;
    struct evhttp_uri *uri = evhttp_uri_parse(url);
    const fm_status    rc  = read_url(u, url, uri);
    if (uri) evhttp_uri_free(uri);
    if (rc != FM_OK) {
        fm_upstream_destroy(u);
        return rc;
    }
    *out = u;
    return FM_OK;
}

static void drop_idle(fm__idle *i)
{
    fm_upstream *u = i->upstream;
    if (i->prev)
        i->prev->next = i->next;
    else
        u->idle = i->next;
    if (i->next) i->next->prev = i->prev;
    u->n_idle--;
    free(i);
}

void fm_upstream_destroy(fm_upstream *u)
{
    if (!u) return;
    while (u->fetches) fm_fetch_cancel(u->fetches);
    while (u->idle) {
        bufferevent_free(u->idle->bev);
        drop_idle(u->idle);
    }
    fm__client_tls_close(u->tls);
    fm_lookup_destroy(u->lookup);
    free(u->host);
    free(u->authority);
    free(u->prefix);
    free(u);
}

int fm_upstream_is_pending(fm_upstream *u) { return fm_lookup_is_pending(u->lookup); }

int fm_upstream_n_fetch(const fm_upstream *u) { return u->n_fetch; }

struct bufferevent *fm__upstream_new_connection(fm_upstream *u)
{
    if (u->tls) return fm__client_tls_begin(u->loop->base, u->tls, u->host);
    return bufferevent_socket_new(u->loop->base, -1,
                                  BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
}

struct bufferevent *fm__upstream_take_idle(fm_upstream *u)
{
    if (!u->idle) return NULL;
    struct bufferevent *bev = u->idle->bev;
    drop_idle(u->idle);
    bufferevent_setcb(bev, NULL, NULL, NULL, NULL);
    return bev;
}

/* Bytes or an end on an idle connection: it was closed, or the server sent what no request asked for. */
static void on_idle_read(struct bufferevent *bev, void *arg)
{
    drop_idle(arg);
    bufferevent_free(bev);
}

static void on_idle_event(struct bufferevent *bev, short what, void *arg)
{
    (void)what;
    on_idle_read(bev, arg);
}

void fm__upstream_keep(fm_upstream *u, struct bufferevent *bev)
{
    fm__idle *i = u->n_idle < FM__MAX_IDLE ? calloc(1, sizeof *i) : NULL;
    if (!i) {
        bufferevent_free(bev);
        return;
    }
    *i = (fm__idle){.upstream = u, .bev = bev, .next = u->idle};
    if (u->idle) u->idle->prev = i;
    u->idle = i;
    u->n_idle++;
    bufferevent_setcb(bev, on_idle_read, NULL, on_idle_event, i);
    bufferevent_enable(bev, EV_READ);
}
