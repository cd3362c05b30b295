/* SPDX-License-Identifier: Apache-2.0 */
/* The client against a server that says exactly what a test wants, faults
 * included. */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/str.h"
#include "net/client.h"

enum { MOST_REPLIES = 8, PAUSE_MS = 30 };

/* Replies in order, a connection at a time; '|' in a reply is a pause, NULL
 * closes the connection without a word. */
typedef struct {
    const char *reply[MOST_REPLIES];
    int         n_reply, keep; /* keep: more requests on the same connection */
    int         flood;         /* never stop talking after a reply */
    int         fd, n_connection;
    char        url[64], asked[4096];
    pthread_t   thread;
} server;

static int read_request(server *s, int fd)
{
    size_t n = 0;
    for (;;) {
        const ssize_t got = read(fd, s->asked + n, sizeof s->asked - 1 - n);
        if (got <= 0) return 0;
        s->asked[n += (size_t)got] = 0;
        const char *body           = strstr(s->asked, "\r\n\r\n");
        const char *len            = strstr(s->asked, "Content-Length: ");
        if (body && strlen(body + 4) >= (len ? (size_t)atoi(len + 16) : 0)) return 1;
    }
}

static void say(int fd, const char *text)
{
    while (*text) {
        const size_t part = strcspn(text, "|");
        if (send(fd, text, part, MSG_NOSIGNAL) < 0) return;
        text += part;
        if (*text == '|') {
            nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000L}, NULL);
            text++;
        }
    }
}

static void flood(int fd)
{
    static char part[1 << 16];
    memset(part, 'x', sizeof part);
    while (send(fd, part, sizeof part, MSG_NOSIGNAL) > 0) continue;
}

static void *serve(void *ctx)
{
    server *s = ctx;
    for (int i = 0; i < s->n_reply;) {
        const int fd = accept(s->fd, NULL, NULL);
        if (fd < 0) break;
        s->n_connection++;
        while (i < s->n_reply && read_request(s, fd)) {
            if (!s->reply[i]) {
                i++;
                break;
            }
            say(fd, s->reply[i++]);
            if (s->flood) flood(fd);
            if (!s->keep) break;
        }
        close(fd);
    }
    return NULL;
}

