/* SPDX-License-Identifier: Apache-2.0 */
/* Logits -> tokens on the GPU.  src/llm/sample is the definition: the same
 * distances, weights and random numbers, so a draw for (seed, position) is the
 * CPU's.  Sums of weights are taken in fixed point (2^-45), where the order does
 * not matter: they differ from the CPU's by less than 1e-9 of the total.
 *
 *     logits ──scan──> largest of each part of the row, runners that may have won
 *            ──weigh──> Z, and how many tokens are near the best
 *            ──choose──> last token kept, id, log-probability
 *
 * A row's answer depends on the row alone, and nothing is read back by the host.
 * Rows that are greedy or drawn from all tokens are read once.  All pointers are
 * borrowed device memory. */
#ifndef FM_LLM_KERNEL_CUDA_SAMPLE_SAMPLE_H
#define FM_LLM_KERNEL_CUDA_SAMPLE_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "device/cuda/stream.h"
#include "fathom/sampling.h"
#include "llm/kernel/cuda/sample/scratch.h" /* fm_cuda_sample_bytes() */

#ifdef __cplusplus
extern "C" {
#endif

/* How one row's token is chosen; see fm_sampling. */
typedef struct {
    float    temperature; /* below 1e-6: greedy */
    float    top_p, min_p;
    int32_t  top_k;       /* below 1: all */
    int32_t  position;    /* tokens generated so far */
    int16_t  logprob;     /* is the log-probability wanted? */
    int16_t  forbids;     /* an edit forbids a token: its -inf is no fault of the model */
    int32_t  n_top;       /* best tokens to report, at most FM_MAX_TOP_LOGPROBS */
    int32_t  mask;        /* 1 + row of `allowed`; 0: every token is allowed */
    uint64_t seed;
} fm_cuda_sampling;

/* What penalties, forbidden tokens and biases do to one logit, in this order:
 * minus `less`, repetition penalty, -inf if forbidden, plus `bias`. */
typedef struct {
    int32_t row, id;
    float   less, penalty, bias;
    int32_t forbid;
} fm_cuda_logit_edit;

typedef struct {
    float                    *logits; /* [n_row, vocab]; edits and masks change them */
    const fm_cuda_sampling   *how;    /* [n_row] */
    const fm_cuda_logit_edit *edit;   /* [max_edit] one per (row, id); NULL: none */
    const int32_t            *n_edit; /* [1] on the device */
    int                       max_edit;
    const uint32_t           *allowed; /* [, (vocab+31)/32] a bit per token; NULL: no row has any */
    int                       n_row, vocab; /* vocab <= FM_CUDA_MAX_VOCAB */
    int                       only_greedy;  /* no row draws, none wants log-probabilities */
    int                       any_top;      /* some row has n_top > 0 */
    void                     *scratch;      /* fm_cuda_sample_bytes(), 16-byte aligned */
    int32_t                  *id;           /* [n_row] out */
    float                    *logprob;      /* [n_row] out; 0 where not wanted */
    int32_t                  *top_id;       /* [n_row, FM_MAX_TOP_LOGPROBS] out, best first, */
    float                    *top_logprob;  /* then -1 and -inf */
    int32_t                  *told_id;      /* pinned [n_row], for the host; NULL: it copies them.
                                               -1: the row's logits are not finite */
    float                    *told_logprob;
} fm_cuda_sample_args;

enum { FM_CUDA_MAX_VOCAB = 1 << 18 };

fm_status fm_cuda_sample(const fm_cuda_sample_args *a, fm_stream stream);

/* Drafts: the largest logit of a row among a rank's words, then among those of all ranks, which
 * have their candidates one behind the other; the row's state goes to kept[keep[i]] unless that is
 * negative.  Ties: the smaller id. */
typedef struct {
    float   logit;
    int32_t id;
} fm_cuda_candidate;

typedef struct {
    const float       *logits; /* [n_row, width] */
    fm_cuda_candidate *best;   /* [n_row] out */
    int                n_row, width, first; /* word of column 0; width 0: it has none */
} fm_cuda_best_args;
fm_status fm_cuda_best(const fm_cuda_best_args *a, fm_stream stream);

typedef struct {
    const fm_cuda_candidate *best; /* [n_rank, n_row] */
    int32_t                 *id;   /* [n_row] out */
    const uint16_t          *state; /* [n_row, width] bf16 */
    uint16_t                *kept;  /* [, width] */
    const int32_t           *keep;  /* [n_row] */
    int                      n_row, n_rank, width;
} fm_cuda_take_best_args;
fm_status fm_cuda_take_best(const fm_cuda_take_best_args *a, fm_stream stream);

#ifdef __cplusplus
}
#endif

#endif
