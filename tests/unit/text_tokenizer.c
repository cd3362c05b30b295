/* SPDX-License-Identifier: Apache-2.0 */
/* Encoding against golden ids, and properties that hold for any text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* cmocka needs the four above */
#include <cmocka.h>

#include "base/rng.h"
#include "base/str.h"
#include "json/read.h"
#include "llm/text/detokenize.h"
#include "llm/text/tokenizer.h"

static fm_tokenizer         *tokenizer;
static fm_tokenizer_scratch *scratch;

static int open_all(void **state)
{
    (void)state;
    if (fm_tokenizer_open(&tokenizer, FM_TEST_DATA "/tokenizer") != FM_OK) return -1;
    return fm_tokenizer_scratch_create(&scratch, tokenizer) == FM_OK ? 0 : -1;
}

static int close_all(void **state)
{
    (void)state;
    fm_tokenizer_scratch_destroy(scratch);
    fm_tokenizer_close(tokenizer);
    return 0;
}

static void check_decoding(const fm_ids *ids, const char *want, size_t n)
{
    fm_str         text = {0};
    fm_detokenizer d    = fm_detokenizer_begin(tokenizer, 1);
    for (size_t i = 0; i < ids->n; i++) fm_detokenizer_push(&d, ids->id[i], &text);
    fm_detokenizer_end(&d, &text);
    assert_int_equal(text.len, n);
    if (n) assert_memory_equal(text.text, want, n);
    fm_str_fini(&text);
}

static void check_case(size_t i, const json_t *text, const json_t *want, const json_t *decoded)
{
    fm_ids ids = {0};
    assert_int_equal(
        fm_encode(tokenizer, scratch, json_string_value(text), json_string_length(text), 0, &ids),
        FM_OK);
    if (ids.n != json_array_size(want))
        fail_msg("case %zu: %zu ids, want %zu", i, ids.n, json_array_size(want));
    for (size_t k = 0; k < ids.n; k++)
        if (ids.id[k] != json_integer_value(json_array_get(want, k)))
            fail_msg("case %zu: id %zu is %d, want %d", i, k, (int)ids.id[k],
                     (int)json_integer_value(json_array_get(want, k)));
    check_decoding(&ids, json_string_value(decoded), json_string_length(decoded));
    fm_ids_fini(&ids);
}

static void every_golden_encodes_and_decodes(void **state)
{
    (void)state;
    json_t *golden = NULL;
    assert_int_equal(fm_json_load(&golden, FM_TEST_DATA "/tokenizer/golden.json"), FM_OK);
    assert_true(json_array_size(golden) >= 200);
    for (int round = 0; round < 2; round++) /* the second time from the cache */
        for (size_t i = 0; i < json_array_size(golden); i++) {
            const json_t *c = json_array_get(golden, i);
            check_case(i, json_object_get(c, "text"), json_object_get(c, "ids"),
                       json_object_get(c, "decoded"));
        }
    json_decref(golden);
}

static fm_ids encode(const char *text, int flags)
{
    fm_ids ids = {0};
    assert_int_equal(fm_encode(tokenizer, scratch, text, strlen(text), flags, &ids), FM_OK);
    return ids;
}

static void text_that_looks_like_a_token_stays_text_when_plain(void **state)
{
    (void)state;
    fm_ids special = encode("<｜User｜>", 0), plain = encode("<｜User｜>", FM_ENCODE_PLAIN);
    assert_int_equal(special.n, 1);
    assert_int_equal(special.id[0], fm_token_id(tokenizer, "<｜User｜>"));
    assert_true(plain.n > 1);
    check_decoding(&plain, "<｜User｜>", strlen("<｜User｜>"));
    for (size_t i = 0; i < plain.n; i++) assert_false(fm_token_is_special(tokenizer, plain.id[i]));
    fm_ids_fini(&special);
    fm_ids_fini(&plain);
}

static void bos_and_eos_are_known_without_a_config(void **state)
{
    (void)state;
    assert_int_equal(fm_tokenizer_bos(tokenizer), 0);
    assert_int_equal(fm_tokenizer_eos(tokenizer), 1);
    assert_false(fm_tokenizer_adds_bos(tokenizer));
    assert_int_equal(fm_tokenizer_size(tokenizer), 4110);
    fm_ids ids = encode("x", FM_ENCODE_BOS);
    assert_int_equal(ids.n, 1); /* the config does not ask for it */
    fm_ids_fini(&ids);
}

