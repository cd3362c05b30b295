/* SPDX-License-Identifier: Apache-2.0 */
/* A tokenizer with or without a BOS rule, and a small file to draw from. */
#ifndef FM_TESTS_DATA_SUPPORT_H
#define FM_TESTS_DATA_SUPPORT_H

#include "base/str.h"
#include "llm/data/dataset.h"

/* The test tokenizer with this tokenizer_config.json. */
fm_tokenizer *data_tokenizer(const char *config);

#define DATA_WITH_BOS "{\"add_bos_token\": true}"
#define DATA_NO_BOS   "{\"add_bos_token\": false}"

/* Ten texts with their ids (from the golden file), and 40 conversations made
 * of them as tests/unit/data_sharegpt.c describes. */
enum { DATA_TEXTS = 10, DATA_MAX_IDS = 9 };
typedef struct {
    const char *json; /* the text as a JSON string */
    int32_t     id[DATA_MAX_IDS];
    int         n;
} data_text;
extern const data_text data_texts[DATA_TEXTS];

void data_write_file(fm_str *out);

/* sharegpt from `file`, everything else default; vocabulary 5000 */
fm_data_options data_options(const fm_tokenizer *t, const fm_str *file);

#endif