static void start(server *s)
{
    struct sockaddr_in at   = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t          size = sizeof at;
    s->fd                   = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(s->fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(s->fd, 8), 0);
    assert_int_equal(getsockname(s->fd, (struct sockaddr *)&at, &size), 0);
    snprintf(s->url, sizeof s->url, "http://127.0.0.1:%d/prefix/", ntohs(at.sin_port));
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void stop(server *s)
{
    shutdown(s->fd, SHUT_RDWR);
    close(s->fd);
    pthread_join(s->thread, NULL);
}

/* ---- what the client heard ---- */

typedef struct {
    fm_str events, body, why;
    double when[16];
    double sent, ended;
    int    n_event, status, n_done;
} heard;

static void on_event(void *ctx, const char *data, size_t len, double now)
{
    heard *h = ctx;
    fm_str_printf(&h->events, "<%.*s>", (int)len, data);
    if (h->n_event < 16) h->when[h->n_event++] = now;
}

static void on_done(void *ctx, const fm_client_reply *r)
{
    heard *h  = ctx;
    h->status = r->status;
    h->sent   = r->sent;
    h->ended  = r->ended;
    h->n_done++;
    fm_str_clear(&h->body);
    fm_str_puts(&h->body, r->body);
    fm_str_puts(&h->why, r->why ? r->why : "");
}

static void forget(heard *h)
{
    fm_str_fini(&h->events);
    fm_str_fini(&h->body);
    fm_str_fini(&h->why);
    *h = (heard){0};
}

static void ask(fm_client *c, heard *h, const char *body)
{
    const fm_client_call call = {.path     = "/there",
                                 .body     = body,
                                 .body_len = body ? strlen(body) : 0,
                                 .event    = on_event,
                                 .done     = on_done,
                                 .ctx      = h};
    assert_int_equal(fm_client_send(c, &call), FM_OK);
}

static heard ask_once(server *s, const char *body, double timeout)
{
    heard      h = {0};
    fm_client *c = NULL;
    start(s);
    assert_int_equal(fm_client_create(&c, s->url, timeout), FM_OK);
    fm_client_header(c, "X-Test", "yes");
    ask(c, &h, body);
    assert_int_equal(fm_client_run(c), FM_OK);
    fm_client_destroy(c);
    stop(s);
    assert_int_equal(h.n_done, 1);
    return h;
}

/* ---- tests ---- */

#define CHUNKED "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

static void streams_with_times(void **state)
{
    (void)state;
    server s = {.reply   = {CHUNKED "9\r\ndata: a\n\n\r\n|4\r\ndata\r\n|5\r\n: b\n\n\r\n0\r\n\r\n"},
                .n_reply = 1};
    heard  h = ask_once(&s, "{\"x\": 1}", 10);
    assert_string_equal(h.events.text, "<a><b>");
    assert_int_equal(h.status, 200);
    assert_int_equal(h.body.len, 0);
    assert_true(h.when[1] - h.when[0] >= 1.8 * PAUSE_MS / 1000.0);
    assert_true(h.sent <= h.when[0] && h.ended >= h.when[1]);
    assert_non_null(strstr(s.asked, "POST /prefix/there HTTP/1.1\r\n"));
    assert_non_null(strstr(s.asked, "X-Test: yes\r\n"));
    assert_non_null(strstr(s.asked, "Host: 127.0.0.1:"));
    assert_non_null(strstr(s.asked, "{\"x\": 1}"));
    forget(&h);
}

static void reads_to_the_end_of_the_connection(void **state)
{
    (void)state;
    server s = {.reply = {"HTTP/1.0 200 OK\r\n\r\ndata: a\n\n|data: b\n\n"}, .n_reply = 1};
    heard  h = ask_once(&s, NULL, 10);
    assert_string_equal(h.events.text, "<a><b>");
    assert_int_equal(h.status, 200);
    assert_non_null(strstr(s.asked, "GET /prefix/there"));
    forget(&h);
}

static void an_error_status_brings_its_body(void **state)
{
    (void)state;
    server s = {.reply   = {"HTTP/1.1 503 Busy\r\nContent-Length: 9\r\n\r\ndata: no\n"},
                .n_reply = 1};
    heard  h = ask_once(&s, "{}", 10);
    assert_int_equal(h.status, 503);
    assert_string_equal(h.body.text, "data: no\n");
    assert_null(h.events.text);
    forget(&h);
}

static void faults_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *reply, *why;
    } fault[] = {
        {CHUNKED "9\r\ndata: a\n\n\r\n", "before the answer was whole"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort", "before the answer was whole"},
        {"this is no HTTP\r\n\r\n", "no HTTP"},
        {CHUNKED "zz\r\n", "no HTTP"},
        {NULL, "before the answer was whole"},
    };
    for (size_t i = 0; i < sizeof fault / sizeof fault[0]; i++) {
        server s = {.reply = {fault[i].reply}, .n_reply = 1};
        heard  h = ask_once(&s, "{}", 10);
        assert_int_equal(h.status, 0);
        if (!strstr(h.why.text, fault[i].why)) fail_msg("fault %zu: %s", i, h.why.text);
        forget(&h);
    }
}

static void an_endless_reply_is_given_up(void **state)
{
    (void)state;
    static const char *const head[] = {"HTTP/1.1 200 OK\r\n\r\ndata: ",
                                       "HTTP/1.1 500 Oh\r\nContent-Length: 99999999999\r\n\r\n"};
    for (int i = 0; i < 2; i++) {
        server s = {.reply = {head[i]}, .n_reply = 1, .flood = 1};
        heard  h = ask_once(&s, "{}", 10);
        assert_int_equal(h.status, 0);
        assert_non_null(strstr(h.why.text, "longer than this client reads"));
        forget(&h);
    }
}

static void silence_ends(void **state)
{
    (void)state;
    server s = {.reply = {"||||||||||"}, .n_reply = 1};
    heard  h = ask_once(&s, "{}", 0.1);
    assert_int_equal(h.status, 0);
    assert_non_null(strstr(h.why.text, "time limit"));
    forget(&h);
}

