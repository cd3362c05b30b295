/* SPDX-License-Identifier: Apache-2.0 */
/* One connection: bytes in, requests out, and its end. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "net/http_internal.h"

enum { READ_AHEAD = 256 << 10 };
static const double linger_seconds = 2, linger_most = 30; /* after the last byte; in all */
static const double bytes_per_second = 65536; /* the slowest upload that is let through */

void fm__conn_set_deadline(fm__conn *c, double seconds)
{
    const struct timeval in = fm__timeval(seconds);
    if (seconds > 0) event_add(c->deadline, &in);
    else event_del(c->deadline);
}

void fm__conn_reset(fm__conn *c)
{
    c->http->held_bytes -= c->x.body_len;
    fm_http_body_fini(&c->body);
    free(c->head_text);
    free(c->body_text);
    c->head_text = c->body_text = NULL;
    c->scanned                  = 0;
    c->timing                   = 0;
    c->x = (fm_exchange){.method = "-", .path = "-", .query = "", .peer = c->peer, .body = ""};
}

static void free_conn(fm__conn *c)
{
    fm_http *h = c->http;
    fm__conn_reset(c);
    if (c->prev) c->prev->next = c->next;
    else h->conns = c->next;
    if (c->next) c->next->prev = c->prev;
    if (c->deadline) event_free(c->deadline);
    bufferevent_free(c->bev);
    free(c);
    fm__http_conn_closed(h);
}

void fm__conn_cut(fm__conn *c)
{
    if (c->phase == FM__HANDLING || c->phase == FM__STREAMING) {
        c->http->n_exchange--;
        if (c->http->opt.ended) c->http->opt.ended(c->http->opt.ctx, &c->x);
    }
    c->phase = FM__CUT;
    if (!c->working) free_conn(c);
}

/* The client left while the handler was at work. */
static void tell_gone(fm__conn *c)
{
    if (c->phase == FM__HANDLING || c->phase == FM__STREAMING)
        c->http->opt.gone(c->http->opt.ctx, &c->x);
    fm__conn_cut(c);
}

void fm__conn_refuse(fm__conn *c, int status, const char *why)
{
    fm_str body = {0};
    if (c->http->opt.refusal)
        c->http->opt.refusal(c->http->opt.ctx, &c->x, status, why, &body);
    else fm_str_printf(&body, "{\"error\":\"%s\"}", why);
    c->head.keep_alive = 0;
    c->linger          = 1;
    c->phase           = FM__HANDLING;
    c->http->n_exchange++;
    if (c->x.began == 0) c->x.began = fm_now();
    fm_exchange_reply(&c->x, status, "application/json", NULL, body.text, body.len);
    fm_str_fini(&body);
}

/* Where the head ends, or 0. */
static size_t find_head(fm__conn *c, struct evbuffer *in)
{
    const size_t        there = evbuffer_get_length(in);
    struct evbuffer_ptr from;
    evbuffer_ptr_set(in, &from, c->scanned > 3 ? c->scanned - 3 : 0, EVBUFFER_PTR_SET);
    const struct evbuffer_ptr at = evbuffer_search(in, "\r\n\r\n", 4, &from);
    c->scanned                   = there;
    return at.pos < 0 ? 0 : (size_t)at.pos + 4;
}

static void begin_body(fm__conn *c)
{
    const fm_http_options *opt    = &c->http->opt;
    const int64_t          length = c->head.content_length > 0 ? c->head.content_length : 0;
    if ((uint64_t)length > opt->max_body_bytes) {
        fm__conn_refuse(c, 413, "the body is larger than this server accepts");
        return;
    }
    fm_http_body_begin(&c->body, c->head.chunked, (size_t)length);
    c->phase = FM__READ_BODY;
    if (!length && !c->head.chunked) return;
    fm__conn_set_deadline(c, opt->body_seconds + (double)length / bytes_per_second);
    if (c->head.expects_continue && !evbuffer_get_length(bufferevent_get_input(c->bev)))
        bufferevent_write(c->bev, "HTTP/1.1 100 Continue\r\n\r\n", 25);
}

static int has_body(const fm__conn *c) { return c->head.chunked || c->head.content_length > 0; }

/* 1: the handler wants none of it. */
static int is_refused(fm__conn *c)
{
    fm_http  *h    = c->http;
    const int keep = c->head.keep_alive;
    if (!h->opt.admit || !has_body(c)) return 0;
    c->head.keep_alive = 0; /* what follows may be the body */
    c->linger          = 1;
    c->phase           = FM__HANDLING;
    h->n_exchange++;
    if (h->opt.admit(h->opt.ctx, &c->x)) return 1;
    h->n_exchange--;
    c->phase           = FM__READ_HEAD;
    c->linger          = 0;
    c->head.keep_alive = keep;
    return 0;
}

/* 1: there may be more to do at once. */
static int read_head(fm__conn *c)
{
    struct evbuffer *in = bufferevent_get_input(c->bev);
    while (!c->timing && evbuffer_get_length(in) >= 2) { /* empty lines before a request */
        char two[2];
        evbuffer_copyout(in, two, 2);
        if (two[0] != '\r' || two[1] != '\n') break;
        evbuffer_drain(in, 2);
    }
    const size_t there = evbuffer_get_length(in);
    if (!there) return 0;
    if (!c->timing) fm__conn_set_deadline(c, c->http->opt.head_seconds);
    c->timing      = 1;
    const size_t n = find_head(c, in);
    if (n > c->http->opt.max_head_bytes || (!n && there > c->http->opt.max_head_bytes)) {
        fm__conn_refuse(c, 431, "the header fields are too long");
        return 0;
    }
    if (!n) return 0;
    c->head_text = malloc(n + 1);
    FM_BUG_UNLESS(c->head_text != NULL);
    evbuffer_remove(in, c->head_text, n);
    c->head_text[n]    = 0;
    c->x.began         = fm_now();
    const char *why    = "";
    const int   status = fm_http_head_parse(&c->head, c->head_text, n, &why);
    if (status) {
        fm__conn_refuse(c, status, why);
        return 0;
    }
    c->x.method = c->head.method;
    c->x.path   = c->head.path;
    c->x.query  = c->head.query;
    if (is_refused(c)) return 0;
    begin_body(c);
    return c->phase == FM__READ_BODY;
}

