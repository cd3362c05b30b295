/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for the model.  The KV of a position is a hash of the text up to
 * it, once of the tokens alone and once with the form each was computed in;
 * the next token is a hash of that.  So a row that reads a page which is
 * stale, foreign or not yet written is noticed at once. */
#ifndef FM_TEST_SCHED_MODEL_H
#define FM_TEST_SCHED_MODEL_H

#include "llm/sched/sched.h"

typedef struct {
    uint64_t text;  /* of the tokens */
    uint64_t forms; /* of the tokens and their forms */
    int64_t  step;  /* when it was written */
} fake_kv;

typedef struct {
    int      page_size, vocab;
    int      same_form; /* 0: a prompt may rest on pages another request generated */
    int64_t  n_step;
    fake_kv *kv;        /* [n_page][page_size] */
    const int32_t *chosen; /* by the step before */
} fake_model;

void fake_open(fake_model *m, const fm_sched_options *opt, int vocab, int same_form);
void fake_close(fake_model *m);

/* Checks every row of the batch against the requests [n] it may belong to,
 * computes it, and gives one token per out row, which must stay until the next
 * step has run. */
void fake_run(fake_model *m, const fm_sched *s, const fm_batch *b, fm_request *const *request,
              int n, int32_t *token);

/* The answer of a request that runs alone: the tokens, and why it
 * ended; r->token holds the prompt and r->sampling the cut limits. */
int fake_answer(const fake_model *m, const fm_sched_options *opt, const fm_request *r,
                int32_t *output, fm_finish *finish);

#endif
