/* SPDX-License-Identifier: Apache-2.0 */
/* Logits -> token.  The result depends on the request's parameters, its seed
 * and the position alone, never on the batch.
 *
 * Order: penalties, min-tokens mask, repetition, logit bias; greedy: argmax
 * (lowest id on ties).  Otherwise temperature, softmax, then top-k, top-p and
 * min-p together on the unfiltered distribution, and a seeded draw. */
#ifndef FM_LLM_SAMPLE_SAMPLE_H
#define FM_LLM_SAMPLE_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "fathom/sampling.h"

/* One sentence naming the field that is out of range. */
fm_status fm_sampling_check(const fm_sampling *p, int vocab);

/* In place of a token where some logit of the row, before any mask or penalty, is
 * NaN or infinite. */
enum { FM_NO_TOKEN = -1 };

/* Log-probabilities are taken after penalties and temperature (greedy: 1) and
 * before the filters; 0 and none unless the parameters ask for them. */
typedef struct {
    int32_t        id; /* FM_NO_TOKEN: the logits were not finite */
    float          logprob;
    int            n_top; /* fewer than asked when fewer tokens are possible */
    fm_top_logprob top[FM_MAX_TOP_LOGPROBS]; /* best first, ties by lower id */
} fm_sampled;

/* Scratch of one thread: no allocation while sampling. */
typedef struct fm_sampler fm_sampler;
fm_status fm_sampler_create(fm_sampler **out, int vocab);
void      fm_sampler_destroy(fm_sampler *s); /* NULL is fine */
size_t    fm_sampler_bytes(int vocab);

/* Changes `logits` [vocab] in place.  output[0..n_output) are the tokens
 * generated so far; eos[0..n_eos) and the request's stop ids are masked until
 * min_new_tokens.  A logit of NaN counts as -inf; if nothing is possible the
 * answer is token 0 with log-probability -inf.  Check a model's logits
 * with fm_all_finite() before masks are applied: these put infinities there. */
void fm_sample(fm_sampler *s, const fm_sampling *p, float *logits, const int32_t *output,
               int n_output, const int32_t *eos, int n_eos, fm_sampled *out);

/* Before fm_sample(): only tokens whose bit is set in allowed[] remain possible. */
void fm_sample_only(float *logits, int vocab, const uint32_t *allowed);

/* The log-probability of token `id` under these logits as they are, at
 * temperature 1, and the best n_top.  Overwrites `logits`. */
void fm_score(fm_sampler *s, float *logits, int32_t id, int n_top, fm_sampled *out);

#endif
