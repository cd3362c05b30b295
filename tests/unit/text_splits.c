/* SPDX-License-Identifier: Apache-2.0 */
/* The pre-tokenisers: pieces written by hand, and texts that would hang a
 * careless matcher. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* cmocka needs the four above */
#include <cmocka.h>

#include "base/clock.h"
#include "base/str.h"
#include "llm/text/splits_internal.h"

#define V3_WORDS                                                                                   \
    "[!\"#$%&'()*+,\\-./"                                                                          \
    ":;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"                 \
    "| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"
#define V2_PUNCTUATION "\\s?[!-/:-~！-／：-～‘-‟　-。]+"

/* V2's cased letters as code points: written out, an editor that normalises
 * Unicode would break the ranges. */
static const uint32_t cased[][2] = {
    {0x41, 0x5a},     {0x61, 0x7a},     {0xb5, 0xb5},       {0xc0, 0xd6},       {0xd8, 0xf6},
    {0xf8, 0x1ba},    {0x1bc, 0x1bf},   {0x1c4, 0x293},     {0x295, 0x2af},     {0x370, 0x373},
    {0x376, 0x377},   {0x37b, 0x37d},   {0x37f, 0x37f},     {0x386, 0x386},     {0x388, 0x38a},
    {0x38c, 0x38c},   {0x38e, 0x3a1},   {0x3a3, 0x3f5},     {0x3f7, 0x481},     {0x48a, 0x52f},
    {0x531, 0x556},   {0x10a0, 0x10c5}, {0x1e00, 0x1f15},   {0x1f18, 0x1f1d},   {0x2102, 0x2102},
    {0xff21, 0xff3a}, {0xff41, 0xff5a}, {0x10400, 0x1044f}, {0x1e900, 0x1e943},
};

static void add_utf8(fm_str *out, uint32_t c)
{
    char b[4];
    int  n = 0;
    if (c < 0x80)
        b[n++] = (char)c;
    else if (c < 0x800)
        b[n++] = (char)(0xc0 | c >> 6);
    else if (c < 0x10000)
        b[n++] = (char)(0xe0 | c >> 12);
    else {
        b[n++] = (char)(0xf0 | c >> 18);
        b[n++] = (char)(0x80 | (c >> 12 & 63));
    }
    if (c >= 0x800) b[n++] = (char)(0x80 | (c >> 6 & 63));
    if (c >= 0x80) b[n++] = (char)(0x80 | (c & 63));
    fm_str_add(out, b, (size_t)n);
}

static void add(fm__splits *s, const char *pattern)
{
    if (fm__splits_add(s, pattern, FM__KEEP_ALL, "test") != FM_OK) fail_msg("%s", fm_why());
}

static fm__splits v3_splits(void)
{
    fm__splits s = {0};
    add(&s, "\\p{N}{1,3}");
    add(&s, "[一-龥぀-ゟ゠-ヿ]+");
    add(&s, V3_WORDS);
    return s;
}

static fm__splits v2_splits(void)
{
    fm__splits s       = {0};
    fm_str     letters = {0};
    fm_str_puts(&letters, "\\s?[");
    for (size_t i = 0; i < sizeof cased / sizeof *cased; i++) {
        add_utf8(&letters, cased[i][0]);
        if (cased[i][1] != cased[i][0]) fm_str_puts(&letters, "-");
        if (cased[i][1] != cased[i][0]) add_utf8(&letters, cased[i][1]);
    }
    fm_str_puts(&letters, "]+");
    add(&s, "[\r\n]");
    add(&s, letters.text);
    add(&s, V2_PUNCTUATION);
    add(&s, "\\s+$");
    add(&s, "[一-龥ࠀ-一가-\ud7ff]+");
    add(&s, "\\p{N}");
    fm_str_fini(&letters);
    return s;
}

static fm_status join(void *to, const char *piece, size_t n)
{
    fm_str *out = to;
    if (out->len) fm_str_puts(out, "|");
    fm_str_add(out, piece, n);
    return FM_OK;
}

static fm_status run(const fm__splits *s, const char *text, size_t n, fm_str *out)
{
    fm__splits_scratch *x = NULL;
    assert_int_equal(fm__splits_scratch_create(&x, s), FM_OK);
    fm__splits_begin(x, n);
    const fm_status rc = fm__splits_run(s, x, text, n, join, out);
    fm__splits_scratch_destroy(x);
    return rc;
}

