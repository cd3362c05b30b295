/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "net/client.h"

#include <netdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>

#include "base/clock.h"
#include "base/str.h"
#include "net/client_tls.h"
#include "net/event_reader.h"

enum { MAX_BODY = 64 << 20, MAX_HEADERS = 64 << 10, MAX_HEADER_LINES = 16 };

typedef struct call call;

struct fm_client {
    struct event_base         *base;
    struct evhttp_uri         *uri;
    struct ssl_ctx_st         *tls;  /* NULL: plain http */
    char                      *host; /* as in a Host header */
    struct evhttp_connection **idle;
    int                        n_idle, cap_idle;
    int                        n_pending; /* calls and timers */
    double                     timeout;
    char                      *name[MAX_HEADER_LINES], *value[MAX_HEADER_LINES];
    int                        n_header;
    call                      *calls; /* in flight */
};

struct call {
    fm_client                *client;
    fm_client_call            ask;
    struct evhttp_connection *connection;
    int                       n_try;
    int                       reused; /* the connection has served before */
    int                       heard;  /* a byte of the reply's body */
    int                       fault;  /* evhttp_request_error, or -1 */
    int                       unknown; /* why its host's name was not found, of getaddrinfo; or 0 */
    fm_status                 stream; /* FM_E_FORMAT: the stream cannot be read on */
    double                    sent, last;
    fm_str                    body;
    fm_event_reader           reader;
    call                     *next, *prev;
};

typedef struct {
    fm_client *client;
    void (*fn)(void *ctx);
    void *ctx;
} timer;

static struct timeval timeval_of(double s)
{
    if (s < 0) s = 0;
    return (struct timeval){.tv_sec  = (time_t)s,
                            .tv_usec = (suseconds_t)((s - (double)(time_t)s) * 1e6)};
}

static int port_of(const fm_client *c)
{
    const int port = evhttp_uri_get_port(c->uri);
    return port > 0 ? port : c->tls ? 443 : 80;
}

static fm_status parse_url(fm_client *c, const char *url)
{
    c->uri             = evhttp_uri_parse(url);
    const char *scheme = c->uri ? evhttp_uri_get_scheme(c->uri) : NULL;
    const char *host   = c->uri ? evhttp_uri_get_host(c->uri) : NULL;
    if (!scheme || !host || !*host)
        return fm_fail(FM_E_ARG, "\"%s\" is no address like http://127.0.0.1:30000", url);
    if (!strcmp(scheme, "https"))
        FM_TRY(fm__client_tls_open(&c->tls));
    else if (strcmp(scheme, "http") != 0)
        return fm_fail(FM_E_NOSUP, "%s: http:// and https:// are spoken here, not %s://", url,
                       scheme);
    fm_str text = {0};
    fm_str_printf(&text, "%s:%d", host, port_of(c));
    c->host = text.text;
    return FM_OK;
}

/* libevent would write to stderr; every failure reaches the caller anyway. */
static void say_nothing(int severity, const char *text)
{
    (void)severity;
    (void)text;
}

fm_status fm_client_create(fm_client **out, const char *base_url, double timeout)
{
    fm_status            rc     = FM_OK;
    fm_client           *c      = calloc(1, sizeof *c);
    struct event_config *config = event_config_new();
    if (!c || !config) {
        rc = fm_fail(FM_E_OOM, "HTTP client");
        goto out;
    }
    c->timeout = timeout;
    event_set_log_callback(say_nothing);
    FM_GO(parse_url(c, base_url));
    event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER | EVENT_BASE_FLAG_NOLOCK);
    if (!(c->base = event_base_new_with_config(config))) {
        rc = fm_fail(FM_E_IO, "no event loop can be made");
        goto out;
    }
    *out = c;
    c    = NULL;
out:
    if (config) event_config_free(config);
    fm_client_destroy(c);
    return rc;
}

static void free_call(call *k)
{
    if (k->next) k->next->prev = k->prev;
    if (k->prev)
        k->prev->next = k->next;
    else
        k->client->calls = k->next;
    fm_str_fini(&k->body);
    fm_event_reader_fini(&k->reader);
    free(k);
}

void fm_client_destroy(fm_client *c)
{
    if (!c) return;
    while (c->calls) { /* freeing a connection frees its request without a word */
        if (c->calls->connection) evhttp_connection_free(c->calls->connection);
        free_call(c->calls);
    }
    for (int i = 0; i < c->n_idle; i++) evhttp_connection_free(c->idle[i]);
    free(c->idle);
    for (int i = 0; i < c->n_header; i++) {
        free(c->name[i]);
        free(c->value[i]);
    }
    if (c->base) event_base_free(c->base);
    fm__client_tls_close(c->tls);
    if (c->uri) evhttp_uri_free(c->uri);
    free(c->host);
    free(c);
}

