/* SPDX-License-Identifier: Apache-2.0 */
/* `fathom bench`: its options, one run, and its report. */
#ifndef FM_APP_BENCH_H
#define FM_APP_BENCH_H

#include <jansson.h>

#include "generate.h"
#include "llm/data/dataset.h"
#include "llm/engine.h"

/* The flags of SGLang's bench_offline_throughput and bench_one_batch, and a
 * few of ours. */
typedef struct {
    char   *dataset_name, *dataset_path, *prompt_suffix, *extra_request_body;
    char   *result_filename, *output_details, *run_name;
    char   *batch_size, *input_len, *output_len; /* lists: one-batch mode when any is given */
    int64_t num_prompts, seed, logprob_start_len;
    int64_t sharegpt_output_len, sharegpt_context_len;
    int64_t random_input_len, random_output_len;
    double  random_range_ratio, time_limit;
    int64_t gsp_num_groups, gsp_prompts_per_group;
    int64_t gsp_system_prompt_len, gsp_question_len, gsp_output_len;
    char   *profile_prefix;
    int     profile; /* record the timed call */
    int     disable_ignore_eos, apply_chat_template, return_logprob, skip_warmup, do_not_exit;
} fm_bench_options;

extern const fm_knob fm_bench_knobs[];
extern const int     fm_n_bench_knob;

const char     *fm_bench_dataset_name(const fm_bench_options *b);
fm_data_options fm_bench_data_options(const fm_bench_options *b); /* what the flags say */

/* Where the workload differs from the one that was asked for: always reported. */
typedef struct {
    int     n_asked;       /* requests; a file may have had fewer */
    int     n_cut_context; /* shortened to the context of so many tokens */
    int64_t context;
    int     n_cut_pool; /* whose answers end early: a text has only this many of KV */
    int64_t pool;
} fm_bench_changes;
int  fm_bench_asked(const fm_bench_options *b); /* requests, whatever the dataset */
void fm_bench_print_changes(const fm_bench_changes *c, int n_row); /* rows of the table */
void fm_bench_add_changes(json_t *to, const fm_bench_changes *c);

/* From --return-logprob, --disable-ignore-eos and --extra-request-body. */
fm_status fm_bench_ask_init(fm_ask *ask, const fm_bench_options *b);
void      fm_bench_ask_fini(fm_ask *ask);

/* Engine counters over the timed call. */
typedef struct {
    int64_t n_step, sum_running, n_preemption, hit_tokens, asked_tokens;
    int64_t n_decode_row, n_draft, n_accepted;
    double  forward_seconds;
    fm_tiers_info tiers; /* what pages from below the pool did */
} fm_bench_counts;
fm_bench_counts fm_bench_counts_since(const fm_engine_info *before, const fm_engine_info *after);

/* Everything the report needs. */
typedef struct {
    const fm_options *engine;
    const char       *dataset;
    const fm_dataset *rows;
    const fm_answers *batch;
    fm_engine_info    info;
    fm_bench_counts   counts;
    fm_bench_changes  changes;
} fm_bench_result;

void    fm_bench_print(const fm_bench_result *r);
json_t *fm_bench_json(const fm_bench_result *r, const fm_bench_options *b);
const char *fm_bench_simulated(const fm_engine_info *info); /* words behind a number, or "" */
void    fm_bench_describe(json_t *to, const fm_options *o, const fm_engine_info *info);

/* The files can be written, the dataset read: better known before the run. */
fm_status fm_bench_check_paths(const fm_bench_options *b);
fm_status fm_bench_append(const char *flag, const char *path, json_t *line); /* steals the line */
fm_status fm_bench_write_details(const char *path, const fm_dataset *rows, const fm_answers *batch);

/* --profile: records the timed call, then says where its time went. */
fm_status fm_bench_profile_begin(const fm_bench_options *b, fm_engine *e);
fm_status fm_bench_profile_end(const fm_bench_options *b, fm_engine *e);
fm_status fm_bench_profile_explain(const fm_bench_options *b);

/* Prefill and decode of one batch; all combinations of the three lists. */
typedef struct fm_bench_lists {
    int *batch, *input, *output; /* owned */
    int  n_batch, n_input, n_output;
} fm_bench_lists;
fm_status fm_bench_lists_init(fm_bench_lists *l, const fm_bench_options *b);
void      fm_bench_lists_fini(fm_bench_lists *l);
int       fm_bench_lists_max_batch(const fm_bench_lists *l);
fm_status fm_bench_one_batch(fm_engine *e, const fm_options *o, const fm_bench_options *b,
                             const fm_bench_lists *l);

#endif
