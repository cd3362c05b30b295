/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes to text: what becomes U+FFFD, and that chunks do not matter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above */
#include <cmocka.h>

#include "base/rng.h"
#include "base/utf8.h"
#include "json/read.h"
#include "llm/text/detokenize.h"
#include "text_tiny.h"

#define BAD "\xef\xbf\xbd" /* U+FFFD */

static fm_tokenizer *bytes; /* id = byte */
static fm_tokenizer *words; /* tokens of many bytes, cut anywhere */

static int open_all(void **state)
{
    (void)state;
    fm_str json = {0};
    tiny_write(&json, (tiny){.added = "[{\"id\":256,\"content\":\"<s>\",\"special\":true},"
                                      "{\"id\":257,\"content\":\"<think>\",\"special\":false},"
                                      "{\"id\":258,\"content\":\"</think>\",\"special\":true}]"});
    const fm_status rc = fm_tokenizer_parse(&bytes, json.text, json.len, "bytes");
    fm_str_fini(&json);
    return rc != FM_OK || fm_tokenizer_open(&words, FM_TEST_DATA "/tokenizer") != FM_OK;
}

static int close_all(void **state)
{
    (void)state;
    fm_tokenizer_close(bytes);
    fm_tokenizer_close(words);
    return 0;
}

/* Every push must leave whole characters only. */
static void decode(const fm_tokenizer *t, const int32_t *id, size_t n, int keep_special,
                   fm_str *out)
{
    fm_detokenizer d = fm_detokenizer_begin(t, keep_special);
    for (size_t i = 0; i < n; i++) {
        fm_detokenizer_push(&d, id[i], out);
        assert_int_equal(fm_utf8_prefix(out->text, out->len), out->len);
    }
    fm_detokenizer_end(&d, out);
}

static void decode_bytes(const char *text, size_t n, fm_str *out)
{
    fm_detokenizer d = fm_detokenizer_begin(bytes, 1);
    for (size_t i = 0; i < n; i++) fm_detokenizer_push(&d, (unsigned char)text[i], out);
    fm_detokenizer_end(&d, out);
}

static void each_longest_beginning_becomes_one_replacement(void **state)
{
    (void)state;
    static const struct {
        const char *in, *want;
    } cases[] = {
        {"plain \xc3\xa9 \xe4\xb8\xad \xf0\x9f\x99\x82", "plain é 中 🙂"},
        {"\xf1\x80\x80\xe1\x80\xc2"
         "b\x80"
         "c\x80\xbf"
         "d",
         BAD BAD BAD "b" BAD "c" BAD BAD "d"},
        {"\xc0\xaf\xe0\x80\xbf\xf0\x81\x82"
         "A",
         BAD BAD BAD BAD BAD BAD BAD BAD "A"},
        {"\xed\xa0\x80\xed\xbf\xbf\xed\xaf"
         "A",
         BAD BAD BAD BAD BAD BAD BAD BAD "A"},
        {"\xf4\x91\x92\x93\xff"
         "A\x80\xbf"
         "B",
         BAD BAD BAD BAD BAD "A" BAD BAD "B"},
        {"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf"
         "A",
         BAD BAD BAD BAD "A"},
        {"x\xe4\xb8", "x" BAD},
        {"\xe4\xe4\xb8\xad", BAD "中"},
        {"\xf0\x9f\x99", BAD},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fm_str out = {0};
        decode_bytes(cases[i].in, strlen(cases[i].in), &out);
        assert_string_equal(out.text, cases[i].want);
        fm_str_fini(&out);
    }
}

static void special_tokens_are_dropped_unless_kept(void **state)
{
    (void)state;
    const int32_t id[] = {256, 'a', 257, 256, 'b', 100000, -5};
    for (int keep = 0; keep < 2; keep++) {
        fm_str out = {0};
        decode(bytes, id, sizeof id / sizeof *id, keep, &out);
        assert_string_equal(out.text, keep ? "<s>a<think><s>b" : "a<think>b");
        fm_str_fini(&out);
    }
}

static void the_tags_of_reasoning_can_be_kept_alone(void **state)
{
    (void)state;
    const int32_t id[]   = {256, 'a', 257, 256, 'b', 258, 'c', 256};
    const char   *want[] = {
          [FM_SPECIAL_NONE] = "a<think>bc",
          [FM_SPECIAL_ALL]  = "<s>a<think><s>b</think>c<s>",
          [FM_SPECIAL_TAGS] = "a<think>b</think>c",
    };
    for (int keep = 0; keep < 3; keep++) {
        fm_str out = {0};
        decode(bytes, id, sizeof id / sizeof *id, keep, &out);
        assert_string_equal(out.text, want[keep]);
        fm_str_fini(&out);
    }
}

static void a_dropped_token_does_not_end_a_character(void **state)
{
    (void)state;
    const int32_t id[] = {0xe4, 256, 0xb8, 256, 0xad};
    fm_str        out  = {0};
    decode(bytes, id, 5, 0, &out);
    assert_string_equal(out.text, "中");
    fm_str_fini(&out);
}

/* Tokens against the same bytes one at a time. */
static void check_same(const int32_t *id, size_t n)
{
    fm_str all = {0}, want = {0}, got = {0};
    for (size_t i = 0; i < n; i++) {
        size_t      len;
        const char *b = fm_token_bytes(words, id[i], &len);
        fm_str_add(&all, b, len);
    }
    decode_bytes(all.text ? all.text : "", all.len, &want);
    decode(words, id, n, 1, &got);
    assert_int_equal(got.len, want.len);
    if (want.len) assert_memory_equal(got.text, want.text, want.len);
    fm_str_fini(&all);
    fm_str_fini(&want);
    fm_str_fini(&got);
}

static void how_bytes_fall_into_tokens_does_not_matter(void **state)
{
    (void)state;
    int32_t id[64];
    for (uint64_t key = 0; key < 1000; key++) {
        const uint32_t n = 1 + fm_rng_u32(key, 0) % 64;
        for (uint32_t i = 0; i < n; i++) /* single bytes half of the time */
            id[i] = (int32_t)(fm_rng_u32(key, i + 1) % (i % 2 ? 4110 : 260));
        check_same(id, n);
    }
}

static void goldens_decode_the_same_in_any_chunks(void **state)
{
    (void)state;
    json_t *golden = NULL;
    assert_int_equal(fm_json_load(&golden, FM_TEST_DATA "/tokenizer/golden.json"), FM_OK);
    for (size_t i = 0; i < json_array_size(golden); i++) {
        const json_t *ids = json_object_get(json_array_get(golden, i), "ids");
        int32_t       id[4096];
        const size_t  n = json_array_size(ids);
        assert_true(n < 4096);
        for (size_t k = 0; k < n; k++) id[k] = (int32_t)json_integer_value(json_array_get(ids, k));
        check_same(id, n);
    }
    json_decref(golden);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_longest_beginning_becomes_one_replacement),
        cmocka_unit_test(special_tokens_are_dropped_unless_kept),
        cmocka_unit_test(the_tags_of_reasoning_can_be_kept_alone),
        cmocka_unit_test(a_dropped_token_does_not_end_a_character),
        cmocka_unit_test(how_bytes_fall_into_tokens_does_not_matter),
        cmocka_unit_test(goldens_decode_the_same_in_any_chunks),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
