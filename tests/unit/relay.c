/* SPDX-License-Identifier: Apache-2.0 */
/* What a router and a server say of a stream: every list and frame comes back as it
 * was written, however the network cut it, and what is none is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "llm/relay/frame.h"
#include "llm/relay/stream.h"

static void lists_come_back(void **state)
{
    (void)state;
    fm_relay_tokens a = {0}, b = {0};
    fm_str          text = {0};
    fm_relay_tokens_add(&a, 2, 7);
    fm_relay_tokens_add(&a, 0, 0);
    fm_relay_tokens_add(&a, 0, INT32_MAX);
    fm_relay_tokens_write(&text, &a);
    assert_string_equal(text.text, "0:0,2147483647 2:7");
    assert_int_equal(fm_relay_tokens_read(&b, text.text, text.len), FM_OK);
    assert_int_equal(fm_relay_tokens_total(&b), 3);
    assert_int_equal(fm_relay_tokens_count(&b, 1), 0);
    assert_int_equal(b.answer[2].id[0], 7);
    assert_int_equal(fm_relay_tokens_read(&b, "", 0), FM_OK);
    fm_relay_tokens_fini(&a);
    fm_relay_tokens_fini(&b);
    fm_str_fini(&text);
}

static void wrong_lists_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"x",
                                        "0",
                                        "0:",
                                        "0:1,",
                                        ":1",
                                        "0:-1",
                                        "0:1  ",
                                        "0:1;2:3",
                                        "0:2147483648",
                                        "4096:1",
                                        "0:1 ",
                                        "0: 1",
                                        "99999999999999999999:1"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        fm_relay_tokens t  = {0};
        const fm_status rc = fm_relay_tokens_read(&t, wrong[i], strlen(wrong[i]));
        if (strcmp(wrong[i], "0:1 ") && rc != FM_E_FORMAT) fail_msg("\"%s\" was read", wrong[i]);
        fm_relay_tokens_fini(&t);
    }
}

typedef struct {
    fm_str data;
    int    n_frame, n_event, stops_at;
} heard;

static int hear(void *ctx, const fm_relay_frame *f)
{
    heard *h = ctx;
    fm_str_add(&h->data, f->data, f->len);
    h->n_event = f->n_event;
    return ++h->n_frame != h->stops_at;
}

static void write_three(fm_str *wire)
{
    fm_relay_tokens fresh = {0};
    fm_relay_tokens_add(&fresh, 0, 5);
    fm_relay_frame_write(wire, &fresh, 1, "data: a\n\n", 9);
    fm_relay_tokens_clear(&fresh);
    fm_relay_frame_write(wire, &fresh, 2, "", 0);
    fm_relay_tokens_add(&fresh, 1, 6);
    fm_relay_frame_write(wire, &fresh, 7, "3 4 0:1\n", 8); /* looks like a frame itself */
    fm_relay_tokens_fini(&fresh);
}

static void frames_come_back_however_they_are_cut(void **state)
{
    (void)state;
    fm_str wire = {0};
    write_three(&wire);
    for (size_t cut = 1; cut <= wire.len; cut++) {
        fm_relay_reader r = {{0}};
        fm_relay_tokens t = {0};
        heard           h = {0};
        for (size_t at = 0; at < wire.len; at += cut) {
            const size_t n = wire.len - at < cut ? wire.len - at : cut;
            assert_int_equal(fm_relay_reader_push(&r, wire.text + at, n, &t, hear, &h), FM_OK);
        }
        assert_true(fm_relay_reader_is_between(&r));
        assert_int_equal(h.n_frame, 3);
        assert_int_equal(h.n_event, 7);
        assert_string_equal(h.data.text, "data: a\n\n3 4 0:1\n");
        assert_int_equal(t.answer[0].id[0], 5);
        assert_int_equal(t.answer[1].id[0], 6);
        fm_str_fini(&h.data);
        fm_relay_reader_fini(&r);
        fm_relay_tokens_fini(&t);
    }
    fm_str_fini(&wire);
}

/* What the client has and what is known of the tokens must not differ. */
static void half_a_frame_says_nothing(void **state)
{
    (void)state;
    fm_str wire = {0};
    write_three(&wire);
    fm_relay_reader r = {{0}};
    fm_relay_tokens t = {0};
    heard           h = {0};
    assert_int_equal(fm_relay_reader_push(&r, wire.text, 12, &t, hear, &h), FM_OK);
    assert_int_equal(h.n_frame, 0);
    assert_int_equal(fm_relay_tokens_total(&t), 0);
    assert_false(fm_relay_reader_is_between(&r));
    fm_relay_reader_fini(&r);
    fm_relay_tokens_fini(&t);
    fm_str_fini(&wire);
}

static void wrong_frames_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"data: x\n\n",  "5 x \nhello",    "5\n",     "-1 0 \n",
                                        "5 0 9\nhello", "999999999 0 \n", "1 -2 \nx"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        fm_relay_reader r  = {{0}};
        fm_relay_tokens t  = {0};
        heard           h  = {0};
        const fm_status rc = fm_relay_reader_push(&r, wrong[i], strlen(wrong[i]), &t, hear, &h);
        if (rc != FM_E_FORMAT) fail_msg("\"%s\" was read", wrong[i]);
        fm_relay_reader_fini(&r);
        fm_relay_tokens_fini(&t);
        fm_str_fini(&h.data);
    }
}

static void headers_come_back(void **state)
{
    (void)state;
    char                  text[FM_RELAY_HEADER_ROOM], name[64];
    const fm_relay_stream s = {0x0123456789abcdef, 1700000000};
    const fm_relay_resume r = {123456, 78};
    fm_relay_stream       s2;
    fm_relay_resume       r2;
    fm_relay_stream_write(text, &s);
    assert_true(fm_relay_stream_read(&s2, text));
    assert_true(s2.key == s.key && s2.created == s.created);
    fm_relay_resume_write(text, &r);
    assert_true(fm_relay_resume_read(&r2, text));
    assert_true(r2.n_byte == r.n_byte && r2.n_event == r.n_event);
    static const char *const wrong[] = {"",
                                        "x",
                                        "0123456789abcdef",
                                        "0123456789abcdef x",
                                        "0123456789abcdef 1 2",
                                        "-123456789abcdef 1"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_false(fm_relay_stream_read(&s2, wrong[i]));
        assert_false(fm_relay_resume_read(&r2, wrong[i]));
    }
    assert_false(fm_relay_stream_read(&s2, NULL));
    fm_relay_name(name, sizeof name, "resp_", s.key);
    assert_int_equal(strlen(name), 5 + 32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_come_back),
        cmocka_unit_test(wrong_lists_are_refused),
        cmocka_unit_test(frames_come_back_however_they_are_cut),
        cmocka_unit_test(half_a_frame_says_nothing),
        cmocka_unit_test(wrong_frames_are_refused),
        cmocka_unit_test(headers_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
