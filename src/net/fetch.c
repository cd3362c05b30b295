/* SPDX-License-Identifier: Apache-2.0 */
/* One request to a server behind this one, and its reply. */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>

#include "base/str.h"
#include "net/http_body.h"
#include "net/upstream_internal.h"

enum { MAX_HEAD = 64 << 10, READ_AHEAD = 256 << 10 };
static const size_t no_limit = (size_t)1 << 62;

typedef enum { CONNECTING, SENT, IN_BODY } stage;

/* How the end of a body is known. */
typedef enum { BY_FRAMING, BY_CLOSE, NO_BODY } body_end;

struct fm_fetch {
    fm_upstream        *upstream;
    fm_fetch_ask        ask; /* without what was borrowed */
    struct bufferevent *bev;
    struct event       *timer;
    stage               at;
    fm_str              request; /* to send again where a kept connection was closed */
    int                 is_head; /* the method is HEAD */
    int                 reused, paused;
    body_end            end;
    int                 keeps; /* the connection serves again */
    fm_http_body        body;
    const char         *unknown;       /* why its host has no address, or NULL */
    int                 working, dead; /* inside a callback; cancelled there */
    fm_fetch           *prev, *next;
};

static void begin_connection(fm_fetch *f, int fresh);

static void free_fetch(fm_fetch *f)
{
    if (f->bev) bufferevent_free(f->bev);
    if (f->timer) event_free(f->timer);
    fm_http_body_fini(&f->body);
    fm_str_fini(&f->request);
    free(f);
}

static void unlink_fetch(fm_fetch *f)
{
    fm_upstream *u = f->upstream;
    if (f->prev)
        f->prev->next = f->next;
    else
        u->fetches = f->next;
    if (f->next) f->next->prev = f->prev;
    u->n_fetch--;
}

/* Between enter() and leave() a cancelled fetch stays in memory. */
static void enter(fm_fetch *f) { f->working++; }

static int leave(fm_fetch *f)
{
    if (--f->working || !f->dead) return !f->dead;
    free_fetch(f);
    return 0;
}

void fm_fetch_cancel(fm_fetch *f)
{
    if (f->dead) return;
    f->dead = 1;
    unlink_fetch(f);
    if (f->bev) bufferevent_setcb(f->bev, NULL, NULL, NULL, NULL);
    if (!f->working) free_fetch(f);
}

static void finish(fm_fetch *f, const char *why)
{
    void (*const done)(void *, const char *) = f->ask.done;
    void *const ctx                          = f->ask.ctx;
    unlink_fetch(f);
    f->dead = 1;
    bufferevent_setcb(f->bev, NULL, NULL, NULL, NULL);
    if (!why && f->keeps && !evbuffer_get_length(bufferevent_get_input(f->bev))) {
        fm__upstream_keep(f->upstream, f->bev);
        f->bev = NULL;
    }
    enter(f);
    done(ctx, why);
    leave(f);
}

static void set_timer(fm_fetch *f, double seconds)
{
    const struct timeval due = fm__timeval(seconds);
    event_del(f->timer);
    if (seconds > 0) event_add(f->timer, &due);
}

/* --- the reply ------------------------------------------------------------- */

/* What has arrived of the body.  0: the fetch is over. */
static int pass_data(fm_fetch *f)
{
    struct evbuffer *got = f->body.data;
    const size_t     n   = evbuffer_get_length(got);
    if (!n) return 1;
    const char *bytes = (const char *)evbuffer_pullup(got, -1);
    enter(f);
    f->ask.data(f->ask.ctx, bytes, n);
    if (!leave(f)) return 0;
    evbuffer_drain(got, n);
    return 1;
}

static void read_body(fm_fetch *f)
{
    struct evbuffer *in = bufferevent_get_input(f->bev);
    int              complete;
    if (f->end == BY_CLOSE) {
        evbuffer_add_buffer(f->body.data, in);
        complete = 0;
    } else {
        complete = f->end == NO_BODY ? 1 : fm_http_body_take(&f->body, in, no_limit);
    }
    if (!pass_data(f)) return;
    if (complete > 1)
        finish(f, "the chunks of the reply are malformed");
    else if (complete)
        finish(f, NULL);
    else if (!f->paused)
        set_timer(f, f->ask.idle_seconds);
}

static void begin_body(fm_fetch *f, int status, const fm_http_head *h)
{
    const int empty = f->is_head || status == 204 || status == 304;
    f->end   = empty ? NO_BODY : h->chunked || h->content_length >= 0 ? BY_FRAMING : BY_CLOSE;
    f->keeps = h->keep_alive && f->end != BY_CLOSE;
    fm_http_body_begin(&f->body, h->chunked, h->content_length > 0 ? (size_t)h->content_length : 0);
    f->at = IN_BODY;
    fm_str_fini(&f->request); /* it is not sent again */
}