/* The body in one piece, with a NUL behind it. */
static void gather_body(fm__conn *c)
{
    const size_t n = evbuffer_get_length(c->body.data);
    c->body_text   = malloc(n + 1);
    FM_BUG_UNLESS(c->body_text != NULL);
    evbuffer_remove(c->body.data, c->body_text, n);
    c->body_text[n] = 0;
    c->x.body       = c->body_text;
    fm_http_body_fini(&c->body);
}

static int read_body(fm__conn *c)
{
    fm_http  *h = c->http;
    const int status =
        fm_http_body_take(&c->body, bufferevent_get_input(c->bev), h->opt.max_body_bytes);
    const size_t held = evbuffer_get_length(c->body.data);
    h->held_bytes += held - c->x.body_len;
    c->x.body_len = held;
    if (status > 1) {
        fm__conn_refuse(c, status,
                        status == 413 ? "the body is larger than this server accepts"
                                      : "the chunks of the body are malformed");
        return 0;
    }
    if (h->held_bytes > h->opt.max_held_bytes) {
        fm__conn_refuse(c, 503, "too many large requests at once");
        return 0;
    }
    if (!status) return 0;
    gather_body(c);
    fm__conn_set_deadline(c, 0);
    c->x.received = fm_now();
    c->phase      = FM__HANDLING;
    h->n_exchange++;
    h->opt.handle(h->opt.ctx, &c->x);
    return 1;
}

static void swallow(fm__conn *c)
{
    struct evbuffer *in = bufferevent_get_input(c->bev);
    evbuffer_drain(in, evbuffer_get_length(in));
    if (c->phase == FM__LINGERING && fm_now() - c->lingers_since < linger_most)
        fm__conn_set_deadline(c, linger_seconds); /* it is still sending, and will read then */
}

void fm__conn_advance(fm__conn *c)
{
    if (c->working) return;
    c->working = 1;
    for (int more = 1; more;) switch (c->phase) {
        case FM__READ_HEAD: more = read_head(c); break;
        case FM__READ_BODY: more = read_body(c); break;
        case FM__FLUSHING:
        case FM__LINGERING:
            swallow(c);
            more = 0;
            break;
        default: more = 0; /* the next request waits its turn */
        }
    c->working = 0;
    if (c->phase == FM__CUT) free_conn(c);
}

static void on_read(struct bufferevent *bev, void *arg)
{
    (void)bev;
    fm__conn_advance(arg);
}

/* Everything was sent. */
static void on_drained(struct bufferevent *bev, void *arg)
{
    fm__conn *c = arg;
    if (c->phase != FM__FLUSHING || evbuffer_get_length(bufferevent_get_output(bev))) return;
    if (!c->linger) {
        fm__conn_cut(c);
        return;
    }
    c->phase         = FM__LINGERING;
    c->lingers_since = fm_now();
    if (!c->http->tls) shutdown(bufferevent_getfd(bev), SHUT_WR);
    fm__conn_set_deadline(c, linger_seconds);
}

static void on_trouble(struct bufferevent *bev, short what, void *arg)
{
    fm__conn *c = arg;
    if (what & BEV_EVENT_CONNECTED) return; /* TLS is up */
    const int can_write = (what & BEV_EVENT_EOF) && !(what & BEV_EVENT_ERROR);
    if (can_write && (c->phase == FM__READ_HEAD || c->phase == FM__FLUSHING) &&
        evbuffer_get_length(bufferevent_get_output(bev))) {
        c->phase  = FM__FLUSHING; /* it sends no more but may still read */
        c->linger = 0;
        return;
    }
    tell_gone(c);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
    fm__conn *c = arg;
    (void)fd;
    (void)what;
    const int late = (c->phase == FM__READ_HEAD && c->timing) || c->phase == FM__READ_BODY;
    if (late) fm__conn_refuse(c, 408, "the request took too long to arrive");
    else fm__conn_cut(c);
}

void fm__conn_accept(fm_http *h, int fd, const char *peer)
{
    const int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    fm__conn *c = calloc(1, sizeof *c);
    FM_BUG_UNLESS(c != NULL);
    c->http = h;
    snprintf(c->peer, sizeof c->peer, "%s", peer);
    c->bev      = h->tls ? fm__tls_accept(h->loop->base, fd, h->tls)
                         : bufferevent_socket_new(h->loop->base, fd,
                                                  BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
    c->deadline = event_new(h->loop->base, -1, 0, on_deadline, c);
    FM_BUG_UNLESS(c->bev && c->deadline);
    fm__conn_reset(c);
    c->next = h->conns;
    if (h->conns) h->conns->prev = c;
    h->conns = c;
    h->n_conn++;
    const struct timeval stall = fm__timeval(h->opt.stall_seconds);
    bufferevent_set_timeouts(c->bev, NULL, &stall);
    bufferevent_setwatermark(c->bev, EV_READ, 0, READ_AHEAD);
    bufferevent_setcb(c->bev, on_read, on_drained, on_trouble, c);
    bufferevent_enable(c->bev, EV_READ | EV_WRITE);
    fm__conn_set_deadline(c, h->opt.idle_seconds);
}
