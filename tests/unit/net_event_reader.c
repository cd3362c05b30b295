/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net/event_reader.h"

static void collect(void *ctx, const char *data, size_t len)
{
    assert_int_equal(data[len], 0);
    fm_str_printf(ctx, "<%.*s>", (int)len, data);
}

static const char stream[] = ": a comment\n"
                             "data: one\n\n"
                             "event: x\r\nid: 7\r\ndata:two\r\n\r\n"
                             "data: three\ndata:  four\n\n"
                             "\n\n"
                             "data:\n\n"
                             "retry: 10\n\n"
                             "data: \xe2\x82\xac [DONE]\n\n"
                             "data: never finished";
static const char events[] = "<one><two><three\n four><><\xe2\x82\xac [DONE]>";

static void every_cut_gives_the_same_events(void **state)
{
    (void)state;
    const size_t n = sizeof stream - 1;
    for (size_t i = 0; i <= n; i++)
        for (size_t j = i; j <= n; j += 7) {
            fm_event_reader r   = {0};
            fm_str          got = {0};
            assert_int_equal(fm_event_reader_push(&r, stream, i, collect, &got), FM_OK);
            assert_int_equal(fm_event_reader_push(&r, stream + i, j - i, collect, &got), FM_OK);
            assert_int_equal(fm_event_reader_push(&r, stream + j, n - j, collect, &got), FM_OK);
            assert_string_equal(got.text, events);
            fm_str_fini(&got);
            fm_event_reader_fini(&r);
        }
}

static void byte_by_byte(void **state)
{
    (void)state;
    fm_event_reader r   = {0};
    fm_str          got = {0};
    for (size_t i = 0; i < sizeof stream - 1; i++)
        assert_int_equal(fm_event_reader_push(&r, stream + i, 1, collect, &got), FM_OK);
    assert_string_equal(got.text, events);
    fm_str_fini(&got);
    fm_event_reader_fini(&r);
}

static void an_endless_event_is_refused(void **state)
{
    (void)state;
    enum { PART = 1 << 20 };
    char           *part = malloc(PART);
    fm_event_reader r    = {0};
    fm_status       rc   = FM_OK;
    int             n    = 0;
    memset(part, 'x', PART);
    while (rc == FM_OK && n < 1000) {
        rc = fm_event_reader_push(&r, part, PART, collect, NULL);
        n++;
    }
    assert_int_equal(rc, FM_E_FORMAT);
    assert_in_range(n, 60, 70);
    fm_event_reader_fini(&r);
    free(part);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cut_gives_the_same_events),
        cmocka_unit_test(byte_by_byte),
        cmocka_unit_test(an_endless_event_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
