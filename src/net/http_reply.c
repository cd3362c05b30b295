/* SPDX-License-Identifier: Apache-2.0 */
/* The other half of an exchange: status line, headers, body. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

#include "net/http_internal.h"

static const char *reason(int status)
{
    static const struct {
        int         status;
        const char *words;
    } known[] = {
        {200, "OK"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {413, "Content Too Large"},
        {415, "Unsupported Media Type"},
        {417, "Expectation Failed"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {503, "Service Unavailable"},
        {505, "HTTP Version Not Supported"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].status == status) return known[i].words;
    return "Status";
}

const char *fm_exchange_header(const fm_exchange *x, const char *name)
{
    return fm_http_head_get(&((const fm__conn *)x)->head, name);
}

char *fm_exchange_take_body(fm_exchange *x)
{
    fm__conn *c    = (fm__conn *)x;
    char     *text = c->body_text;
    c->body_text   = NULL;
    x->body        = "";
    return text;
}

static struct evbuffer *output(fm__conn *c)
{
    return bufferevent_get_output(c->bev);
}

/* A token's few bytes nearly always fit the socket's buffer: sent at once they
 * cost one system call, by way of the loop four.  What does not fit waits. */
static void put_parts(fm__conn *c, struct iovec *part, int n)
{
    struct evbuffer *out  = output(c);
    size_t           sent = 0;
    if (!c->http->tls && !evbuffer_get_length(out)) {
        const struct msghdr all = {.msg_iov = part, .msg_iovlen = (size_t)n};
        const ssize_t k = sendmsg(bufferevent_getfd(c->bev), &all, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (k > 0) sent = (size_t)k; /* an error shows again when the loop writes */
    }
    for (int i = 0; i < n; i++) {
        const size_t skip = sent < part[i].iov_len ? sent : part[i].iov_len;
        sent -= skip;
        if (skip < part[i].iov_len)
            evbuffer_add(out, (char *)part[i].iov_base + skip, part[i].iov_len - skip);
    }
}

static int is_head(const fm__conn *c)
{
    return !strcmp(c->x.method, "HEAD");
}

/* Between requests, or the last one of the connection. */
static void end_exchange(fm__conn *c)
{
    fm_http *h = c->http;
    h->n_exchange--;
    if (h->opt.ended) h->opt.ended(h->opt.ctx, &c->x);
    const int again = c->head.keep_alive && !h->draining;
    fm__conn_reset(c);
    if (!again) {
        c->phase = FM__FLUSHING;
        bufferevent_trigger(c->bev, EV_WRITE,
                            BEV_TRIG_IGNORE_WATERMARKS | BEV_TRIG_DEFER_CALLBACKS);
        return;
    }
    c->phase = FM__READ_HEAD;
    fm__conn_set_deadline(c, h->opt.idle_seconds);
    if (!c->working) /* the next request may be here already */
        bufferevent_trigger(c->bev, EV_READ, BEV_TRIG_IGNORE_WATERMARKS | BEV_TRIG_DEFER_CALLBACKS);
}

/* Written anew once a second. */
static const char *date_now(fm_http *h)
{
    const time_t now = time(NULL);
    struct tm    utc;
    if (now != h->date_of && gmtime_r(&now, &utc))
        strftime(h->date, sizeof h->date, "%a, %d %b %Y %H:%M:%S GMT", &utc);
    h->date_of = now;
    return h->date;
}

static void write_head(fm__conn *c, int status, const char *type, const char *more,
                       const char *framing, fm_str *out)
{
    const int   keep = c->head.keep_alive && !c->http->draining;
    const char *id   = c->x.request_id;
    c->x.status      = status;
    fm_str_printf(out, "HTTP/1.1 %d %s\r\nDate: %s\r\nContent-Type: %s\r\n%s%s%s%s", status,
                  reason(status), date_now(c->http), type, framing,
                  keep ? "Connection: keep-alive\r\n" : "Connection: close\r\n",
                  c->x.always ? c->x.always : "", more ? more : "");
    if (*id) fm_str_printf(out, "x-request-id: %s\r\nrequest-id: %s\r\n", id, id);
    fm_str_puts(out, "\r\n");
}

void fm_exchange_reply(fm_exchange *x, int status, const char *type, const char *more,
                       const void *body, size_t len)
{
    fm__conn *c = (fm__conn *)x;
    FM_BUG_UNLESS(c->phase == FM__HANDLING);
    char   framing[64];
    fm_str head = {0};
    snprintf(framing, sizeof framing, "Content-Length: %zu\r\n", len);
    write_head(c, status, type, more, framing, &head);
    struct iovec part[] = {{head.text, head.len}, {(void *)body, is_head(c) ? 0 : len}};
    put_parts(c, part, 2);
    x->sent_bytes = part[1].iov_len;
    fm_str_fini(&head);
    end_exchange(c);
}

void fm_exchange_begin(fm_exchange *x, int status, const char *type, const char *more)
{
    fm__conn *c    = (fm__conn *)x;
    fm_str    head = {0};
    FM_BUG_UNLESS(c->phase == FM__HANDLING);
    if (c->head.minor == 0) c->head.keep_alive = 0; /* the end is the close */
    write_head(c, status, type, more, c->head.minor == 0 ? "" : "Transfer-Encoding: chunked\r\n",
               &head);
    struct iovec part = {head.text, head.len};
    put_parts(c, &part, 1);
    fm_str_fini(&head);
    c->phase = FM__STREAMING;
}

size_t fm_exchange_unread(const fm_exchange *x)
{
    return evbuffer_get_length(output((fm__conn *)x));
}

fm_status fm_exchange_write(fm_exchange *x, const void *bytes, size_t len)
{
    fm__conn *c = (fm__conn *)x;
    FM_BUG_UNLESS(c->phase == FM__STREAMING);
    if (!len || is_head(c)) return FM_OK;
    if (fm_exchange_unread(x) > c->http->opt.max_unread_bytes) {
        fm__conn_cut(c);
        return fm_fail(FM_E_FULL, "the client does not read what it is sent");
    }
    char         size[24];
    const size_t n      = (size_t)snprintf(size, sizeof size, "%zx\r\n", len);
    struct iovec part[] = {{size, n}, {(void *)bytes, len}, {"\r\n", 2}};
    if (c->head.minor) put_parts(c, part, 3);
    else put_parts(c, part + 1, 1);
    x->sent_bytes += len;
    return FM_OK;
}

void fm_exchange_end(fm_exchange *x)
{
    fm__conn *c = (fm__conn *)x;
    FM_BUG_UNLESS(c->phase == FM__STREAMING);
    struct iovec last = {"0\r\n\r\n", 5};
    if (c->head.minor && !is_head(c)) put_parts(c, &last, 1);
    end_exchange(c);
}

void fm_exchange_cut(fm_exchange *x)
{
    fm__conn_cut((fm__conn *)x);
}
