/* SPDX-License-Identifier: Apache-2.0 */
/* `fathom verify`: compares logits, routes and tokens with golden data, case by case, and gives each
 * case a verdict. */
#ifndef FM_APP_VERIFY_H
#define FM_APP_VERIFY_H

#include "golden.h"
#include "llm/engine.h"
#include "llm/op/run.h"

typedef struct {
    char *golden, *tokenizer_golden;
    int   json;
} fm_verify_options;

typedef enum {
    FM_VERDICT_OK,
    FM_VERDICT_NEAR_TIE, /* beyond the bound, perhaps because a router chose otherwise: excepted */
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
    int        is_guided; /* the golden routes were taken; then of the (token, layer) pairs: */
    int        n_tied;    /* routed otherwise, where experts or groups nearly tie */
    int        n_misrouted; /* and where they do not */
    fm_verdict verdict;
} fm_verify_case;

/* Teacher-forced logits, then free greedy runs of all cases together.
 * `exact`: the FP32 tolerances.  out [g->n]. */
fm_status fm_verify_model(fm_engine *e, const fm_golden *g, int exact, fm_verify_case *out);

/* While it is on, rows of the run's passes, which are of the case's text, go to the golden experts;
 * what the router itself chose is counted in *v. */
typedef struct {
    fm_op_hook            hook;
    const fm_golden_case *golden;
    fm_verify_case       *v;
} fm_guide;
void fm_guide_on(fm_guide *g, fm_run *r, const fm_golden_case *c, fm_verify_case *v);
void fm_guide_off(fm_guide *g, fm_run *r);

/* Prints; *n_wrong counts the texts that are encoded or decoded differently. */
fm_status fm_verify_tokenizer(const char *dir, const char *golden, int as_json, int *n_wrong);

#endif
