/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server over real sockets: framing, keep-alive, limits, clients that
 * leave and clients that do not read. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "net/http.h"

/* A server on its own thread: /echo answers with the body, /stream with five
 * pieces, /large with one beyond the limit, /wait never, /flood writes until
 * the client is cut off. */
enum { LIMIT = 1 << 20, LARGE = 3 * LIMIT };
typedef struct {
    fm_loop       *loop;
    fm_http       *http;
    fm_loop_event *bell, *tick;
    pthread_t      thread;
    fm_exchange   *flooding;
    atomic_int     n_gone, n_ended, n_full, what; /* what: 1 stop, 2 drain */
} server;

static void handle(void *ctx, fm_exchange *x)
{
    server *s = ctx;
    if (!strcmp(x->path, "/echo")) {
        fm_exchange_reply(x, 200, "text/plain", "X-More: yes\r\n", x->body, x->body_len);
    } else if (!strcmp(x->path, "/stream")) {
        fm_exchange_begin(x, 200, "text/plain", NULL);
        for (int i = 0; i < 5; i++) assert_int_equal(fm_exchange_write(x, "piece ", 6), FM_OK);
        fm_exchange_end(x);
    } else if (!strcmp(x->path, "/large")) {
        char *piece = calloc(1, LARGE);
        fm_exchange_begin(x, 200, "text/plain", NULL);
        assert_int_equal(fm_exchange_write(x, piece, LARGE), FM_OK);
        assert_true(fm_exchange_unread(x) <= LARGE + 64);
        fm_exchange_end(x);
        free(piece);
    } else if (!strcmp(x->path, "/flood")) {
        fm_exchange_begin(x, 200, "text/plain", NULL);
        s->flooding = x;
    } else if (strcmp(x->path, "/wait")) {
        fm_exchange_reply(x, 404, "text/plain", NULL, "no", 2);
    }
}

static void gone(void *ctx, fm_exchange *x)
{
    server *s = ctx;
    if (s->flooding == x) s->flooding = NULL;
    s->n_gone++;
}

static void ended(void *ctx, const fm_exchange *x)
{
    (void)x;
    ((server *)ctx)->n_ended++;
}

static void on_tick(void *ctx)
{
    static const char block[65536];
    server           *s = ctx;
    for (int i = 0; s->flooding && i < 8; i++)
        if (fm_exchange_write(s->flooding, block, sizeof block) == FM_E_FULL) {
            s->flooding = NULL;
            s->n_full++;
        }
}

static void on_bell(void *ctx)
{
    server *s = ctx;
    if (s->what == 1) fm_loop_stop(s->loop);
    if (s->what == 2) fm_http_drain(s->http);
}

static void *run(void *arg)
{
    fm_loop_run(((server *)arg)->loop);
    return NULL;
}

static int set_up(void **state)
{
    server         *s    = calloc(1, sizeof *s);
    fm_http_options opt  = fm_http_options_default();
    opt.handle           = handle;
    opt.gone             = gone;
    opt.ended            = ended;
    opt.ctx              = s;
    opt.max_head_bytes   = 2048;
    opt.max_body_bytes   = 100000;
    opt.max_unread_bytes = LIMIT;
    opt.head_seconds     = 0.3;
    opt.body_seconds     = 0.3;
    assert_int_equal(fm_loop_create(&s->loop), FM_OK);
    assert_int_equal(fm_http_create(&s->http, s->loop, &opt), FM_OK);
    assert_int_equal(fm_loop_bell(&s->bell, s->loop, on_bell, s), FM_OK);
    assert_int_equal(fm_loop_timer(&s->tick, s->loop, 0.005, on_tick, s), FM_OK);
    assert_int_equal(fm_http_listen(s->http), FM_OK);
    pthread_create(&s->thread, NULL, run, s);
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    server *s = *state;
    s->what   = 1;
    fm_loop_ring(s->bell);
    pthread_join(s->thread, NULL);
    fm_http_destroy(s->http);
    fm_loop_event_destroy(s->bell);
    fm_loop_event_destroy(s->tick);
    fm_loop_destroy(s->loop);
    free(s);
    return 0;
}

