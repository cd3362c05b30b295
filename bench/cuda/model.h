/* SPDX-License-Identifier: Apache-2.0 */
/* One model from its weights to its tables: decode and prefill, recorded and
 * not, op by op.  Results go to the stand. */
#ifndef FM_BENCH_CUDA_MODEL_H
#define FM_BENCH_CUDA_MODEL_H

#include "bench/cuda/model_stand.h"

void fm_gpu_measure_model(const char *shape, const char *json, const fm_gpu_sizes *sizes);

#endif
