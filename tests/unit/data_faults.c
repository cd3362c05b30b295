/* SPDX-License-Identifier: Apache-2.0 */
/* Files and options that are not what they claim: one sentence, nothing drawn. */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "data_support.h"

static fm_tokenizer *tokenizer;
static fm_str        file;

static void refused(const fm_data_options *o, fm_status status, const char *what)
{
    fm_dataset rows, warm;
    memset(&rows, 0xa5, sizeof rows);
    const fm_dataset before = rows;
    assert_int_equal(fm_dataset_draw(&rows, &warm, o), status);
    if (!strstr(fm_why(), what)) fail_msg("\"%s\" does not say \"%s\"", fm_why(), what);
    assert_memory_equal(&rows, &before, sizeof rows);
}

static void bad_file(const char *text, const char *what)
{
    const size_t    len   = strlen(text);
    char           *exact = malloc(len ? len : 1); /* no byte after it may be read */
    fm_data_options o     = data_options(tokenizer, &file);
    memcpy(exact, text, len);
    o.text     = exact;
    o.text_len = len;
    refused(&o, FM_E_FORMAT, what);
    assert_non_null(strstr(fm_why(), "talks.json"));
    o.name = "random";
    refused(&o, FM_E_FORMAT, what);
    free(exact);
}

#define GOOD "{\"conversations\":[{\"value\":\"a b c\"},{\"value\":\"d e f\"}]}"

static void files_that_are_no_list(void **state)
{
    (void)state;
    bad_file("", "expected a JSON list");
    bad_file(" \n", "expected a JSON list");
    bad_file("hello", "expected a JSON list");
    bad_file(GOOD "\n" GOOD, "expected a JSON list");
    bad_file("[", "entry 0: the list is not closed");
    bad_file("[" GOOD, "entry 0: the list is not closed");
    bad_file("[" GOOD ",", "entry 1: the list is not closed");
    bad_file("[" GOOD ",]", "entry 1");
    bad_file("[" GOOD "]]", "more text after the list");
    bad_file("[" GOOD " " GOOD "]", "entry 0");
    bad_file("[" GOOD ",{\"a\":\"x]", "entry 1: the list is not closed");
    bad_file("[" GOOD ",{\"a\":\"\\", "entry 1: the list is not closed");
}

static void entries_that_are_wrong(void **state)
{
    (void)state;
    bad_file("[" GOOD ",5]", "entry 1");
    bad_file("[" GOOD ",[]]", "entry 1: expected an object, found an array");
    bad_file("[" GOOD ",{]]", "entry 1");
    bad_file("[{\"conversations\":5}]", "entry 0: conversations: expected an array");
    bad_file("[{\"conversations\":null}]", "entry 0: conversations: expected an array, found null");
    bad_file("[{\"conversation\":{}}]", "entry 0: conversation: expected an array");
    bad_file("[{\"conversations\":[1,2]}]", "entry 0: turn 0: value: expected a string");
    bad_file("[{\"conversations\":[{\"value\":\"a\"},{}]}]", "entry 0: turn 1: value");
    bad_file("[{\"conversations\":[{\"value\":7},{\"value\":\"\"}]}]", "found an integer");
    bad_file("[" GOOD ",{\"x\":\"\xff\"}]", "entry 1");
    bad_file("[" GOOD ",{\"x\":\"\\ud8\"}]", "entry 1");
    bad_file("[" GOOD ",{\"x\":\"\\ud800\"]", "entry 1");
}

static void nothing_usable(void **state)
{
    (void)state;
    bad_file("[]", "no conversation has two turns");
    bad_file("[{},{\"conversations\":[]},{\"conversations\":[{\"value\":\"a\"}]}]",
             "no conversation has two turns");

    fm_data_options o = data_options(tokenizer, &file);
    o.text            = "[{\"conversations\":[{\"value\":\"a\"},{\"value\":\"\"}]}]";
    o.text_len        = strlen(o.text);
    refused(&o, FM_E_FORMAT, "talks.json: no conversation is long enough");
    o = data_options(tokenizer, &file);
    o.sharegpt_context_len = 1;
    refused(&o, FM_E_FORMAT, "talks.json: no conversation is long enough");
}

static void depth_is_bounded(void **state)
{
    (void)state;
    const size_t n    = 100000;
    char        *deep = malloc(2 * n + 1);
    memset(deep, '[', n);
    memset(deep + n, ']', n);
    deep[2 * n] = 0;
    bad_file(deep, "entry 0: nested deeper");
    free(deep);
}

/* Cut anywhere, the file is an error or gives rows; it never reads too far. */
static void every_truncation(void **state)
{
    (void)state;
    for (size_t n = 0; n < file.len; n += 7) {
        char           *exact = malloc(n ? n : 1);
        fm_data_options o     = data_options(tokenizer, &file);
        fm_dataset      rows, warm;
        memcpy(exact, file.text, n);
        o.text     = exact;
        o.text_len = n;
        const fm_status rc = fm_dataset_draw(&rows, &warm, &o);
        if (rc == FM_OK) {
            assert_true(n >= file.len - 1);
            fm_dataset_fini(&rows);
            fm_dataset_fini(&warm);
        } else {
            assert_int_equal(rc, FM_E_FORMAT);
        }
        free(exact);
    }
}

static void files_on_disk(void **state)
{
    (void)state;
    char            path[] = "/tmp/fathom-talks-XXXXXX";
    const int       fd     = mkstemp(path);
    fm_data_options o      = data_options(tokenizer, &file);
    fm_dataset      rows, warm;
    o.text = NULL;
    o.path = path;
    refused(&o, FM_E_FORMAT, path); /* empty */
    assert_int_equal(write(fd, file.text, file.len), file.len);
    close(fd);
    assert_int_equal(fm_dataset_draw(&rows, &warm, &o), FM_OK);
    assert_int_equal(rows.n, 25);
    fm_dataset_fini(&rows);
    fm_dataset_fini(&warm);
    unlink(path);
    refused(&o, FM_E_IO, path);
    o.path = "/tmp";
    refused(&o, FM_E_IO, "/tmp");
}