void fm_client_header(fm_client *c, const char *name, const char *value)
{
    FM_BUG_UNLESS(c->n_header < MAX_HEADER_LINES);
    fm_str n = {0}, v = {0};
    fm_str_puts(&n, name);
    fm_str_puts(&v, value);
    c->name[c->n_header]    = n.text;
    c->value[c->n_header++] = v.text;
}

/* ---- connections ---- */

static struct evhttp_connection *connect_new(fm_client *c)
{
    const char         *host = evhttp_uri_get_host(c->uri);
    struct bufferevent *tls  = c->tls ? fm__client_tls_begin(c->base, c->tls, host) : NULL;
    if (c->tls && !tls) return NULL;
    struct evhttp_connection *e = evhttp_connection_base_bufferevent_new(
        c->base, NULL, tls, host, (unsigned short)port_of(c));
    if (!e) return NULL;
    const struct timeval limit = timeval_of(c->timeout);
    evhttp_connection_set_timeout_tv(e, &limit);
    evhttp_connection_set_max_headers_size(e, MAX_HEADERS);
    return e;
}

static void keep(fm_client *c, struct evhttp_connection *e)
{
    if (c->n_idle == c->cap_idle) {
        const int                  cap   = c->cap_idle ? 2 * c->cap_idle : 16;
        struct evhttp_connection **grown = realloc(c->idle, (size_t)cap * sizeof(*grown));
        if (!grown) {
            evhttp_connection_free(e);
            return;
        }
        c->idle     = grown;
        c->cap_idle = cap;
    }
    c->idle[c->n_idle++] = e;
}

/* ---- a call's life ---- */

static void finished_one(fm_client *c)
{
    if (--c->n_pending == 0) event_base_loopbreak(c->base);
}

static void on_event(void *ctx, const char *data, size_t len)
{
    call *k = ctx;
    k->ask.event(k->ask.ctx, data, len, k->last);
}

static void give_up(void *ctx);

/* A part of the body; evhttp empties the buffer afterwards. */
static void on_chunk(struct evhttp_request *req, void *ctx)
{
    call            *k     = ctx;
    struct evbuffer *in    = evhttp_request_get_input_buffer(req);
    const size_t     n     = evbuffer_get_length(in);
    const char      *bytes = (const char *)evbuffer_pullup(in, -1);
    k->last                = fm_now();
    k->heard               = 1;
    if (!bytes || k->stream != FM_OK) return;
    if (k->ask.event && evhttp_request_get_response_code(req) == 200)
        k->stream = fm_event_reader_push(&k->reader, bytes, n, on_event, k);
    else if (k->body.len + n <= MAX_BODY)
        fm_str_add(&k->body, bytes, n);
    else
        k->stream = fm_fail(FM_E_FORMAT, "the reply is longer than %d bytes", MAX_BODY);
    if (k->stream != FM_OK && fm_client_after(k->client, 0, give_up, k) != FM_OK) k->stream = FM_OK;
}

static void on_fault(enum evhttp_request_error fault, void *ctx)
{
    ((call *)ctx)->fault = (int)fault;
}

static const char *why_not(const call *k, int status)
{
    if (k->stream != FM_OK) return "the reply is longer than this client reads";
    if (status) return NULL;
    if (k->fault == EVREQ_HTTP_TIMEOUT) return "no answer within the time limit";
    if (k->unknown) return gai_strerror(k->unknown);
    if (k->client->tls && !k->heard) return "no connection, or no certificate that is trusted here";
    if (k->fault == EVREQ_HTTP_EOF)
        return "the server closed the connection before the answer was whole";
    return k->fault >= 0 ? "the answer is no HTTP" : "no connection";
}

static void finish(call *k, int status)
{
    fm_client      *c   = k->client;
    const char     *why = why_not(k, status);
    fm_client_reply r   = {.status   = why ? 0 : status,
                           .body     = k->body.text ? k->body.text : "",
                           .body_len = k->body.len,
                           .sent     = k->sent,
                           .ended    = k->last > k->sent ? k->last : fm_now(),
                           .why      = why};
    if (k->connection) evhttp_connection_free(k->connection);
    if (k->ask.done) k->ask.done(k->ask.ctx, &r);
    free_call(k);
    finished_one(c);
}

/* Ends a call without waiting for the end of its reply; evhttp makes no callback when a
 * connection is freed. */
static void give_up(void *ctx) { finish(ctx, 0); }