/* What is heard of a call that reaches no server. */
static heard ask_in_vain(const char *url)
{
    heard      h = {0};
    fm_client *c = NULL;
    assert_int_equal(fm_client_create(&c, url, 5), FM_OK);
    ask(c, &h, NULL);
    assert_int_equal(fm_client_run(c), FM_OK);
    assert_int_equal(h.n_done, 1);
    assert_int_equal(h.status, 0);
    fm_client_destroy(c);
    return h;
}

static void nobody_listens(void **state)
{
    (void)state;
    heard h = ask_in_vain("http://127.0.0.1:1");
    assert_string_equal(h.why.text, "no connection");
    forget(&h);
}

static void a_name_that_nobody_knows(void **state)
{
    (void)state;
    heard h = ask_in_vain("http://no..such.host.invalid:1");
    assert_null(strstr(h.why.text, "connection"));
    forget(&h);
}

#define SMALL "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ndata: a\n\n"

static void connections_are_used_again(void **state)
{
    (void)state;
    server     s = {.reply = {SMALL, SMALL, SMALL}, .n_reply = 3, .keep = 1};
    heard      h = {0};
    fm_client *c = NULL;
    start(&s);
    assert_int_equal(fm_client_create(&c, s.url, 10), FM_OK);
    for (int i = 0; i < 3; i++) {
        ask(c, &h, "{}");
        assert_int_equal(fm_client_run(c), FM_OK);
    }
    assert_string_equal(h.events.text, "<a><a><a>");
    assert_int_equal(h.n_done, 3);
    assert_int_equal(s.n_connection, 1);
    fm_client_destroy(c);
    stop(&s);
    forget(&h);
}

/* The server closes a kept connection just as the second call uses it. */
static void a_closed_connection_is_tried_once_more(void **state)
{
    (void)state;
    server     s = {.reply = {SMALL, NULL, SMALL}, .n_reply = 3, .keep = 1};
    heard      h = {0};
    fm_client *c = NULL;
    start(&s);
    assert_int_equal(fm_client_create(&c, s.url, 10), FM_OK);
    for (int i = 0; i < 2; i++) {
        ask(c, &h, "{}");
        assert_int_equal(fm_client_run(c), FM_OK);
    }
    assert_string_equal(h.events.text, "<a><a>");
    assert_int_equal(h.status, 200);
    assert_int_equal(s.n_connection, 2);
    fm_client_destroy(c);
    stop(&s);
    forget(&h);
}

static void count(void *ctx) { ++*(int *)ctx; }

static void timers_run_and_end(void **state)
{
    (void)state;
    int        n = 0;
    fm_client *c = NULL;
    assert_int_equal(fm_client_create(&c, "http://127.0.0.1:1", 5), FM_OK);
    assert_int_equal(fm_client_run(c), FM_OK);
    for (int i = 0; i < 3; i++) assert_int_equal(fm_client_after(c, 0.01 * i, count, &n), FM_OK);
    assert_int_equal(fm_client_run(c), FM_OK);
    assert_int_equal(n, 3);
    fm_client_destroy(c);
}

static void addresses_are_checked(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "127.0.0.1:80",
                                      "http://",
                                      "ftp://host/",

                                      "http://host:99999999/",
                                      "http://a b/"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        fm_client *c = NULL;
        if (fm_client_create(&c, bad[i], 1) == FM_OK) fail_msg("\"%s\" was taken", bad[i]);
        assert_null(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_with_times),
        cmocka_unit_test(reads_to_the_end_of_the_connection),
        cmocka_unit_test(an_error_status_brings_its_body),
        cmocka_unit_test(faults_are_named),
        cmocka_unit_test(an_endless_reply_is_given_up),
        cmocka_unit_test(silence_ends),
        cmocka_unit_test(nobody_listens),
        cmocka_unit_test(a_name_that_nobody_knows),
        cmocka_unit_test(connections_are_used_again),
        cmocka_unit_test(a_closed_connection_is_tried_once_more),
        cmocka_unit_test(timers_run_and_end),
        cmocka_unit_test(addresses_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
