/* SPDX-License-Identifier: Apache-2.0 */
/* Golden data of a model: prompts, what the reference implementation answers
 * greedily, and its logits (the format of tests/data/README.md). */
#ifndef FM_APP_GOLDEN_H
#define FM_APP_GOLDEN_H

#include <stdint.h>

#include "base/status.h"
#include "llm/weights/config.h"

typedef struct {
    int32_t *prompt; /* [n_prompt] */
    int32_t *greedy; /* [n_greedy] */
    double  *margin; /* [n_greedy] top-1 minus top-2 logit */
    double  *first;  /* [n_logit] that greedy[0] comes from */
    double  *last;   /* [n_logit] that greedy[n_greedy-1] comes from */
    int      n_prompt, n_greedy, n_logit;
    double   bf16_rel_err; /* of `first`, or of `last` if that is listed and larger, in plain BF16
                            * arithmetic; -1: not listed */
    int      bf16_match;   /* argmax matches in plain BF16 arithmetic */
    int32_t *route;        /* [n_route_layer][n_prompt+n_greedy-1][n_route] experts in each MoE
                            * layer; NULL: not listed */
    int      n_route_layer, n_route;
} fm_golden_case;

typedef struct {
    fm_golden_case *item; /* [n] owned, with all it points to */
    int             n;
    int             fp8_activations; /* the reference quantised what FP8 weights are multiplied with */
} fm_golden;

fm_status fm_golden_load(fm_golden *out, const char *path);
void      fm_golden_fini(fm_golden *g);

/* Ids below, and logits as many as, the vocabulary; routes as the model has layers and experts. */
fm_status fm_golden_check(const fm_golden *g, const char *path, const fm_model_config *c);

#endif