static void what_sharegpt_needs(void **state)
{
    (void)state;
    fm_data_options o = data_options(NULL, &file);
    refused(&o, FM_E_ARG, "sharegpt needs a tokenizer");
    assert_non_null(strstr(fm_why(), "--tokenizer-path"));
    o      = data_options(tokenizer, &file);
    o.text = o.path = NULL;
    refused(&o, FM_E_ARG, "--dataset-path");
    o                     = data_options(tokenizer, &file);
    o.sharegpt_output_len = 3;
    refused(&o, FM_E_ARG, "--sharegpt-output-len");
    o       = data_options(tokenizer, &file);
    o.vocab = 50;
    refused(&o, FM_E_ARG, "outside the model's vocabulary of 50");
}

typedef struct {
    const char *dataset, *option;
    size_t      offset; /* of an int */
    int         bad;
} option_case;

#define OPTION(f) offsetof(fm_data_options, f)

static const option_case option_cases[] = {
    {"synthetic", "--num-prompts", OPTION(n_prompt), 0},
    {"synthetic", "--num-prompts", OPTION(n_prompt), -5},
    {"synthetic", "tokens are more than the limit", OPTION(n_prompt), 1000000000},
    {"synthetic", "vocabulary", OPTION(vocab), 0},
    {"synthetic", "context length", OPTION(context), 1},
    {"synthetic", "context length", OPTION(context), -1},
    {"random", "--random-input-len", OPTION(random_input_len), 0},
    {"random", "--random-input-len", OPTION(random_input_len), INT32_MAX},
    {"random", "--random-output-len", OPTION(random_output_len), -1},
    {"random", "tokens are more than the limit", OPTION(n_prompt), INT32_MAX},
    {"generated-shared-prefix", "--gsp-num-groups", OPTION(gsp_groups), 0},
    {"generated-shared-prefix", "tokens are more than the limit", OPTION(gsp_groups), INT32_MAX},
    {"generated-shared-prefix", "--gsp-prompts-per-group", OPTION(gsp_per_group), 0},
    {"generated-shared-prefix", "tokens are more than", OPTION(gsp_per_group), INT32_MAX},
    {"generated-shared-prefix", "--gsp-system-prompt-len", OPTION(gsp_system_len), 0},
    {"generated-shared-prefix", "--gsp-question-len", OPTION(gsp_question_len), -1},
    {"generated-shared-prefix", "--gsp-output-len", OPTION(gsp_output_len), 0},
};

static void options_out_of_range(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof option_cases / sizeof *option_cases; i++) {
        const option_case *c = &option_cases[i];
        fm_data_options    o = fm_data_default();
        o.name               = c->dataset;
        o.vocab              = 100;
        memcpy((char *)&o + c->offset, &c->bad, sizeof c->bad);
        refused(&o, FM_E_ARG, c->option);
    }
}

static void other_options(void **state)
{
    (void)state;
    static const double ratios[] = {-0.1, 1.01, NAN, INFINITY};
    fm_data_options     o        = fm_data_default();
    o.vocab                      = 100;
    o.name                       = "random";
    for (int i = 0; i < 4; i++) {
        o.random_range_ratio = ratios[i];
        refused(&o, FM_E_ARG, "--random-range-ratio");
    }
    o.random_range_ratio = 0;
    o.seed               = 1ull << 32;
    refused(&o, FM_E_ARG, "--seed");
    o.seed = 1;
    o.name = "sharegtp";
    refused(&o, FM_E_ARG, "sharegtp");
    o.name = NULL;
    refused(&o, FM_E_ARG, "unknown");
}

/* Nothing but the options is there: no tokenizer yet, no vocabulary, no file. */
static void known_before_there_is_a_model(void **state)
{
    (void)state;
    fm_data_options o = fm_data_default();
    assert_int_equal(fm_dataset_check(&o, 0), FM_OK);
    o.name = "sharegpt";
    assert_int_equal(fm_dataset_check(&o, 1), FM_E_ARG);
    assert_non_null(strstr(fm_why(), "--dataset-path"));
    o.path = "/nowhere/talks.json";
    assert_int_equal(fm_dataset_check(&o, 1), FM_OK);
    assert_int_equal(fm_dataset_check(&o, 0), FM_E_ARG);
    assert_non_null(strstr(fm_why(), "--tokenizer-path"));
    o.name = "mmlu";
    assert_int_equal(fm_dataset_check(&o, 1), FM_E_ARG);
    assert_non_null(strstr(fm_why(), "mmlu"));
    o.name     = "random";
    o.n_prompt = 0;
    assert_int_equal(fm_dataset_check(&o, 1), FM_E_ARG);
    assert_non_null(strstr(fm_why(), "--num-prompts"));
}

static int open_all(void **state)
{
    (void)state;
    tokenizer = data_tokenizer(DATA_WITH_BOS);
    data_write_file(&file);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    fm_tokenizer_close(tokenizer);
    fm_str_fini(&file);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_that_are_no_list), cmocka_unit_test(entries_that_are_wrong),
        cmocka_unit_test(nothing_usable),         cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(every_truncation),       cmocka_unit_test(files_on_disk),
        cmocka_unit_test(what_sharegpt_needs),    cmocka_unit_test(options_out_of_range),
        cmocka_unit_test(other_options),          cmocka_unit_test(known_before_there_is_a_model),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
