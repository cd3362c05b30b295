/* SPDX-License-Identifier: Apache-2.0 */
/* The search: suggest a point, run the command there, read its value, write it down.
 *
 *     sampler ──point──> words ──command──> process ──output──> metric ──trial──> study
 *        ^                                                                          │
 *        └──────────────────────────────────────────────────────────────────────────┘
 *
 * Up to `jobs` trials run side by side.  A trial begins only if one as long as the median
 * of those before it, and the confirmation runs after it, still fit into the wall time.  Trials
 * that fail are data; an error here is the study's own (a file that cannot be written). */
#ifndef FM_TUNE_SEARCH_H
#define FM_TUNE_SEARCH_H

#include "tune/metric.h"
#include "tune/process.h"
#include "tune/sampler.h"

enum { FM_SEARCH_MAX_JOBS = 64, FM_SEARCH_MAX_CONFIRM = 16 };

typedef struct {
    fm_study                *study;
    const fm_search_sampler *sampler;
    char *const             *word; /* [n_word] the command, with places for values (words.h) */
    int                      n_word;
    const fm_metric         *metric;
    const fm_metric         *report; /* intermediate values; NULL: no trial is pruned */
    const fm_limit          *limit;  /* [n_limit] beyond them a trial is unfit */
    int                      n_limit;
    const fm_point          *first; /* [n_first] tried before the sampler is asked */
    int                      n_first;
    int                      n_trial;   /* in all, those of a continued study included */
    int                      n_confirm; /* the best so many are run once more */
    int                      jobs, gpus;
    double                   trial_seconds; /* time limit of a trial; 0: none */
    double                   until;         /* fm_now() when all must be over; 0: never */
    const char              *keep_output;   /* a directory for trial-N.log, or NULL */
    const char *(*stop)(void);              /* why no more trials begin, or NULL; may be NULL */
    void (*ended)(void *ctx, const fm_study *s, const fm_trial *t); /* may be NULL */
    void *ctx;
} fm_search;

/* `*why`: what ended it: "all trials were run", "every point was tried", "the wall time is over",
 * or what stop() said. */
fm_status fm_search_run(const fm_search *q, const char **why);

/* One more run each of the best points, one after another. */
fm_status fm_search_confirm(const fm_search *q);

#endif