static int dial(const server *s)
{
    const struct sockaddr_in to    = {.sin_family = AF_INET,
                                      .sin_port   = htons((uint16_t)fm_http_port(s->http)),
                                      .sin_addr   = {htonl(INADDR_LOOPBACK)}};
    const int                fd    = socket(AF_INET, SOCK_STREAM, 0);
    const struct timeval     limit = {5, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static void put(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* Reads until `want` is there (or the end); a static copy. */
static const char *get(int fd, const char *want)
{
    static char in[300000];
    size_t      len = 0;
    in[0]           = 0;
    while (!want || !strstr(in, want)) {
        const ssize_t n = recv(fd, in + len, sizeof in - 1 - len, 0);
        if (n <= 0) break;
        len += (size_t)n;
        in[len] = 0;
    }
    if (want && !strstr(in, want)) fail_msg("\"%s\" does not contain \"%s\"", in, want);
    return in;
}

static void wait_for(atomic_int *n, int want)
{
    for (int i = 0; i < 500 && *n < want; i++) usleep(10000);
    assert_int_equal(*n, want);
}

#define HOST "Host: a\r\n"

static void test_keep_alive_and_pipelining(void **state)
{
    const int fd = dial(*state);
    put(fd, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello");
    const char *in = get(fd, "hello");
    assert_non_null(strstr(in, "Content-Length: 5\r\n"));
    assert_non_null(strstr(in, "X-More: yes\r\n"));
    put(fd,
        "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\noneGET /nowhere HTTP/1.1\r\n" HOST
        "\r\nPOST /echo HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nend");
    in = get(fd, "end");
    assert_true(strstr(in, "one") < strstr(in, "404"));
    close(fd);
}

static void test_bytes_one_by_one(void **state)
{
    const int         fd     = dial(*state);
    static const char text[] = "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
                               "3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nT: u\r\n\r\n";
    for (size_t i = 0; i < strlen(text); i++)
        assert_int_equal(send(fd, text + i, 1, MSG_NOSIGNAL), 1);
    get(fd, "abc0123456789");
    close(fd);
}

static void test_stream(void **state)
{
    int fd = dial(*state);
    put(fd, "GET /stream HTTP/1.1\r\n" HOST "\r\n");
    const char *in = get(fd, "\r\n0\r\n\r\n");
    assert_non_null(strstr(in, "6\r\npiece \r\n6\r\npiece \r\n"));
    put(fd, "HEAD /stream HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");
    in = get(fd, NULL);
    assert_null(strstr(in, "piece"));
    close(fd);
    fd = dial(*state); /* HTTP/1.0: the end is the close */
    put(fd, "GET /stream HTTP/1.0\r\n\r\n");
    assert_non_null(strstr(get(fd, NULL), "\r\n\r\npiece piece piece piece piece "));
    close(fd);
}

static void test_expect_continue(void **state)
{
    const int fd = dial(*state);
    put(fd, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    get(fd, "100 Continue\r\n\r\n");
    put(fd, "hi");
    get(fd, "hi");
    close(fd);
}

static void refused(server *s, const char *head, const char *body, const char *status)
{
    const int fd = dial(s);
    put(fd, head);
    if (body) (void)!send(fd, body, strlen(body), MSG_NOSIGNAL);
    const char *in = get(fd, NULL);
    if (!strstr(in, status) || !strstr(in, "Connection: close")) fail_msg("%s: %s", status, in);
    close(fd);
}

static void test_limits(void **state)
{
    char   *big = malloc(200001);
    server *s   = *state;
    memset(big, 'x', 200000);
    big[200000] = 0;
    refused(s, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 200000\r\n\r\n", big, "413");
    refused(s, "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n30d40\r\n", big,
            "413");
    refused(s, "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nxyz\r\n", NULL,
            "400");
    refused(s, "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n",
            NULL, "400");
    big[4000] = 0;
    refused(s, "GET / HTTP/1.1\r\nX: ", big, "431");
    refused(s, "complete nonsense\r\n\r\n", NULL, "400");
    free(big);
}

static void test_slow_requests_time_out(void **state)
{
    refused(*state, "GET / HTT", NULL, "408");
    refused(*state, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\nab", NULL, "408");
}

static void test_client_leaves(void **state)
{
    server *s  = *state;
    int     fd = dial(s);
    put(fd, "GET /wait HTTP/1.1\r\n" HOST "\r\n");
    usleep(50000);
    assert_int_equal(s->n_gone, 0);
    close(fd);
    wait_for(&s->n_gone, 1);
    wait_for(&s->n_ended, 1);
    fd = dial(s); /* with a reset */
    put(fd, "GET /wait HTTP/1.1\r\n" HOST "\r\n");
    usleep(50000);
    const struct linger now = {1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(fd);
    wait_for(&s->n_gone, 2);
}

static void test_slow_reader_is_cut_off(void **state)
{
    server   *s  = *state;
    const int fd = dial(s), other = dial(s);
    put(fd, "GET /flood HTTP/1.1\r\n" HOST "\r\n");
    wait_for(&s->n_full, 1);
    assert_int_equal(s->n_gone, 0);
    put(other, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nok");
    get(other, "ok");
    close(fd);
    close(other);
}

/* The limit is for what is left unread, not for what is written at once. */
static void test_large_piece_arrives(void **state)
{
    static char in[65536];
    server     *s   = *state;
    const int   fd  = dial(s);
    size_t      len = 0;
    put(fd, "GET /large HTTP/1.0\r\n" HOST "\r\n");
    for (ssize_t n; (n = recv(fd, in, sizeof in, 0)) > 0;) len += (size_t)n;
    assert_true(len > LARGE);
    assert_int_equal(s->n_gone, 0);
    close(fd);
}

static void test_drain(void **state)
{
    server   *s    = *state;
    const int idle = dial(s), busy = dial(s);
    put(idle, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nok");
    get(idle, "ok");
    put(busy, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nx");
    usleep(50000);
    s->what = 2;
    fm_loop_ring(s->bell);
    char c;
    assert_int_equal(recv(idle, &c, 1, 0), 0);
    put(busy, "y");
    assert_non_null(strstr(get(busy, NULL), "Connection: close"));
    close(idle);
    close(busy);
}

static void test_storm(void **state)
{
    server *s = *state;
    for (int i = 0; i < 300; i++) {
        const int fd = dial(s);
        if (i % 3) put(fd, i % 2 ? "GET /wait HTTP/1.1\r\n" HOST "\r\n" : "GET /wa");
        close(fd);
    }
    const int fd = dial(s);
    put(fd, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nok");
    get(fd, "ok");
    close(fd);
}

static void test_address_in_use(void **state)
{
    server         *s   = *state;
    fm_http        *two = NULL;
    fm_http_options opt = fm_http_options_default();
    opt.port            = fm_http_port(s->http);
    assert_int_equal(fm_http_create(&two, s->loop, &opt), FM_E_IO);
    assert_non_null(strstr(fm_why(), "cannot listen"));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_keep_alive_and_pipelining),
        CASE(test_bytes_one_by_one),
        CASE(test_stream),
        CASE(test_expect_continue),
        CASE(test_limits),
        CASE(test_slow_requests_time_out),
        CASE(test_client_leaves),
        CASE(test_slow_reader_is_cut_off),
        CASE(test_large_piece_arrives),
        CASE(test_drain),
        CASE(test_storm),
        CASE(test_address_in_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
