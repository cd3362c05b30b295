/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "data_support.h"

const data_text data_texts[DATA_TEXTS] = {
    {"\"\"", {0}, 0},
    {"\" \"", {223}, 1},
    {"\"\\t\\t x\"", {200, 200, 394}, 3},
    {"\"Hello, world!\"", {42, 1683, 340, 14, 323, 3013, 3}, 7},
    {"\"don't I'll we're\"", {70, 277, 1253, 514, 9, 1475, 769, 9, 282}, 9},
    {"\"\\u0000\\u0001\\u007f control\"", {191, 192, 224, 1578}, 4},
    {"\"Z\\u0928\\u4e2d€\"", {60, 159, 100, 104, 163, 119, 258, 2864, 108}, 9},
    {"\"9_$\"", {27, 65, 6}, 3},
    {"\"h\\nfro\"", {74, 201, 3971}, 3},
    {"\"\\\"\"", {4}, 1},
};

fm_tokenizer *data_tokenizer(const char *config)
{
    char          dir[] = "/tmp/fathom-data-XXXXXX", json[64], extra[64];
    fm_tokenizer *t     = NULL;
    assert_non_null(mkdtemp(dir));
    snprintf(json, sizeof json, "%s/tokenizer.json", dir);
    snprintf(extra, sizeof extra, "%s/tokenizer_config.json", dir);
    assert_int_equal(symlink(FM_TEST_DATA "/tokenizer/tokenizer.json", json), 0);
    FILE *f = fopen(extra, "w");
    assert_non_null(f);
    fputs(config, f);
    fclose(f);
    if (fm_tokenizer_open(&t, dir) != FM_OK) fail_msg("%s", fm_why());
    unlink(json);
    unlink(extra);
    rmdir(dir);
    return t;
}

void data_write_file(fm_str *out)
{
    for (int i = 0; i < 40; i++) {
        const char *key = i % 9 == 7 ? "conversation" : "conversations";
        fm_str_puts(out, i ? ",\n  " : "[");
        if (i % 11 == 5) {
            fm_str_printf(out, "{\"id\": \"%d\", \"%s\": []}", i, key);
            continue;
        }
        fm_str_printf(out, "{\"%s\": [{\"from\": \"human\", \"value\": %s}", key,
                      data_texts[i * 7 % 10].json);
        if (i % 9 != 4)
            fm_str_printf(out, ", {\"value\": %s}, {\"from\": \"[]{}\\\\\\\"\"}",
                          data_texts[(i * 3 + 1) % 10].json);
        fm_str_puts(out, "]}");
    }
    fm_str_puts(out, "\n]\n");
}

fm_data_options data_options(const fm_tokenizer *t, const fm_str *file)
{
    fm_data_options o = fm_data_default();
    o.name            = "sharegpt";
    o.path            = "talks.json";
    o.text            = file->text;
    o.text_len        = file->len;
    o.tokenizer       = t;
    o.vocab           = 5000;
    return o;
}
