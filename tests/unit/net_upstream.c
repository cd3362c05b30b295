/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to a server behind this one: against a server of this room on the same loop, and
 * against one whose reply the test gives, byte by byte. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/str.h"
#include "net/http.h"
#include "net/upstream.h"

typedef struct {
    fm_loop  *loop;
    int       status, n_head, n_data, n_done;
    fm_str    body;
    char      why[128];
    int       cancels; /* 1: in head, 2: in data */
    fm_fetch *fetch;
} heard;

static void on_head(void *ctx, int status, const fm_http_head *h)
{
    heard *x  = ctx;
    x->status = status;
    x->n_head++;
    assert_non_null(fm_http_head_get(h, "content-type"));
    if (x->cancels != 1) return;
    fm_fetch_cancel(x->fetch);
    fm_loop_stop(x->loop);
}

static void on_data(void *ctx, const char *bytes, size_t n)
{
    heard *x = ctx;
    fm_str_add(&x->body, bytes, n);
    x->n_data++;
    if (x->cancels != 2) return;
    fm_fetch_cancel(x->fetch);
    fm_loop_stop(x->loop);
}

static void on_done(void *ctx, const char *why)
{
    heard *x = ctx;
    x->n_done++;
    snprintf(x->why, sizeof x->why, "%s", why ? why : "");
    fm_loop_stop(x->loop);
}

static fm_fetch_ask ask_for(heard *x, const char *target)
{
    return (fm_fetch_ask){.method          = "POST",
                          .target          = target,
                          .headers         = "X-Test: yes\r\n",
                          .body            = {"one ", "two"},
                          .body_len        = {4, 3},
                          .connect_seconds = 2,
                          .head_seconds    = 1,
                          .idle_seconds    = 1,
                          .head            = on_head,
                          .data            = on_data,
                          .done            = on_done,
                          .ctx             = x};
}

/* --- a whole server --------------------------------------------------------- */

static void handle(void *ctx, fm_exchange *x)
{
    (void)ctx;
    assert_string_equal(fm_exchange_header(x, "X-Test"), "yes");
    assert_string_equal(x->body, "one two");
    if (!strcmp(x->path, "/base/whole")) {
        fm_exchange_reply(x, 200, "text/plain", NULL, x->body, x->body_len);
        return;
    }
    fm_exchange_begin(x, 201, "text/plain", NULL);
    for (int i = 0; i < 1000; i++) assert_int_equal(fm_exchange_write(x, "0123456789", 10), FM_OK);
    fm_exchange_end(x);
}

static void gone(void *ctx, fm_exchange *x)
{
    (void)x;
    ++*(int *)ctx;
}

static void replies_of_both_kinds(void **state)
{
    (void)state;
    int             n_gone = 0;
    heard           x      = {0};
    fm_http        *h      = NULL;
    fm_upstream    *u      = NULL;
    char            url[64];
    fm_http_options o = fm_http_options_default();
    o.handle          = handle;
    o.gone            = gone;
    o.ctx             = &n_gone;
    assert_int_equal(fm_loop_create(&x.loop), FM_OK);
    assert_int_equal(fm_http_create(&h, x.loop, &o), FM_OK);
    assert_int_equal(fm_http_listen(h), FM_OK);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/base/", fm_http_port(h));
    assert_int_equal(fm_upstream_create(&u, x.loop, url), FM_OK);
    for (int i = 0; i < 6; i++) {
        const fm_fetch_ask ask = ask_for(&x, i % 2 ? "/pieces" : "/whole");
        fm_str_clear(&x.body);
        assert_non_null(fm_upstream_send(u, &ask));
        fm_loop_run(x.loop);
        assert_string_equal(x.why, "");
        assert_int_equal(x.status, i % 2 ? 201 : 200);
        assert_int_equal(x.body.len, i % 2 ? 10000 : 7);
    }
    assert_int_equal(x.n_done, 6);
    assert_int_equal(fm_http_n_connection(h), 1); /* it was kept */
    assert_int_equal(fm_upstream_n_fetch(u), 0);
    for (x.cancels = 1; x.cancels < 3; x.cancels++) { /* inside a callback */
        const fm_fetch_ask ask = ask_for(&x, "/pieces");
        x.fetch                = fm_upstream_send(u, &ask);
        fm_loop_run(x.loop);
        assert_int_equal(fm_upstream_n_fetch(u), 0);
    }
    assert_int_equal(x.n_done, 6);
    fm_upstream_destroy(u);
    fm_http_destroy(h);
    fm_loop_destroy(x.loop);
    fm_str_fini(&x.body);
}

/* --- a server with scripted replies ---------------------------------------- */

typedef struct {
    int         fd, port;
    const char *reply;
    int         keeps_open; /* after the reply, until the client closes */
    pthread_t   thread;
} sayer;

static void *say(void *arg)
{
    sayer    *s = arg;
    const int c = accept(s->fd, NULL, NULL);
    char      in[4096];
    size_t    n = 0;
    while (n < 7 || !memmem(in, n, "one two", 7)) {
        const ssize_t got = recv(c, in + n, sizeof in - n, 0);
        if (got <= 0) break;
        n += (size_t)got;
    }
    for (const char *at = s->reply; *at; at++) send(c, at, 1, MSG_NOSIGNAL);
    while (s->keeps_open && recv(c, in, sizeof in, 0) > 0) continue;
    close(c);
    return NULL;
}

