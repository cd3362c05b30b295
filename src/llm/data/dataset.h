/* SPDX-License-Identifier: Apache-2.0 */
/* The prompts a benchmark runs, drawn exactly as SGLang draws them.
 *
 *   sharegpt                 first two turns of each conversation of a file, in
 *                            the order Python's shuffle gives; needs a tokenizer
 *   random                   lengths from NumPy; the ids are the file's prompts,
 *                            repeated or cut, or, without a file or a tokenizer,
 *                            row i counts up from a random id
 *   random-ids               random without a file's prompts
 *   generated-shared-prefix  random ids; the rows of a group begin alike
 *   synthetic                random ids, lengths with ShareGPT's means
 *
 * A row is ids, BOS included where the tokenizer adds one. */
#ifndef FM_LLM_DATA_DATASET_H
#define FM_LLM_DATA_DATASET_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "llm/text/chat.h"
#include "llm/text/tokenizer.h"

typedef struct {
    int32_t *token; /* [n_prompt] owned by the dataset */
    int32_t  n_prompt;
    int32_t  n_output;
} fm_data_row;

typedef struct {
    fm_data_row *row; /* [n] owned */
    int          n, cap;
    int          n_cut; /* rows shortened because the context is shorter */
    int64_t      sum_prompt, sum_output;
} fm_dataset;

void fm_dataset_fini(fm_dataset *d); /* {0} is fine */

typedef struct {
    const char         *name;        /* one of the names above */
    const char         *path;        /* file, or NULL */
    const char         *text;        /* NULL, or the file's bytes when they are here already; */
    size_t              text_len;    /* `path` is then only a name for messages */
    const fm_tokenizer *tokenizer;   /* NULL: ids alone */
    int                 vocab;       /* ids are drawn below this; a larger one is an error */
    int                 n_prompt;    /* at most; a file may have fewer */
    uint64_t            seed;        /* below 2^32, as NumPy wants it */
    int                 context;     /* prompt + output; longer rows are cut; 0: no limit */
    int                 sharegpt_output_len;  /* 0: as in the file */
    int                 sharegpt_context_len; /* longer rows are skipped; 0: no limit */
    const char         *prompt_suffix;        /* NULL or text */
    int                 apply_chat;
    int                 random_input_len, random_output_len;
    double              random_range_ratio;
    int                 gsp_groups, gsp_per_group, gsp_system_len, gsp_question_len, gsp_output_len;
} fm_data_options;

fm_data_options fm_data_default(void);

/* What is wrong with the options as far as it shows before there is a model: its
 * tokenizer, vocabulary and context are not looked at.  FM_E_ARG names the option. */
fm_status fm_dataset_check(const fm_data_options *opt, int has_tokenizer);

/* Seeds the two generators (Python's and NumPy's), draws the rows, then the
 * warm-up rows as the benchmark's next draw: min(n_prompt, 16) of "random", 256
 * in, 16 out.  FM_E_ARG names the option, FM_E_FORMAT file and entry; on
 * failure nothing is written. */
fm_status fm_dataset_draw(fm_dataset *rows, fm_dataset *warmup, const fm_data_options *opt);

#endif
