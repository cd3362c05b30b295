/* SPDX-License-Identifier: Apache-2.0 */
/* What cuBLASLt makes of a large product on the GPU this process opened: the practical peak. */
#ifndef FM_LLM_KERNEL_CUDA_LINEAR_LT_PEAK_H
#define FM_LLM_KERNEL_CUDA_LINEAR_LT_PEAK_H

#include "base/number.h"
#include "base/status.h"

/* FLOP per second of 8192 x 8192 x 8192 in bf16 or fp8 (e4m3, sums as fast as they come), f32
 * sums, `n` times.  FM_E_NOSUP: this library has no algorithm for it. */
fm_status fm_cuda_lt_peak(fm_dtype type, double *rate, int n);

#endif
