/* SPDX-License-Identifier: Apache-2.0 */
/* Sampling parameters, and the reasons why an answer ended. */
#ifndef FATHOM_SAMPLING_H
#define FATHOM_SAMPLING_H

#include <stdint.h>

#include "fathom/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { FM_MAX_STOP_IDS = 16, FM_MAX_TOP_LOGPROBS = 20, FM_MAX_LOGIT_BIAS = 1024 };

typedef struct {
    int32_t id;
    float   bias;
} fm_logit_bias;

typedef struct {
    float    temperature;              /* 0: greedy, the same answer every time */
    float    top_p;                    /* (0, 1] */
    int      top_k;                    /* -1: all */
    float    min_p;                    /* [0, 1], relative to the likeliest token */
    float    repetition_penalty;       /* (0, 2] */
    float    frequency_penalty;        /* [-2, 2] */
    float    presence_penalty;         /* [-2, 2] */
    int      has_seed;                 /* 0: the engine draws one */
    uint64_t seed;
    int      min_new_tokens, max_new_tokens;
    int      ignore_eos;
    int32_t  stop_id[FM_MAX_STOP_IDS]; /* besides the model's own */
    int      n_stop_id;
    const fm_logit_bias *bias;         /* [n_bias] copied at submission */
    int      n_bias;
    int      logprobs;                 /* report the chosen token's log-probability */
    int      top_logprobs;             /* and those of the best few */
} fm_sampling;

FM_API fm_sampling fm_sampling_default(void); /* temperature 1, nothing else on, 128 tokens */

typedef struct {
    int32_t id;
    float   logprob;
} fm_top_logprob;

typedef enum {
    FM_FINISH_NONE,   /* still going */
    FM_FINISH_STOP,   /* end of text, a stop id or a stop string */
    FM_FINISH_LENGTH, /* max_new_tokens */
    FM_FINISH_ABORT,  /* cancelled */
    FM_FINISH_ERROR,  /* the logits were NaN or infinite: no token can be chosen from them */
} fm_finish;

FM_API const char *fm_finish_name(fm_finish f); /* "stop", "length", "abort", "error" */
FM_API const char *fm_finish_why(fm_finish f);  /* a sentence for FM_FINISH_ERROR, else "" */

#ifdef __cplusplus
}
#endif
#endif
