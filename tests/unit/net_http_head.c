/* SPDX-License-Identifier: Apache-2.0 */
/* Request heads: what is read, and what is refused with which status. */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "net/http_head.h"

static int parse(fm_http_head *h, char **text, const char *from, size_t len)
{
    const char *why = "";
    *text           = malloc(len + 1); /* exactly: a read past the end shows */
    memcpy(*text, from, len);
    (*text)[len]     = 0;
    const int status = fm_http_head_parse(h, *text, len, &why);
    if (status) assert_true(strlen(why) > 0);
    return status;
}

static void test_reads(void **state)
{
    (void)state;
    fm_http_head h;
    char        *text;
    const char   in[] =
        "POST /v1/a%20b?x=1&y HTTP/1.1\r\nHost: a\r\nContent-Length:  12 \r\nX-A: b\t c\r\n\r\n";
    assert_int_equal(parse(&h, &text, in, strlen(in)), 0);
    assert_string_equal(h.method, "POST");
    assert_string_equal(h.path, "/v1/a b");
    assert_string_equal(h.query, "x=1&y");
    assert_string_equal(fm_http_head_get(&h, "x-a"), "b\t c");
    assert_null(fm_http_head_get(&h, "x"));
    assert_int_equal(h.content_length, 12);
    assert_true(h.keep_alive && !h.chunked && !h.expects_continue && h.minor == 1);
    free(text);
}

static void test_connection(void **state)
{
    (void)state;
    static const struct {
        const char *head;
        int         keep;
    } in[] = {{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 1},
              {"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 0},
              {"GET / HTTP/1.1\r\nHost: a\r\nConnection: te, Close\r\n\r\n", 0},
              {"GET / HTTP/1.0\r\n\r\n", 0},
              {"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", 1},
              {"GET http://h:80/ HTTP/1.1\r\nHost: a\r\n\r\n", 1}};
    for (size_t i = 0; i < sizeof in / sizeof in[0]; i++) {
        fm_http_head h;
        char        *text;
        assert_int_equal(parse(&h, &text, in[i].head, strlen(in[i].head)), 0);
        assert_int_equal(h.keep_alive, in[i].keep);
        assert_string_equal(h.path, "/");
        free(text);
    }
}

#define OK1 "GET / HTTP/1.1\r\nHost: a\r\n"

static void test_refuses(void **state)
{
    (void)state;
    static const struct {
        const char *head;
        int         status;
    } in[] = {
        {"GET /\r\n\r\n", 400},
        {"\r\n", 400},
        {"GET / HTTP/2.0\r\n\r\n", 505},
        {"GET / FTP/1.1\r\n\r\n", 400},
        {"G T / HTTP/1.1\r\n\r\n", 400},
        {"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET x HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET /%00 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET /%4 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\n\r\n", 400}, /* no Host */
        {OK1 "Host: b\r\n\r\n", 400},
        {OK1 "No colon\r\n\r\n", 400},
        {OK1 "Space : x\r\n\r\n", 400},
        {OK1 ": x\r\n\r\n", 400},
        {OK1 "A: b\r\n folded\r\n\r\n", 400},
        {OK1 "A: b\nB: c\r\n\r\n", 400},
        {OK1 "A: b\x01\r\n\r\n", 400},
        {OK1 "Content-Length: -1\r\n\r\n", 400},
        {OK1 "Content-Length: +1\r\n\r\n", 400},
        {OK1 "Content-Length: 1, 1\r\n\r\n", 400},
        {OK1 "Content-Length: \r\n\r\n", 400},
        {OK1 "Content-Length: 99999999999999999999\r\n\r\n", 400},
        {OK1 "Content-Length: 1\r\nContent-Length: 2\r\n\r\n", 400},
        {OK1 "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        {OK1 "Transfer-Encoding: gzip, chunked\r\n\r\n", 501},
        {OK1 "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 501},
        {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        {OK1 "Expect: miracles\r\n\r\n", 417},
    };
    for (size_t i = 0; i < sizeof in / sizeof in[0]; i++) {
        fm_http_head h;
        char        *text;
        const int    status = parse(&h, &text, in[i].head, strlen(in[i].head));
        if (status != in[i].status) fail_msg("%d, want %d: %s", status, in[i].status, in[i].head);
        free(text);
    }
}

static void test_too_many_fields(void **state)
{
    (void)state;
    char         big[8192] = OK1;
    fm_http_head h;
    char        *text;
    for (int i = 0; i < FM_HTTP_MAX_FIELDS; i++) strcat(big, "A: b\r\n");
    strcat(big, "\r\n");
    assert_int_equal(parse(&h, &text, big, strlen(big)), 431);
    free(text);
}

/* Any bytes at all: a status or 0, never a read outside. */
static void test_garbage(void **state)
{
    (void)state;
    static const char *const part[] = {"GET",
                                       "POST",
                                       " ",
                                       "/",
                                       "HTTP/1.1",
                                       "\r\n",
                                       "\r",
                                       "\n",
                                       ":",
                                       "Host",
                                       "a",
                                       "%",
                                       "%4",
                                       "Content-Length",
                                       "Transfer-Encoding",
                                       "chunked",
                                       "1",
                                       "?",
                                       "\t",
                                       "\x7f",
                                       "\xff"};
    for (uint64_t seed = 0; seed < 20000; seed++) {
        char   in[512];
        size_t len = 0;
        for (uint64_t i = 0, n = fm_rng_u32(seed, 0) % 24; i < n; i++) {
            const char *p = part[fm_rng_u32(seed, i + 1) % (sizeof part / sizeof part[0])];
            memcpy(in + len, p, strlen(p));
            len += strlen(p);
        }
        if (seed % 3 == 0) in[len++] = 0;
        memcpy(in + len, "\r\n\r\n", 4);
        len += 4;
        fm_http_head h;
        char        *text;
        (void)parse(&h, &text, in, len);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads),   cmocka_unit_test(test_connection),
        cmocka_unit_test(test_refuses), cmocka_unit_test(test_too_many_fields),
        cmocka_unit_test(test_garbage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
