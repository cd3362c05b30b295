/* SPDX-License-Identifier: Apache-2.0 */
/* The prompts a benchmark runs, drawn exactly as SGLang draws them. */
#ifndef FM_LLM_DATA_DATASET_H
#define FM_LLM_DATA_DATASET_H

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
    int          n;
    int64_t      sum_prompt, sum_output;
} fm_dataset;

void fm_dataset_fini(fm_dataset *d);

typedef struct {
    const char         *name;        /* sharegpt, random, generated-shared-prefix, synthetic */
    const char         *path;        /* file, or NULL */
    const fm_tokenizer *tokenizer;   /* NULL: ids alone */
    int                 vocab;       /* ids are drawn below this */
    int                 n_prompt;
    uint64_t            seed;
    int                 context;     /* rows longer than this are cut or skipped as the rule says */
    int                 sharegpt_output_len;  /* 0: as in the file */
    int                 sharegpt_context_len; /* 0: no limit */
    const char         *prompt_suffix;        /* NULL or text */
    int                 apply_chat;
    int                 random_input_len, random_output_len;
    double              random_range_ratio;
    int                 gsp_groups, gsp_per_group, gsp_system_len, gsp_question_len, gsp_output_len;
} fm_data_options;

fm_data_options fm_data_default(void);

/* Seeds the two generators (Python's and NumPy's), draws the rows, then the
 * warm-up rows as the benchmark's next draw: min(n_prompt, 16) of 256 in, 16
 * out. */
fm_status fm_dataset_draw(fm_dataset *rows, fm_dataset *warmup, const fm_data_options *opt);

#endif