static void check(fm__splits *s, const char *text, const char *want)
{
    for (int jit = 1; jit >= 0; jit--) {
        fm_str got = {0};
        for (int i = 0; i < s->n && !jit; i++) s->step[i].jit = 0;
        assert_int_equal(run(s, text, strlen(text), &got), FM_OK);
        assert_string_equal(got.text ? got.text : "", want);
        fm_str_fini(&got);
    }
}

static void check_one(const char *pattern, fm__split_keep keep, const char *text, const char *want)
{
    fm__splits s = {0};
    if (fm__splits_add(&s, pattern, keep, "test") != FM_OK) fail_msg("%s: %s", pattern, fm_why());
    check(&s, text, want);
    fm__splits_fini(&s);
}

static void v3_pieces(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"Hello, world!", "Hello|,| world|!"},
        {"a  b   ", "a| | b|   "},
        {"x = 12345;", "x| =| |123|45|;"},
        {"don't .env\n\n  y", "don|'t| .|env|\n\n| | y"},
        {"中文abcひら。", "中文|abc|ひら|。"},
        {"1½Ⅷ²3", "1½Ⅷ|²3"},
        {"\t\tfoo", "\t|\tfoo"},
        {"e\u0301\u0301 \u0301x", "e\u0301\u0301| \u0301x"},
        {"a\u180e\u180e b", "a|\u180e\u180e| b"}, /* no space, no letter: left over */
        {"a\u2003\u2003b", "a|\u2003|\u2003b"},
        {"?!\r\n\r\n x", "?!\r\n\r\n| x"},
    };
    fm__splits s = v3_splits();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check(&s, cases[i][0], cases[i][1]);
    fm__splits_fini(&s);
}

static void v2_pieces(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"Hello, world!", "Hello|,| world|!"},
        {"a  b   ", "a| | b|   "},
        {"12 345", "1|2| |3|4|5"},
        {"\r\n\n", "\r|\n|\n"},
        {"Ünï \u00b5m", "Ü|n|ï| \u00b5|m"}, /* step 3's :-~ has the letters, too */
        {"中文 한국어", "中文| |한국어"},
        {"ª\u02b0 x", "ª\u02b0| x"},  /* in none of the six */
        {"  ª  \n", "  ª|  |\n"},     /* only spaces that end the piece are cut off */
        {"（x）。y", "（|x|）|。|y"}, /* step 5 begins at U+0800 */
    };
    fm__splits s = v2_splits();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check(&s, cases[i][0], cases[i][1]);
    fm__splits_fini(&s);
}

static void what_is_kept_follows_the_behaviour(void **state)
{
    (void)state;
    check_one("-", FM__KEEP_ALL, "a-b--c", "a|-|b|-|-|c");
    check_one("-", FM__KEEP_GAPS, "a-b--c", "a|b|c");
    check_one("[a-z]", FM__KEEP_MATCHES, "a-b--c", "a|b|c");
    check_one("x*", FM__KEEP_ALL, "abxxc", "a|b|xx|c"); /* an empty match cuts */
    check_one("", FM__KEEP_ALL, "aé中", "a|é|中");
}

static void onig_spellings_keep_their_meaning(void **state)
{
    (void)state;
    check_one("\\s", FM__KEEP_GAPS,
              "a\u180eb\u2028c\xc2\x85"
              "d",
              "a\u180eb|c|d");
    check_one("\\S+", FM__KEEP_MATCHES, "a\u180eb c", "a\u180eb|c");
    check_one("[\\S]+", FM__KEEP_MATCHES, "ab c", "ab|c");
    check_one("\\w+", FM__KEEP_MATCHES, "a\u0301_\u203f\u00bd9", "a\u0301_\u203f|9");
    check_one("\\v", FM__KEEP_GAPS,
              "a\x0b"
              "b\nc",
              "a|b\nc");
    check_one("\\p{Han}+", FM__KEEP_MATCHES, "中。文", "中|文"); /* 。 is no Han letter */
    check_one("\\P{Han}+", FM__KEEP_MATCHES, "中。文", "。");
    check_one("[\\p{Lo}a&&[^\\p{Han}b]]+", FM__KEEP_MATCHES, "aひ中ab", "aひ|a");
    check_one("\\x41|\\x{4e2d}|\\u6587", FM__KEEP_MATCHES, "A中文b", "A|中|文");
    check_one("a$", FM__KEEP_MATCHES, "a\naa", "a|a"); /* $ ends lines */
    check_one("(?i:s)", FM__KEEP_MATCHES, "sSx", "s|S");
}