/* 1: the head was passed on; 0: it is not complete, or the fetch is over. */
static int read_head(fm_fetch *f)
{
    struct evbuffer          *in  = bufferevent_get_input(f->bev);
    const struct evbuffer_ptr end = evbuffer_search(in, "\r\n\r\n", 4, NULL);
    const char               *why = "";
    fm_http_head              h;
    int                       status = 0;
    if (end.pos < 0) {
        if (evbuffer_get_length(in) > MAX_HEAD) finish(f, "the reply's head is too long");
        return 0;
    }
    const size_t n    = (size_t)end.pos + 4;
    char        *text = malloc(n + 1);
    FM_BUG_UNLESS(text != NULL);
    evbuffer_remove(in, text, n);
    text[n] = 0;
    if (fm_http_reply_head_parse(&h, &status, text, n, &why)) {
        free(text);
        finish(f, "the reply is no HTTP that is understood here");
        return 0;
    }
    const int is_final = status >= 200;
    enter(f);
    if (is_final) begin_body(f, status, &h);
    if (is_final) f->ask.head(f->ask.ctx, status, &h);
    free(text);
    return leave(f) && (is_final || read_head(f)); /* 1xx: another head follows */
}

static void on_read(struct bufferevent *bev, void *arg)
{
    fm_fetch *f = arg;
    (void)bev;
    if (f->paused) return;
    if (f->at != IN_BODY && !read_head(f)) return;
    read_body(f);
}

/* --- the connection -------------------------------------------------------- */

static void give_up_connecting(fm_fetch *f)
{
    fm_lookup_fail(f->upstream->lookup);
    finish(f, f->unknown ? f->unknown : "no connection");
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
    fm_fetch *f = arg;
    if (what & BEV_EVENT_CONNECTED) {
        const int one = 1;
        setsockopt(bufferevent_getfd(bev), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        f->at = SENT;
        set_timer(f, f->ask.head_seconds);
        return;
    }
    if (f->at == IN_BODY && f->end == BY_CLOSE && what & BEV_EVENT_EOF) {
        enter(f);
        read_body(f);
        if (leave(f)) finish(f, NULL);
        return;
    }
    const int unheard = f->at != IN_BODY && !evbuffer_get_length(bufferevent_get_input(bev));
    if (f->reused && unheard) { /* it was closed while it was idle */
        bufferevent_free(f->bev);
        f->bev = NULL;
        begin_connection(f, 1);
        return;
    }
    if (f->at == CONNECTING)
        give_up_connecting(f);
    else
        finish(f, "the connection was closed before the reply was complete");
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    fm_fetch *f = arg;
    (void)fd;
    (void)what;
    if (f->at == CONNECTING)
        give_up_connecting(f);
    else
        finish(f, f->at == SENT ? "no reply within the time limit"
                                : "the reply stopped for longer than the time limit");
}

static void connect_to(fm_fetch *f, fm_upstream *u)
{
    socklen_t              len = 0;
    const struct sockaddr *to  = fm_lookup_address(u->lookup, &len, &f->unknown);
    if (!to || bufferevent_socket_connect(f->bev, to, (int)len) != 0)
        event_active(f->timer, EV_TIMEOUT, 0); /* done() is called from the loop */
}

static void begin_connection(fm_fetch *f, int fresh)
{
    fm_upstream *u = f->upstream;
    f->bev         = fresh ? NULL : fm__upstream_take_idle(u);
    f->reused      = f->bev != NULL;
    if (!f->bev) f->bev = fm__upstream_new_connection(u);
    FM_BUG_UNLESS(f->bev != NULL);
    bufferevent_setcb(f->bev, on_read, NULL, on_event, f);
    bufferevent_setwatermark(f->bev, EV_READ, 0, READ_AHEAD);
    bufferevent_enable(f->bev, EV_READ | EV_WRITE);
    f->at = f->reused ? SENT : CONNECTING;
    set_timer(f, f->reused ? f->ask.head_seconds : f->ask.connect_seconds);
    bufferevent_write(f->bev, f->request.text, f->request.len);
    if (!f->reused) connect_to(f, u);
}

static void write_request(fm_fetch *f, const fm_fetch_ask *a)
{
    const fm_upstream *u = f->upstream;
    fm_str_printf(&f->request, "%s %s%s HTTP/1.1\r\nHost: %s\r\n", a->method, u->prefix, a->target,
                  u->authority);
    if (a->headers) fm_str_puts(&f->request, a->headers);
    if (a->body_len[0] + a->body_len[1] || strcmp(a->method, "GET"))
        fm_str_printf(&f->request, "Content-Length: %zu\r\n", a->body_len[0] + a->body_len[1]);
    fm_str_puts(&f->request, "\r\n");
    for (int i = 0; i < 2; i++)
        if (a->body_len[i]) fm_str_add(&f->request, a->body[i], a->body_len[i]);
}

fm_fetch *fm_upstream_send(fm_upstream *u, const fm_fetch_ask *ask)
{
    fm_fetch *f = calloc(1, sizeof *f);
    if (!f) return NULL;
    *f       = (fm_fetch){.upstream = u, .ask = *ask, .is_head = !strcmp(ask->method, "HEAD")};
    f->timer = event_new(u->loop->base, -1, 0, on_timer, f);
    if (!f->timer) {
        free(f);
        return NULL;
    }
    write_request(f, ask);
    if ((f->next = u->fetches)) f->next->prev = f;
    u->fetches = f;
    u->n_fetch++;
    begin_connection(f, 0);
    return f;
}

void fm_fetch_pause(fm_fetch *f, int paused)
{
    if (f->paused == paused) return;
    f->paused = paused;
    if (paused) {
        bufferevent_disable(f->bev, EV_READ);
        set_timer(f, 0);
    } else {
        bufferevent_enable(f->bev, EV_READ);
        bufferevent_trigger(f->bev, EV_READ, BEV_TRIG_IGNORE_WATERMARKS | BEV_TRIG_DEFER_CALLBACKS);
    }
}
