/* SPDX-License-Identifier: Apache-2.0 */
/* What tokenizer.json, tokenizer_config.json and tiktoken.model may say, and
 * what is refused. */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* cmocka needs the first four */
#include <cmocka.h>

#include "base/status.h"
#include "llm/text/tokenizer.h"
#include "text_encode.h"

#define ADDED(id, text, special, normalized)                                                       \
    "{\"id\":" #id ",\"content\":\"" text "\",\"special\":" #special                               \
    ",\"normalized\":" #normalized ",\"lstrip\":false,\"rstrip\":false,\"single_word\":false}"

static void added_tokens_are_leftmost_and_longest(void **state)
{
    (void)state;
    fm_tokenizer *t = parse((tiny){
        .added = "[" ADDED(300, "<a>", true, false) "," ADDED(301, "<a>b", true, false) "," ADDED(
            302, "a>bc", true, false) "," ADDED(303, "é", false, false) "]"});
    check(t, "x<a>bc", 0, "120 301 99");
    check(t, "<a><a>b<", 0, "300 301 60");
    check(t, "a>bc", 0, "302");
    check(t, "é<a", 0, "303 60 97");
    check(t, "x<a>", FM_ENCODE_PLAIN, "120 60 97 62");
    assert_int_equal(fm_tokenizer_size(t), 304);
    assert_int_equal(fm_token_id(t, "<a>b"), 301);
    fm_tokenizer_close(t);
}

static void tokens_marked_normalized_are_looked_for_last(void **state)
{
    (void)state;
    fm_tokenizer *t = parse(
        (tiny){.added = "[" ADDED(300, "abcd", false, true) "," ADDED(301, "cd", true, false) "]"});
    check(t, "abcd", 0, "97 98 301"); /* cd is cut out first */
    fm_tokenizer_close(t);
}

static void an_added_token_that_spells_a_byte_decodes_to_it(void **state)
{
    (void)state;
    fm_tokenizer *t = parse((tiny){
        .added = "[" ADDED(300, "ÿ", false, true) "," ADDED(301, "<｜x｜>", true, false) "]"});
    size_t        n;
    assert_int_equal(*(const unsigned char *)fm_token_bytes(t, 300, &n), 0xff);
    assert_int_equal(n, 1);
    assert_memory_equal(fm_token_bytes(t, 301, &n), "<｜x｜>", strlen("<｜x｜>"));
    fm_token_bytes(t, 299, &n);
    assert_int_equal(n, 0); /* a hole */
    fm_tokenizer_close(t);
}

static void byte_level_brings_its_own_split_when_asked(void **state)
{
    (void)state;
    fm_tokenizer *t = parse((tiny){.vocab  = ",\"Ġb\":256,\"aĠ\":257",
                                   .merges = "[\"a Ġ\",\"Ġ b\"]",
                                   .pre = "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}"});
    check(t, "a b", 0, "97 256");
    fm_tokenizer_close(t);
    t = parse((tiny){.vocab = ",\"Ġb\":256,\"aĠ\":257", .merges = "[\"a Ġ\",\"Ġ b\"]"});
    check(t, "a b", 0, "257 98");
    fm_tokenizer_close(t);
}

static void literal_splits_and_digits(void **state)
{
    (void)state;
    fm_tokenizer *t = parse((tiny){.vocab  = ",\"11\":256,\"a.\":257",
                                   .merges = "[\"1 1\",\"a .\"]",
                                   .pre    = "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":"
                                             "\"Split\",\"pattern\":{\"String\":\".\"},"
                                             "\"behavior\":\"Isolated\"},{\"type\":\"Digits\","
                                             "\"individual_digits\":true}," TINY_BYTE_LEVEL "]}"});
    check(t, "11a.a", 0, "49 49 97 46 97");
    fm_tokenizer_close(t);
}

/* ---- refusals ---- */

static void check_refused(tiny what, fm_status want, const char *sentence)
{
    fm_str        json = {0};
    fm_tokenizer *t    = NULL;
    tiny_write(&json, what);
    const fm_status rc = fm_tokenizer_parse(&t, json.text, json.len, "tiny");
    if (rc != want || !strstr(fm_why(), sentence))
        fail_msg("%d, %s; want %s", rc, fm_why(), sentence);
    assert_null(t);
    fm_str_fini(&json);
}

