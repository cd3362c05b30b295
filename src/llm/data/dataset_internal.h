/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of all datasets: the random generators, the index of a ShareGPT file, and adding a row. */
#ifndef FM_LLM_DATA_DATASET_INTERNAL_H
#define FM_LLM_DATA_DATASET_INTERNAL_H

#include <jansson.h>

#include "base/mapped_file.h"
#include "base/mt19937.h"
#include "llm/data/dataset.h"

/* One entry of the file with at least two turns: still JSON, read when drawn. */
typedef struct {
    const char *json; /* [len] borrowed from the file's bytes */
    size_t      len;
    int         entry; /* its number in the file, for messages */
} fm__talk;

typedef struct {
    const char *file; /* borrowed: for messages */
    fm__talk   *talk; /* [n] owned, in the file's order */
    int         n, cap;
} fm__talks;

/* Finds the usable conversations in text[0..len), one entry in memory at a
 * time: the file is large, the index small. */
fm_status fm__talks_index(fm__talks *out, const char *text, size_t len, const char *file);
void      fm__talks_fini(fm__talks *t);

/* The first two turns.  The strings belong to *doc (json_decref). */
typedef struct {
    json_t     *doc;
    const char *prompt, *reply;
    size_t      n_prompt, n_reply; /* bytes */
} fm__turns;
fm_status fm__talk_read(fm__turns *out, const fm__talks *t, const fm__talk *talk);

/* The same, in the order of Python's next shuffle; owned by the caller. */
fm_status fm__talks_shuffled(fm__talk **out, const fm__talks *t, fm_mt *python);

typedef struct {
    const fm_data_options *opt;
    fm_mt                  python, numpy;
    fm_mapped_file         file;
    fm__talks              talks;   /* empty unless the file is used */
    fm_tokenizer_scratch  *scratch; /* NULL without a tokenizer */
} fm__dealer;

/* Cuts to the context and appends a copy. */
fm_status fm__dataset_add(fm_dataset *d, const fm__dealer *k, const int32_t *token, int64_t n,
                          int64_t n_output);
/* n rows of up to `len` > 0 tokens: refuse what is absurd before allocating. */
fm_status fm__dataset_fits(int64_t n, int64_t len);

fm_status fm__deal_sharegpt(fm_dataset *d, fm__dealer *k);
fm_status fm__deal_random(fm_dataset *d, fm__dealer *k, int n, int input_len, int output_len,
                          double range_ratio);
fm_status fm__deal_random_ids(fm_dataset *d, fm__dealer *k, int n, int input_len, int output_len,
                              double range_ratio);
fm_status fm__deal_shared_prefix(fm_dataset *d, fm__dealer *k);
fm_status fm__deal_synthetic(fm_dataset *d, fm__dealer *k);

#endif
