/* SPDX-License-Identifier: Apache-2.0 */
#include "tune.h"

#define K(KIND, field, ...) FM_KNOB(fm_tune_options, KIND, field, __VA_ARGS__)

/* clang-format off */
const fm_knob fm_tune_knobs[] = {
    K(WORD, param, "param", NULL, 0, 0, "NAME=RANGE",
      "a parameter, repeated for each: threads=1..64, batch=8..1024:log, ratio=0.1..0.9, map={core,socket}, drafts=1..8 if spec=on"),
    K(WORD, constraint, "constraint", NULL, 0, 0, "EXPR", "try only points where this holds, such as 'tp*pp <= 16'; may be repeated"),
    K(WORD, metric, "metric", NULL, 0, 0, "REGEX", "the value in the output: the first group of the last match; or json:path.to.member"),
    K(FLAG, maximize, "maximize", NULL, 0, 0, NULL, "larger is better"),
    K(FLAG, minimize, "minimize", NULL, 0, 0, NULL, "smaller is better"),
    K(WORD, require, "require", NULL, 0, 0, "REGEX<=X", "a limit on another value in the output, <= or >=; may be repeated"),
    K(REAL, slo_ttft, "slo-ttft", "0", 0, 1e9, "MS", "serve: at most this P99 time to the first token; 0: any"),
    K(REAL, slo_tpot, "slo-tpot", "0", 0, 1e9, "MS", "serve: at most this P99 time per output token; 0: any"),
    K(WORD, knobs, "knobs", NULL, 0, 0, "LIST", "bench, serve: which of fathom's knobs are searched, such as threads,page-size; 'help' lists them"),

    K(INT, trials, "trials", "30", 1, 100000, "N", "points to try, those of a continued study included"),
    K(INT, confirm, "confirm", "2", 0, FM_SEARCH_MAX_CONFIRM, "N", "run the best N once more at the end"),
    K(REAL, wall_time, "wall-time", "0", 0, 1e9, "S", "seconds for everything, confirmations included; 0: no limit"),
    K(REAL, trial_time_limit, "trial-time-limit", "0", 0, 1e9, "S", "seconds after which a trial is ended and counts as failed; 0: none"),
    K(WORD, report, "report", NULL, 0, 0, "REGEX", "intermediate values in the output; a trial worse than half of the others at the same step is ended"),
    K(INT, jobs, "jobs", "1", 1, FM_SEARCH_MAX_JOBS, "N", "trials side by side, each with its share of the CPUs"),
    K(INT, gpus, "gpus", "0", 0, 64, "N", "GPUs of each trial, by CUDA_VISIBLE_DEVICES; 0: not set"),
    K(WORD, sampler, "sampler", "gp", 0, 0, "NAME", "how points are chosen: gp (Gaussian process), tpe or random"),
    K(INT, seed, "seed", "0", 0, 4294967295.0, "N", "of the search"),

    K(WORD, study, "study", "tune-study.jsonl", 0, 0, "FILE", "every trial as a JSON line; a study that was interrupted goes on"),
    K(WORD, keep_output, "keep-output", NULL, 0, 0, "DIR", "write each trial's output to DIR/trial-N.log"),
    K(WORD, html, "html", NULL, 0, 0, "FILE", "write the report with plots as one HTML page"),
    K(WORD, json, "json", NULL, 0, 0, "FILE", "write the report as JSON"),
    K(WORD, write_preset, "write-preset", NULL, 0, 0, "FILE", "bench, serve: write the best options to a file that --preset reads"),
    K(FLAG, quiet, "quiet", NULL, 0, 0, NULL, "no line per trial"),
};
/* clang-format on */
const int fm_n_tune_knob = (int)(sizeof fm_tune_knobs / sizeof fm_tune_knobs[0]);
