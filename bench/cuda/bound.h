/* SPDX-License-Identifier: Apache-2.0 */
/* The least time a forward pass can take on a GPU.  As bench/cpu_bound.h, but
 * what one operation hands to the next goes through memory, and FP8 weights
 * have half the bytes and a peak of their own.
 *
 *     time of an operation  >=  max(bytes / bandwidth, flops / peak)
 *     time of a step        >=  sum over its operations */
#ifndef FM_BENCH_CUDA_BOUND_H
#define FM_BENCH_CUDA_BOUND_H

#include "bench/cpu_bound.h"
#include "bench/cuda/ceilings.h"

fm_bound fm_gpu_bound(const fm_model_config *c, const fm_shape *s, const fm_gpu_ceilings *l);

/* Bytes of the weights, as they lie on the GPU; factors of FP8 blocks not counted. */
double fm_gpu_weight_bytes(const fm_model_config *c);

#endif
