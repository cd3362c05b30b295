/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a batch of prompts through an engine and collects all answers. */
#ifndef FM_APP_GENERATE_H
#define FM_APP_GENERATE_H

#include "llm/data/dataset.h"
#include "llm/engine.h"

/* One answer of the batch. */
typedef struct {
    uint64_t  id;      /* the engine's */
    int32_t  *token;   /* [n] owned */
    float    *logprob; /* [n] owned; NULL unless asked for */
    float    *prompt_logprob; /* [n_prompt_logprob] owned; of the prompt's last tokens */
    int       n_prompt_logprob;
    int       n, cap;
    fm_finish finish;
} fm_answer;

typedef struct {
    fm_answer *answer; /* [n_row * n_sample] owned; sample j of row i at i*n_sample + j */
    int        n_row, n_sample;
    double     seconds;
    int64_t    n_output;   /* tokens of all answers */
    int        n_finished; /* answers that ended by themselves */
    int        n_failed;   /* answers that ended with FM_FINISH_ERROR */
    int64_t     n_input;    /* tokens of the prompts whose answers have begun */
    double      sum_ttft;   /* seconds from the call to each answer's first token, */
    int         n_begun;    /* and how many have one */
    const char *ended_by;   /* NULL: all was answered; otherwise what `ends` said */
} fm_answers;

/* How every row of a batch is asked. */
typedef struct {
    fm_sampling    sampling;
    int            set_max_new; /* max_new_tokens is the sampling's, not the row's */
    int            n_sample;
    char         **stop; /* [n_stop] owned */
    int            n_stop;
    int            keep_stop;
    int            prompt_logprobs; /* of the prompts, too, */
    int32_t        logprob_from;    /* of the tokens after this one */
    fm_logit_bias *bias;       /* owned; the sampling borrows it */
    int            quiet;      /* no progress bar */
    int            skip_unfit; /* leave out rows that can never run (warm-up) */
    const char *(*ends)(void); /* before each step: why none is run any more, or NULL */
} fm_ask;

/* Submits all rows at once and runs the engine until it is idle: the timed
 * call of the benchmark.  Ended early, it leaves the engine busy. */
fm_status fm_generate(fm_answers *out, fm_engine *e, const fm_dataset *rows, const fm_ask *ask);
void      fm_answers_fini(fm_answers *b);

#endif