static fm_status start(call *k);

static void on_done(struct evhttp_request *req, void *ctx)
{
    call     *k      = ctx;
    const int status = req && k->fault < 0 ? evhttp_request_get_response_code(req) : 0;
    if (k->stream != FM_OK) return; /* give_up() is on its way */

    k->unknown =
        bufferevent_socket_get_dns_error(evhttp_connection_get_bufferevent(k->connection));

    keep(k->client, k->connection); /* before `done`, which may send the next call on it */
    k->connection = NULL;

    /* A kept connection may have been closed just as it was used again. */
    if (status == 0 && k->reused && !k->heard && k->fault != EVREQ_HTTP_TIMEOUT) {
        k->fault = -1;
        if (start(k) == FM_OK) return;
    }
    finish(k, status);
}

static void add_headers(const fm_client *c, struct evhttp_request *req, int posts)
{
    struct evkeyvalq *h = evhttp_request_get_output_headers(req);
    evhttp_add_header(h, "Host", c->host);
    evhttp_add_header(h, "Connection", "keep-alive");
    if (posts) evhttp_add_header(h, "Content-Type", "application/json");
    for (int i = 0; i < c->n_header; i++) evhttp_add_header(h, c->name[i], c->value[i]);
}

static void full_path(const fm_client *c, const char *path, fm_str *out)
{
    const char *prefix = evhttp_uri_get_path(c->uri);
    size_t      n      = prefix ? strlen(prefix) : 0;
    while (n && prefix[n - 1] == '/') n--;
    if (n) fm_str_add(out, prefix, n);
    fm_str_puts(out, path);
}

/* On the last connection that became idle, else, or at a second try, on a new one. */
static fm_status start(call *k)
{
    fm_client             *c   = k->client;
    struct evhttp_request *req = evhttp_request_new(on_done, k);
    if (!req) return fm_fail(FM_E_OOM, "HTTP request");
    evhttp_request_set_chunked_cb(req, on_chunk);
    evhttp_request_set_error_cb(req, on_fault);
    add_headers(c, req, k->ask.body != NULL);
    if (k->ask.body)
        evbuffer_add(evhttp_request_get_output_buffer(req), k->ask.body, k->ask.body_len);

    k->reused     = k->n_try++ == 0 && c->n_idle > 0;
    k->connection = k->reused ? c->idle[--c->n_idle] : connect_new(c);
    if (!k->connection) {
        evhttp_request_free(req);
        return fm_fail(FM_E_OOM, "HTTP connection");
    }
    fm_str path = {0};
    full_path(c, k->ask.path, &path);
    const int sent = evhttp_make_request(k->connection, req,
                                         k->ask.body ? EVHTTP_REQ_POST : EVHTTP_REQ_GET, path.text);
    fm_str_fini(&path);
    return sent == 0 ? FM_OK : fm_fail(FM_E_IO, "%s: cannot connect", c->host);
}

fm_status fm_client_send(fm_client *c, const fm_client_call *ask)
{
    call *k = calloc(1, sizeof *k);
    if (!k) return fm_fail(FM_E_OOM, "HTTP call");
    k->client = c;
    k->ask    = *ask;
    k->fault  = -1;
    k->sent   = fm_now();
    if ((k->next = c->calls)) c->calls->prev = k;
    c->calls = k;
    c->n_pending++;
    const fm_status rc = start(k);
    if (rc == FM_OK) return FM_OK;
    if (k->connection) evhttp_connection_free(k->connection);
    free_call(k);
    c->n_pending--;
    return rc;
}

static void on_timer(evutil_socket_t fd, short what, void *ctx)
{
    (void)fd;
    (void)what;
    const timer t = *(timer *)ctx;
    free(ctx);
    t.fn(t.ctx);
    finished_one(t.client);
}

fm_status fm_client_after(fm_client *c, double seconds, void (*fn)(void *ctx), void *ctx)
{
    timer *t = malloc(sizeof *t);
    if (!t) return fm_fail(FM_E_OOM, "timer");
    *t                       = (timer){c, fn, ctx};
    const struct timeval due = timeval_of(seconds);
    if (event_base_once(c->base, -1, EV_TIMEOUT, on_timer, t, &due) != 0) {
        free(t);
        return fm_fail(FM_E_IO, "no timer can be set");
    }
    c->n_pending++;
    return FM_OK;
}

fm_status fm_client_run(fm_client *c)
{
    if (c->n_pending == 0) return FM_OK;
    return event_base_dispatch(c->base) < 0 ? fm_fail(FM_E_IO, "%s: the event loop failed", c->host)
                                            : FM_OK;
}