static void specials_are_as_the_file_says(void **state)
{
    (void)state;
    assert_true(fm_token_is_special(tokenizer, fm_token_id(tokenizer, "<｜Assistant｜>")));
    assert_false(fm_token_is_special(tokenizer, fm_token_id(tokenizer, "<think>")));
    assert_int_equal(fm_token_id(tokenizer, "<thin"), -1);
    size_t n;
    fm_token_bytes(tokenizer, 1 << 19, &n);
    assert_int_equal(n, 0);
    fm_token_bytes(tokenizer, -1, &n);
    assert_int_equal(n, 0);
}

static void bytes_that_are_no_utf8_are_refused_with_their_offset(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t      n;
        const char *at;
    } bad[] = {
        {"abc\xff", 4, "byte 3"},        {"\xc0\xaf", 2, "byte 0"},
        {"ab\xed\xa0\x80", 5, "byte 2"}, {"\xf4\x90\x80\x80", 4, "byte 0"},
        {"\xe4\xb8", 2, "byte 0"},       {"12345678\x80", 9, "byte 8"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fm_ids ids = {0};
        fm_ids_add(&ids, 7);
        assert_int_equal(fm_encode(tokenizer, scratch, bad[i].text, bad[i].n, 0, &ids),
                         FM_E_FORMAT);
        assert_non_null(strstr(fm_why(), bad[i].at));
        assert_int_equal(ids.n, 1);
        fm_ids_fini(&ids);
    }
}

/* Characters that hurt, and pieces that repeat. */
static void random_text(fm_str *out, uint64_t key)
{
    static const char *const part[] = {
        "a",       "b",  " ",      "  ",         "\n",   "the",    " of", "1",  "23",
        "é",       "́",   "中",     "ひ",         "🙂", "\r\n",   ".",   "--", "<",
        "<think>", "\t", "\u00a0", "<｜User｜>", "ß",    "\u180e", "ﷺ",   "'s"};
    const uint32_t n = 1 + fm_rng_u32(key, 0) % 60;
    fm_str_clear(out);
    for (uint32_t i = 1; i <= n; i++)
        fm_str_puts(out, part[fm_rng_u32(key, i) % (sizeof part / sizeof *part)]);
}

static void decoding_gives_the_text_back(void **state)
{
    (void)state;
    fm_str text = {0};
    for (uint64_t key = 0; key < 2000; key++) {
        random_text(&text, key);
        fm_ids ids = encode(text.text, 0);
        check_decoding(&ids, text.text, text.len);
        fm_ids_fini(&ids);
    }
    fm_str_fini(&text);
}

static void a_warm_scratch_gives_what_a_fresh_one_does(void **state)
{
    (void)state;
    fm_str text = {0};
    for (uint64_t key = 5000; key < 5100; key++) {
        fm_tokenizer_scratch *fresh;
        fm_ids                ids = {0};
        random_text(&text, key);
        assert_int_equal(fm_tokenizer_scratch_create(&fresh, tokenizer), FM_OK);
        assert_int_equal(fm_encode(tokenizer, fresh, text.text, text.len, 0, &ids), FM_OK);
        fm_ids warm = encode(text.text, 0);
        assert_int_equal(warm.n, ids.n);
        assert_memory_equal(warm.id, ids.id, ids.n * sizeof *ids.id);
        fm_ids_fini(&ids);
        fm_ids_fini(&warm);
        fm_tokenizer_scratch_destroy(fresh);
    }
    fm_str_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_golden_encodes_and_decodes),
        cmocka_unit_test(text_that_looks_like_a_token_stays_text_when_plain),
        cmocka_unit_test(bos_and_eos_are_known_without_a_config),
        cmocka_unit_test(specials_are_as_the_file_says),
        cmocka_unit_test(bytes_that_are_no_utf8_are_refused_with_their_offset),
        cmocka_unit_test(decoding_gives_the_text_back),
        cmocka_unit_test(a_warm_scratch_gives_what_a_fresh_one_does),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