static void begin_saying(sayer *s, const char *reply, int keeps_open)
{
    struct sockaddr_in at  = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t          len = sizeof at;
    *s = (sayer){.fd = socket(AF_INET, SOCK_STREAM, 0), .reply = reply, .keeps_open = keeps_open};
    assert_int_equal(bind(s->fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(s->fd, 4), 0);
    assert_int_equal(getsockname(s->fd, (struct sockaddr *)&at, &len), 0);
    s->port = ntohs(at.sin_port);
    assert_int_equal(pthread_create(&s->thread, NULL, say, s), 0);
}

static void fetch_from(const char *reply, int keeps_open, heard *x)
{
    sayer        s;
    fm_upstream *u = NULL;
    char         url[64];
    *x = (heard){0};
    begin_saying(&s, reply, keeps_open);
    snprintf(url, sizeof url, "http://127.0.0.1:%d", s.port);
    assert_int_equal(fm_loop_create(&x->loop), FM_OK);
    assert_int_equal(fm_upstream_create(&u, x->loop, url), FM_OK);
    const fm_fetch_ask ask = ask_for(x, "/");
    assert_non_null(fm_upstream_send(u, &ask));
    fm_loop_run(x->loop);
    assert_int_equal(x->n_done, 1);
    fm_upstream_destroy(u);
    fm_loop_destroy(x->loop);
    pthread_join(s.thread, NULL);
    close(s.fd);
}

#define HEAD "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\n"

static void replies_that_are_whole(void **state)
{
    (void)state;
    static const struct {
        const char *reply, *body;
    } whole[] = {
        {HEAD "Content-Length: 3\r\n\r\nabc", "abc"},
        {HEAD "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n2;x=y\r\nbc\r\n0\r\nT: t\r\n\r\n",
         "abc"},
        {HEAD "Connection: close\r\n\r\nabc", "abc"}, /* ends with the connection */
        {"HTTP/1.1 100 Continue\r\n\r\n" HEAD "Content-Length: 0\r\n\r\n", ""},
        {"HTTP/1.0 200 OK\r\nContent-Type: a/b\r\nContent-Length: 1\r\n\r\nx", "x"},
        {"HTTP/1.1 204 No\r\nContent-Type: a/b\r\n\r\n", ""},
    };
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        heard x;
        fetch_from(whole[i].reply, 0, &x);
        if (*x.why) fail_msg("%s: %s", whole[i].reply, x.why);
        assert_int_equal(x.n_head, 1);
        assert_string_equal(x.body.text ? x.body.text : "", whole[i].body);
        fm_str_fini(&x.body);
    }
}

static void replies_that_fail(void **state)
{
    (void)state;
    static const struct {
        const char *reply;
        int         keeps_open;
        const char *why;
    } wrong[] = {
        {"", 0, "closed before"},
        {"HTTP/1.1 200 OK\r\nContent-", 0, "closed before"},
        {HEAD "Content-Length: 5\r\n\r\nabc", 0, "closed before"},
        {HEAD "Transfer-Encoding: chunked\r\n\r\n3\r\nab", 0, "closed before"},
        {HEAD "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 0, "malformed"},
        {"SSH-2.0-nothing\r\n\r\n", 0, "no HTTP"},
        {"HTTP/1.1 2x0 OK\r\n\r\n", 0, "no HTTP"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 0, "no HTTP"},
        {"", 1, "no reply within"},
        {HEAD "Content-Length: 5\r\n\r\nabc", 1, "stopped for longer"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        heard x;
        fetch_from(wrong[i].reply, wrong[i].keeps_open, &x);
        if (!strstr(x.why, wrong[i].why)) fail_msg("%s: %s", wrong[i].reply, x.why);
        fm_str_fini(&x.body);
    }
}

static void nobody_listens(void **state)
{
    (void)state;
    heard        x = {0};
    fm_upstream *u = NULL;
    assert_int_equal(fm_loop_create(&x.loop), FM_OK);
    assert_int_equal(fm_upstream_create(&u, x.loop, "http://127.0.0.1:1"), FM_OK);
    const fm_fetch_ask ask = ask_for(&x, "/");
    assert_non_null(fm_upstream_send(u, &ask));
    assert_int_equal(x.n_done, 0); /* never before it returns */
    fm_loop_run(x.loop);
    assert_string_equal(x.why, "no connection");
    assert_non_null(fm_upstream_send(u, &ask));
    fm_upstream_destroy(u); /* cancels, without a word */
    assert_int_equal(x.n_done, 1);
    static const char *const urls[] = {"",           "a:1",          "ftp://a",    "http://",
                                       "http://a:0", "http://u:p@a", "http://a?x", "http://a#x"};
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++)
        assert_int_not_equal(fm_upstream_create(&u, x.loop, urls[i]), FM_OK);
    fm_loop_destroy(x.loop);
}

/* It may be known later: no reason to refuse it. */
static void a_name_that_nobody_knows(void **state)
{
    (void)state;
    heard        x = {0};
    fm_upstream *u = NULL;
    assert_int_equal(fm_loop_create(&x.loop), FM_OK);
    assert_int_equal(fm_upstream_create(&u, x.loop, "http://no.such.host.invalid"), FM_OK);
    while (fm_upstream_is_pending(u)) usleep(1000);
    const fm_fetch_ask ask = ask_for(&x, "/");
    assert_non_null(fm_upstream_send(u, &ask));
    fm_loop_run(x.loop);
    assert_int_equal(x.n_done, 1);
    assert_string_not_equal(x.why, "no connection");
    fm_upstream_destroy(u);
    fm_loop_destroy(x.loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replies_of_both_kinds),
        cmocka_unit_test(replies_that_are_whole),
        cmocka_unit_test(replies_that_fail),
        cmocka_unit_test(nobody_listens),
        cmocka_unit_test(a_name_that_nobody_knows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