static void what_is_not_supported_is_refused_with_a_sentence(void **state)
{
    (void)state;
#define PRE(inner) "{\"type\":\"Sequence\",\"pretokenizers\":[" inner "]}"
#define SPLIT(pattern, behavior)                                                                   \
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" pattern "\"},\"behavior\":\"" behavior "\"}"
    static const struct {
        tiny        what;
        const char *sentence;
    } bad[] = {
        {{.model = "\"type\":\"Unigram\","}, "model.type is \"Unigram\""},
        {{.model = "\"byte_fallback\":true,"}, "model.byte_fallback"},
        {{.model = "\"unk_token\":\"<unk>\","}, "model.unk_token"},
        {{.model = "\"dropout\":0.1,"}, "model.dropout"},
        {{.model = "\"end_of_word_suffix\":\"</w>\","}, "model.end_of_word_suffix"},
        {{.root = "\"normalizer\":{\"type\":\"NFC\"},"}, "normalizer"},
        {{.pre = "{\"type\":\"Metaspace\"}"}, "\"Metaspace\" is not supported"},
        {{.pre = "{\"type\":\"ByteLevel\"}"}, "add_prefix_space"},
        {{.pre = PRE(SPLIT("a", "Isolated"))}, "has no ByteLevel"},
        {{.pre = PRE(SPLIT("a", "MergedWithNext") "," TINY_BYTE_LEVEL)}, "\"MergedWithNext\""},
        {{.pre = PRE(TINY_BYTE_LEVEL "," SPLIT("a", "Isolated"))}, "after ByteLevel"},
        {{.pre = PRE(SPLIT("\\\\bx", "Isolated") "," TINY_BYTE_LEVEL)}, "\\b in a split pattern"},
        {{.added = "[{\"id\":1,\"content\":\"x\",\"lstrip\":true}]"}, "lstrip of \"x\""},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        check_refused(bad[i].what, FM_E_NOSUP, bad[i].sentence);
}

static void what_is_malformed_is_refused_with_a_sentence(void **state)
{
    (void)state;
    static const struct {
        tiny        what;
        const char *sentence;
    } bad[] = {
        {{.merges = "{}"}, "model.merges: expected an array"},
        {{.merges = "[\"a b\"]"}, "model.merges[0]"}, /* ab is no token */
        {{.merges = "[\"a\"]"}, "model.merges[0]"},
        {{.merges = "[[\"a\",1]]"}, "model.merges[0]"},
        {{.merges = "[\"a b c\"]"}, "model.merges[0]"},
        {{.merges = "[\"\\u4e2d a\"]"}, "model.merges[0]"},
        {{.vocab = ",\"ab\":-1"}, "model.vocab[\"ab\"]"},
        {{.vocab = ",\"ab\":99999999"}, "model.vocab[\"ab\"]"},
        {{.vocab = ",\"ab\":\"1\""}, "model.vocab[\"ab\"]"},
        {{.pre = "7"}, "pre_tokenizer: expected an object"},
        {{.pre = "{\"type\":\"Split\",\"behavior\":\"Isolated\"}"}, "expected a Regex or a String"},
        {{.pre = "{\"type\":\"Split\",\"behavior\":\"Isolated\",\"pattern\":{\"Regex\":\"(\"}}"},
         "split pattern 1"},
        {{.pre = "{\"type\":\"Split\",\"behavior\":\"Isolated\",\"pattern\":{\"Regex\":"
                 "\"a\\u0000\"}}"},
         "expected a Regex or a String"},
        {{.added = "{}"}, "added_tokens: expected an array"},
        {{.added = "[{\"id\":1}]"}, "added_tokens[].content is missing"},
        {{.added = "[{\"id\":1,\"content\":\"\"}]"}, "1 to 512 bytes"},
        {{.added = "[{\"id\":1,\"content\":\"a\\u0000\"}]"}, "none of them zero"},
        {{.added = "[{\"id\":1e9,\"content\":\"a\"}]"}, "added_tokens[].id"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        check_refused(bad[i].what, FM_E_FORMAT, bad[i].sentence);

    fm_tokenizer *t = NULL;
    const char   *bare =
        "{\"pre_tokenizer\":" TINY_BYTE_LEVEL ",\"model\":{\"vocab\":{\"a\":0},\"merges\":[]}}";
    const char *texts[] = {"", "[]", "{", "{\"model\":3}", bare};
    for (int i = 0; i < 5; i++)
        assert_int_equal(fm_tokenizer_parse(&t, texts[i], strlen(texts[i]), "tiny"), FM_E_FORMAT);
    assert_non_null(strstr(fm_why(), "no token for byte 0x00"));
}

/* ---- directories ---- */

static char dir[64];

static void write_file(const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    fclose(f);
}

static int make_dir(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/fathom-text-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    (void)state;
    static const char *const name[] = {"tokenizer.json", "tokenizer_config.json", "tiktoken.model",
                                       "chat_template.jinja"};
    for (int i = 0; i < 4; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", dir, name[i]);
        remove(path);
    }
    return rmdir(dir);
}

static fm_tokenizer *open_with_config(const char *config)
{
    fm_str        json = {0};
    fm_tokenizer *t    = NULL;
    tiny_write(&json, (tiny){.added = "[" ADDED(300, "<s>", true,
                                                false) "," ADDED(301, "</s>", true, false) "]"});
    write_file("tokenizer.json", json.text);
    write_file("tokenizer_config.json", config);
    if (fm_tokenizer_open(&t, dir) != FM_OK) fail_msg("%s", fm_why());
    fm_str_fini(&json);
    return t;
}

static void the_config_decides_about_bos(void **state)
{
    (void)state;
    fm_tokenizer *t =
        open_with_config("{\"add_bos_token\":true,\"bos_token\":\"<s>\",\"eos_token\":"
                         "{\"__type\":\"AddedToken\",\"content\":\"</s>\"}}");
    assert_int_equal(fm_tokenizer_bos(t), 300);
    assert_int_equal(fm_tokenizer_eos(t), 301);
    check(t, "a", FM_ENCODE_BOS, "300 97");
    check(t, "a", 0, "97");
    check(t, "<s>a", FM_ENCODE_BOS, "300 300 97");
    check(t, "", FM_ENCODE_BOS, "300");
    assert_null(fm_tokenizer_chat_template(t));
    fm_tokenizer_close(t);

    t = open_with_config("{\"bos_token\":\"<s>\",\"tokenizer_class\":\"LlamaTokenizerFast\"}");
    assert_true(fm_tokenizer_adds_bos(t));
    fm_tokenizer_close(t);
    t = open_with_config("{\"bos_token\":\"<s>\",\"eos_token\":null}");
    assert_false(fm_tokenizer_adds_bos(t));
    assert_int_equal(fm_tokenizer_eos(t), -1);
    fm_tokenizer_close(t);
}

static void the_template_is_text_a_list_or_a_file(void **state)
{
    (void)state;
    fm_tokenizer *t = open_with_config("{\"chat_template\":\"plain\"}");
    assert_string_equal(fm_tokenizer_chat_template(t), "plain");
    fm_tokenizer_close(t);
    t = open_with_config("{\"chat_template\":[{\"name\":\"tool_use\",\"template\":\"no\"},"
                         "{\"name\":\"default\",\"template\":\"yes\"}]}");
    assert_string_equal(fm_tokenizer_chat_template(t), "yes");
    fm_tokenizer_close(t);
    write_file("chat_template.jinja", "from the file");
    t = open_with_config("{\"chat_template\":\"plain\"}");
    assert_string_equal(fm_tokenizer_chat_template(t), "from the file");
    fm_tokenizer_close(t);
}

static void a_config_that_makes_no_sense_is_refused(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"{\"bos_token\":\"<nope>\"}", "bos_token \"<nope>\" is not in the vocabulary"},
        {"{\"eos_token\":7}", "eos_token: expected a string"},
        {"{\"add_bos_token\":\"yes\"}", "add_bos_token: expected true or false"},
        {"{\"chat_template\":[]}", "chat_template: expected"},
        {"[]", "expected an object"},
    };
    fm_tokenizer_close(open_with_config("{}"));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fm_tokenizer *t = NULL;
        write_file("tokenizer_config.json", bad[i][0]);
        assert_int_equal(fm_tokenizer_open(&t, dir), FM_E_FORMAT);
        assert_non_null(strstr(fm_why(), bad[i][1]));
        assert_non_null(strstr(fm_why(), "tokenizer_config.json"));
    }
}

