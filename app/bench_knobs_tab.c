/* SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"

#define K(KIND, field, ...) FM_KNOB(fm_bench_options, KIND, field, __VA_ARGS__)

/* clang-format off */
const fm_knob fm_bench_knobs[] = {
    K(WORD, dataset_name, "dataset-name", NULL, 0, 0, "NAME",
      "sharegpt, random, random-ids, generated-shared-prefix or synthetic; without it: sharegpt when there is a --dataset-path, otherwise synthetic"),
    K(WORD, dataset_path, "dataset-path", NULL, 0, 0, "FILE", "ShareGPT's JSON file"),
    K(INT, num_prompts, "num-prompts", "0", 0, 1e8, "N", "requests; 0: 1000, or what takes about a minute when no dataset is named"),
    K(INT, seed, "seed", "42", 0, 4294967295.0, "N", "of the dataset's draw"),
    K(INT, sharegpt_output_len, "sharegpt-output-len", "0", 0, 1e8, "N", "output tokens of each request; 0: as long as the reply in the file"),
    K(INT, sharegpt_context_len, "sharegpt-context-len", "0", 0, 1e9, "N", "skip conversations longer than this; 0: keep all"),
    K(INT, random_input_len, "random-input-len", "1024", 1, 1e8, "N", "random: most input tokens of a request"),
    K(INT, random_output_len, "random-output-len", "1024", 1, 1e8, "N", "random: most output tokens of a request"),
    K(REAL, random_range_ratio, "random-range-ratio", "0.0", 0, 1, "R", "random: lengths are drawn from R*len to len"),
    K(INT, gsp_num_groups, "gsp-num-groups", "64", 1, 1e6, "N", "generated-shared-prefix: groups"),
    K(INT, gsp_prompts_per_group, "gsp-prompts-per-group", "16", 1, 1e6, "N", "generated-shared-prefix: prompts of a group"),
    K(INT, gsp_system_prompt_len, "gsp-system-prompt-len", "2048", 1, 1e8, "N", "generated-shared-prefix: tokens all prompts of a group begin with"),
    K(INT, gsp_question_len, "gsp-question-len", "128", 1, 1e8, "N", "generated-shared-prefix: tokens of a prompt's own"),
    K(INT, gsp_output_len, "gsp-output-len", "256", 1, 1e8, "N", "generated-shared-prefix: output tokens"),
    K(WORD, prompt_suffix, "prompt-suffix", NULL, 0, 0, "TEXT", "text added to every ShareGPT prompt"),
    K(FLAG, apply_chat_template, "apply-chat-template", NULL, 0, 0, NULL, "ShareGPT prompts become one user turn of a chat"),

    K(FLAG, disable_ignore_eos, "disable-ignore-eos", NULL, 0, 0, NULL, "answers end at the end-of-text token"),
    K(WORD, extra_request_body, "extra-request-body", NULL, 0, 0, "JSON", "sampling parameters of every request, e.g. {\"temperature\": 0.6}"),
    K(FLAG, return_logprob, "return-logprob", NULL, 0, 0, NULL, "compute the log-probability of each generated token"),
    K(INT, logprob_start_len, "logprob-start-len", "-1", -1, 1e9, "N", "with --return-logprob: of the prompts' tokens after this position, too; -1: none"),
    K(FLAG, profile, "profile", NULL, 0, 0, NULL, "record the timed call and say where its time went"),
    K(WORD, profile_prefix, "profile-filename-prefix", "profile", 0, 0, "NAME", "the recording is NAME.trace"),
    K(FLAG, skip_warmup, "skip-warmup", NULL, 0, 0, NULL, "do not run the 16 warm-up requests"),
    K(REAL, time_limit, "time-limit", "0", 0, 1e9, "S", "seconds from the start, loading and warm-up included, after which what was measured is reported, marked partial, with exit status 4; 0: none"),
    K(FLAG, do_not_exit, "do-not-exit", NULL, 0, 0, NULL, "stay after the report, until interrupted"),

    K(WORD, result_filename, "result-filename", NULL, 0, 0, "FILE", "append the result as one JSON line"),
    K(WORD, output_details, "output-details", NULL, 0, 0, "FILE", "write one JSON line per request: prompt and output ids, finish reason"),

    K(WORD, batch_size, "batch-size", NULL, 0, 0, "N,...", "one-batch mode: sequences; a list measures every combination (1)"),
    K(WORD, input_len, "input-len", NULL, 0, 0, "N,...", "one-batch mode: prompt tokens (1024)"),
    K(WORD, output_len, "output-len", NULL, 0, 0, "N,...", "one-batch mode: generated tokens (16)"),
    K(WORD, run_name, "run-name", "default", 0, 0, "NAME", "one-batch mode: a name in its JSON lines"),
};
/* clang-format on */
const int fm_n_bench_knob = (int)(sizeof fm_bench_knobs / sizeof fm_bench_knobs[0]);
