/* SPDX-License-Identifier: Apache-2.0 */
/* Stop strings: cases by hand, and that chunks do not matter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above */
#include <cmocka.h>

#include "base/rng.h"
#include "llm/text/stop.h"

enum { MAX_STOPS = 4 };

static void check(const char *const *stop, int n_stop, int keep, const char *text, const char *want,
                  int want_match)
{
    fm_stop_filter f;
    fm_str         out = {0};
    fm_stop_init(&f, stop, n_stop, keep);
    assert_int_equal(fm_stop_push(&f, text, strlen(text), &out), want_match);
    fm_stop_end(&f, &out);
    assert_string_equal(out.text ? out.text : "", want);
    fm_stop_fini(&f);
    fm_str_fini(&out);
}

static void text_is_cut_before_the_stop(void **state)
{
    (void)state;
    const char *const end[] = {"END"}, *const many[] = {"\n\n", "User:", ""};
    check(end, 1, 0, "one ENDtwo", "one ", 0);
    check(end, 1, 1, "one ENDtwo", "one END", 0);
    check(end, 1, 0, "EENEND", "EEN", 0);
    check(end, 1, 0, "no EN", "no EN", -1);
    check(many, 3, 0, "a\nb\n\nUser:", "a\nb", 0);
    check(many, 3, 0, "aUser:\n\n", "a", 1);
    check(many, 0, 0, "anything", "anything", -1);
    check(many + 2, 1, 0, "empty stops nothing", "empty stops nothing", -1);
}

static void of_several_the_one_that_ends_first_wins(void **state)
{
    (void)state;
    const char *const a[] = {"abcd", "bc"}, *const b[] = {"b", "ab"}, *const c[] = {"ab", "b"};
    check(a, 2, 0, "xabcd", "xa", 1);
    check(b, 2, 0, "xab", "xa", 0); /* both end here: list order */
    check(c, 2, 0, "xab", "x", 0);
}

static void only_what_could_be_a_stop_is_held_back(void **state)
{
    (void)state;
    const char *const stop[] = {"aab"};
    fm_stop_filter    f;
    fm_str            out = {0};
    fm_stop_init(&f, stop, 1, 0);
    assert_int_equal(fm_stop_push(&f, "xa", 2, &out), -1);
    assert_string_equal(out.text, "x");
    assert_int_equal(fm_stop_push(&f, "a", 1, &out), -1);
    assert_string_equal(out.text, "x");
    assert_int_equal(fm_stop_push(&f, "a", 1, &out), -1);
    assert_string_equal(out.text, "xa"); /* aaa can only end in aa */
    assert_int_equal(fm_stop_push(&f, "b after", 7, &out), 0);
    assert_string_equal(out.text, "xa");
    assert_int_equal(fm_stop_push(&f, "more", 4, &out), 0);
    fm_stop_end(&f, &out);
    assert_string_equal(out.text, "xa");
    fm_stop_fini(&f);
    fm_str_fini(&out);
}

/* The definition: the first end of any stop, by looking everywhere. */
static int find_plainly(char stop[][5], int n_stop, const char *text, size_t *cut)
{
    for (size_t end = 1; end <= strlen(text); end++)
        for (int i = 0; i < n_stop; i++) {
            const size_t n = strlen(stop[i]);
            if (n && n <= end && memcmp(text + end - n, stop[i], n) == 0) {
                *cut = end - n;
                return i;
            }
        }
    *cut = strlen(text);
    return -1;
}

static void draw(char *out, uint32_t n, uint64_t key, uint64_t salt)
{
    for (uint32_t i = 0; i < n; i++) out[i] = (char)('a' + fm_rng_u32(key, salt * 1000 + i) % 2);
    out[n] = 0;
}

static void any_chunks_give_what_one_push_gives(void **state)
{
    (void)state;
    for (uint64_t key = 0; key < 5000; key++) {
        char        stop[MAX_STOPS][5], text[41];
        const char *list[MAX_STOPS];
        const int   n_stop = 1 + (int)(fm_rng_u32(key, 1) % MAX_STOPS);
        for (int i = 0; i < n_stop; i++) {
            draw(stop[i], fm_rng_u32(key, 10 + (uint64_t)i) % 5, key, 1 + (uint64_t)i);
            list[i] = stop[i];
        }
        draw(text, fm_rng_u32(key, 2) % 41, key, 9);
        size_t    cut;
        const int want = find_plainly(stop, n_stop, text, &cut);

        fm_stop_filter f;
        fm_str         out = {0};
        int            got = -1;
        fm_stop_init(&f, list, n_stop, 0);
        for (size_t at = 0, turn = 0; at < strlen(text); turn++) {
            const size_t left = strlen(text) - at, n = fm_rng_u32(key, 100 + turn) % 5;
            got = fm_stop_push(&f, text + at, n < left ? n : left, &out);
            at += n < left ? n : left;
            assert_true(out.len <= cut); /* nothing is taken back */
        }
        fm_stop_end(&f, &out);
        assert_int_equal(got, want);
        assert_int_equal(out.len, cut);
        if (cut) assert_memory_equal(out.text, text, cut);
        fm_stop_fini(&f);
        fm_str_fini(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_cut_before_the_stop),
        cmocka_unit_test(of_several_the_one_that_ends_first_wins),
        cmocka_unit_test(only_what_could_be_a_stop_is_held_back),
        cmocka_unit_test(any_chunks_give_what_one_push_gives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
