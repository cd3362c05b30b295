/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of `fathom verify` share. */
#ifndef FM_APP_VERIFY_H
#define FM_APP_VERIFY_H

#include "golden.h"
#include "llm/engine.h"

typedef struct {
    char *golden, *tokenizer_golden;
    int   json;
} fm_verify_options;

typedef enum {
    FM_VERDICT_OK,
    FM_VERDICT_NEAR_TIE, /* beyond the bound because a router chose otherwise: excepted */
    FM_VERDICT_FAIL,
} fm_verdict;

/* One golden case as the engine sees it. */
typedef struct {
    double     err_first, err_last; /* |got - want| / |want| */
    double     bound;               /* for both */
    double     max_abs_err;         /* of a single logit, over both */
    int        n_argmax, need_argmax;
    int        n_close;  /* argmax mismatches with a margin below 2 * max_abs_err */
    int        n_greedy; /* leading tokens of the free run that are equal */
    int        is_finite; /* no logit is NaN or infinite */
    fm_verdict verdict;
} fm_verify_case;

/* Teacher-forced logits, then free greedy runs of all cases together.
 * `exact`: the FP32 tolerances.  out [g->n]. */
fm_status fm_verify_model(fm_engine *e, const fm_golden *g, int exact, fm_verify_case *out);

/* Prints; *n_wrong counts the texts that are encoded or decoded differently. */
fm_status fm_verify_tokenizer(const char *dir, const char *golden, int as_json, int *n_wrong);

#endif
