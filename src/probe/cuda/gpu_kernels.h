/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that do nothing but read memory, or multiply and add in registers. */
#ifndef FM_PROBE_CUDA_GPU_KERNELS_H
#define FM_PROBE_CUDA_GPU_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "device/cuda/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Reads `bytes` (a multiple of 16) once; *out is device memory that is hardly ever written. */
fm_status fm_gpu_read_launch(const void *p, size_t bytes, uint32_t *out, int n_sm, fm_stream s);

/* Multiply-adds of f32 or f64 numbers, `steps` in each of many chains; out: device memory of
 * fm_gpu_fma_bytes().  fm_gpu_fma_flop() says how many FLOP one launch is. */
fm_status fm_gpu_fma_launch(int is_f64, int steps, void *out, int n_sm, fm_stream s);
double    fm_gpu_fma_flop(int steps, int n_sm);
size_t    fm_gpu_fma_bytes(int n_sm);

#ifdef __cplusplus
}
#endif

#endif
