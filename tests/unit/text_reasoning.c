/* SPDX-License-Identifier: Apache-2.0 */
/* Reasoning apart from content, the same for every way of cutting the text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "llm/text/reasoning.h"

static const char *text_of(const fm_str *s)
{
    return s->text ? s->text : "";
}

/* Pushes text cut at random into pieces of 0 to max bytes (0: whole). */
static void split(fm_reasoning_mode mode, const char *also, const char *text, uint64_t seed,
                  size_t max, fm_str *thought, fm_str *said)
{
    fm_reasoning r;
    const size_t len = strlen(text);
    size_t       at  = 0;
    fm_reasoning_init(&r, mode, also);
    for (uint64_t i = 0; at < len; i++) {
        size_t n = max ? fm_rng_u32(seed, i) % (max + 1) : len;
        if (n > len - at) n = len - at;
        fm_reasoning_push(&r, text + at, n, thought, said);
        at += n;
    }
    fm_reasoning_end(&r, thought, said);
    fm_reasoning_fini(&r);
}

static void check(fm_reasoning_mode mode, const char *also, const char *text, const char *thought,
                  const char *said)
{
    for (uint64_t seed = 0; seed < 60; seed++) {
        fm_str t = {0}, s = {0};
        split(mode, also, text, seed, seed % 12, &t, &s);
        assert_string_equal(text_of(&t), thought);
        assert_string_equal(text_of(&s), said);
        fm_str_fini(&t);
        fm_str_fini(&s);
    }
}

static void test_open(void **state)
{
    (void)state;
    const fm_reasoning_mode m = FM_REASONING_OPEN;
    check(m, NULL, "Hmm.\n</think>\n\nYes.", "Hmm.\n", "\n\nYes.");
    check(m, NULL, "<think>\nHmm.</think>Yes", "\nHmm.", "Yes");
    check(m, NULL, "never closed </thin", "never closed </thin", "");
    check(m, NULL, "a</think>b</think>c", "a", "b</think>c");
    check(m, NULL, "a <think> b</think>c", "a <think> b", "c");
    check(m, NULL, "</think>only", "", "only");
    check(m, NULL, "<thi", "<thi", "");
    check(m, NULL, "a</</think>b", "a</", "b");
    check(m, NULL, "", "", "");
}

static void test_if_tagged(void **state)
{
    (void)state;
    const fm_reasoning_mode m = FM_REASONING_IF_TAGGED;
    check(m, NULL, "<think>x</think>y", "x", "y");
    check(m, NULL, "no tag </think> here", "", "no tag </think> here");
    check(m, NULL, "<thing>", "", "<thing>");
    check(m, NULL, " <think>x</think>", "", " <think>x</think>");
    check(m, NULL, "<think", "", "<think");
}

static void test_off(void **state)
{
    (void)state;
    check(FM_REASONING_OFF, NULL, "<think>x</think>y", "", "<think>x</think>y");
}

static void test_second_mark_ends_and_stays(void **state)
{
    (void)state;
    check(FM_REASONING_OPEN, "<|calls|>", "plan<|calls|>go</think>", "plan", "<|calls|>go</think>");
    check(FM_REASONING_OPEN, "<|calls|>", "plan</think><|calls|>go", "plan", "<|calls|>go");
    check(FM_REASONING_OPEN, "<|calls|>", "plan<|cal", "plan<|cal", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_if_tagged),
        cmocka_unit_test(test_off),
        cmocka_unit_test(test_second_mark_ends_and_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