static void a_directory_without_a_tokenizer_is_named(void **state)
{
    (void)state;
    fm_tokenizer *t = NULL;
    assert_int_equal(fm_tokenizer_open(&t, dir), FM_E_IO);
    assert_non_null(strstr(fm_why(), dir));
}

static void add_base64(fm_str *out, const unsigned char *b, int n)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (int i = 0; i < n; i += 3) {
        const uint32_t bits = (uint32_t)b[i] << 16 | (i + 1 < n ? (uint32_t)b[i + 1] << 8 : 0) |
                              (i + 2 < n ? b[i + 2] : 0u);
        const char four[4] = {digit[bits >> 18], digit[bits >> 12 & 63],
                              i + 1 < n ? digit[bits >> 6 & 63] : '=',
                              i + 2 < n ? digit[bits & 63] : '='};
        fm_str_add(out, four, 4);
    }
}

static void a_tiktoken_file_and_its_special_tokens(void **state)
{
    (void)state;
    static const char *const words[] = {"ab", "abc", "bc", " x", "xyzw", "中文"};
    fm_str                   file    = {0};
    for (int b = 0; b < 256; b++) {
        add_base64(&file, (const unsigned char[]){(unsigned char)b}, 1);
        fm_str_printf(&file, " %d\n", b);
    }
    for (int i = 0; i < 6; i++) {
        add_base64(&file, (const unsigned char *)words[i], (int)strlen(words[i]));
        fm_str_printf(&file, " %d\n", 256 + i);
    }
    write_file("tiktoken.model", file.text);
    write_file("tokenizer_config.json",
               "{\"bos_token\":\"[BOS]\",\"eos_token\":\"<|im_end|>\",\"added_tokens_decoder\":{"
               "\"262\":{\"content\":\"[BOS]\",\"special\":true},"
               "\"264\":{\"content\":\"<|im_end|>\",\"special\":true}}}");
    fm_tokenizer *t = NULL;
    if (fm_tokenizer_open(&t, dir) != FM_OK) fail_msg("%s", fm_why());
    check(t, "abc", 0, "257");
    check(t, "aabc", 0, "97 257");
    check(t, "xyzw", 0, "260");                 /* reached by no merge */
    check(t, "xyzwa", 0, "120 121 122 119 97"); /* nor here */
    check(t, "a x", 0, "97 259");
    check(t, "a中文", 0, "97 261");
    check(t, "a[BOS]<|im_end|>", 0, "97 262 264");
    check(t, "<|reserved_token_263|>", 0, "263");
    assert_int_equal(fm_tokenizer_bos(t), 262);
    assert_int_equal(fm_tokenizer_eos(t), 264);
    assert_int_equal(fm_tokenizer_size(t), 262 + 256);
    assert_false(fm_tokenizer_adds_bos(t));
    fm_tokenizer_close(t);

    static const char *const bad[] = {"YQ==\n",          "YQ== x\n", "Y 0\n",   "Y*== 1\n",
                                      "YQ== 99999999\n", " 1\n",     "YQ== 0\n"};
    for (int i = 0; i < 7; i++) {
        t = NULL;
        write_file("tiktoken.model", bad[i]);
        assert_int_equal(fm_tokenizer_open(&t, dir), FM_E_FORMAT);
        assert_non_null(strstr(fm_why(), "tiktoken.model"));
    }
    fm_str_fini(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(added_tokens_are_leftmost_and_longest),
        cmocka_unit_test(tokens_marked_normalized_are_looked_for_last),
        cmocka_unit_test(an_added_token_that_spells_a_byte_decodes_to_it),
        cmocka_unit_test(byte_level_brings_its_own_split_when_asked),
        cmocka_unit_test(literal_splits_and_digits),
        cmocka_unit_test(what_is_not_supported_is_refused_with_a_sentence),
        cmocka_unit_test(what_is_malformed_is_refused_with_a_sentence),
        cmocka_unit_test_setup_teardown(the_config_decides_about_bos, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(the_template_is_text_a_list_or_a_file, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(a_config_that_makes_no_sense_is_refused, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(a_directory_without_a_tokenizer_is_named, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(a_tiktoken_file_and_its_special_tokens, make_dir,
                                        remove_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
