/* SPDX-License-Identifier: Apache-2.0 */
/* What is right: the CPU's functions behind plain arguments, for tests in C++. */
#ifndef FM_TESTS_CUDA_DEFINITION_H
#define FM_TESTS_CUDA_DEFINITION_H

#include <stdint.h>

#include "fathom/sampling.h"
#include "llm/weights/config.h"

#ifdef __cplusplus
extern "C" {
#endif

/* rows_definition.c */
void right_rmsnorm_f32(float *y, const float *x, const float *w, float eps, int n);
void right_rotate(float *x, const float *cos, const float *sin, int n, int interleaved);
void right_scale_add(float *y, const float *x, float a, int n);
void right_quantise(uint16_t *q, float *scale, const uint16_t *x, int n);

/* route_definition.c: one row; `score` is overwritten */
void right_route(const fm_model_config *c, float *score, const float *bias, int32_t *expert,
                 float *weight);

/* sample_definition.c: one row; `logits` are overwritten */
typedef struct {
    int32_t        id;
    float          logprob;
    int            n_top;
    fm_top_logprob top[FM_MAX_TOP_LOGPROBS];
} right_sampled;
void right_sample(const fm_sampling *p, float *logits, int vocab, const int32_t *output,
                  int n_output, const int32_t *eos, int n_eos, right_sampled *out);

/* dummy_definition.c: elements i … i+n-1 of the stream of `key`; type is an fm_dtype */
void right_dummy(void *dst, int type, uint64_t key, uint64_t i, uint32_t n, float centre,
                 float step);

#ifdef __cplusplus
}
#endif

#endif