static void what_would_be_misread_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "\\b",     "\\h",   "\\1",   "\\K",    "\\Q*\\E", "(*UTF)a",    "(?x) a",
        "(?<n>a)", "a{2}+", "a{,3}", "[a[b]]", "[a&&b]",  "[^a&&[^b]]", "[[:alpha:]]",
        "[\\W]",   "\\",    "[a",    "\\pL",   "\\x{}",   "\\xff",      "\\u12",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fm__splits s = {0};
        if (fm__splits_add(&s, bad[i], FM__KEEP_ALL, "t.json") != FM_E_NOSUP)
            fail_msg("%s was taken", bad[i]);
        assert_non_null(strstr(fm_why(), "t.json: pre_tokenizer: "));
        assert_int_equal(s.n, 0);
    }
}

static void a_pattern_that_does_not_compile_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"a)", "(a", "*a", "[z-a]", "\\p{Nope}", "a{99999}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fm__splits s = {0};
        assert_int_equal(fm__splits_add(&s, bad[i], FM__KEEP_ALL, "t.json"), FM_E_FORMAT);
    }
    fm__splits s = {0};
    for (int i = 0; i < FM__MAX_SPLITS; i++) add(&s, "a");
    assert_int_equal(fm__splits_add(&s, "a", FM__KEEP_ALL, "t.json"), FM_E_NOSUP);
    fm__splits_fini(&s);
}

static fm_status count(void *to, const char *piece, size_t n)
{
    (void)piece;
    *(size_t *)to += n;
    return FM_OK;
}

static void check_long(fm__splits *s, const char *unit, const char *end)
{
    fm_str text = {0};
    while (text.len < 1 << 20) fm_str_puts(&text, unit);
    fm_str_puts(&text, end);
    fm__splits_scratch *x      = NULL;
    size_t              n_seen = 0;
    assert_int_equal(fm__splits_scratch_create(&x, s), FM_OK);
    fm__splits_begin(x, text.len);
    if (fm__splits_run(s, x, text.text, text.len, count, &n_seen) != FM_OK)
        fail_msg("%s ... %s: %s", unit, end, fm_why());
    assert_int_equal(n_seen, text.len);
    fm__splits_scratch_destroy(x);
    fm_str_fini(&text);
}

static void a_megabyte_of_anything_is_split(void **state)
{
    (void)state;
    static const char *const units[]  = {"a",  "A", " ", "\n",     " \n", "7",
                                         "中", "!", "<", "\u0301", "a ",  "\xc2\xa0"};
    fm__splits               splits[] = {v3_splits(), v2_splits()};
    for (int k = 0; k < 2; k++) {
        for (size_t i = 0; i < sizeof units / sizeof *units; i++)
            check_long(&splits[k], units[i], "");
        check_long(&splits[k], " ", "\u2603"); /* spaces that do not end the piece */
        check_long(&splits[k], " ", "\u2603\n");
        fm__splits_fini(&splits[k]);
    }
}

static void a_pattern_that_backtracks_without_end_is_given_up(void **state)
{
    (void)state;
    static const char *const bad[] = {"(?:a+)+b", "(?:a|aa)+$x", "a+b",
                                      "(?:a*)*c|(?:a?){30}a{30}d"};
    fm_str                   text = {0}, out = {0};
    while (text.len < 1 << 18) fm_str_puts(&text, "a");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fm__splits   s     = {0};
        const double began = fm_now();
        add(&s, bad[i]);
        const fm_status rc = run(&s, text.text, text.len, &out);
        assert_true(rc == FM_OK || rc == FM_E_FORMAT);
        assert_true(fm_now() - began < 40);
        fm__splits_fini(&s);
    }
    fm_str_fini(&text);
    fm_str_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(v3_pieces),
        cmocka_unit_test(v2_pieces),
        cmocka_unit_test(what_is_kept_follows_the_behaviour),
        cmocka_unit_test(onig_spellings_keep_their_meaning),
        cmocka_unit_test(what_would_be_misread_is_refused),
        cmocka_unit_test(a_pattern_that_does_not_compile_is_refused),
        cmocka_unit_test(a_megabyte_of_anything_is_split),
        cmocka_unit_test(a_pattern_that_backtracks_without_end_is_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
