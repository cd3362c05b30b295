/* SPDX-License-Identifier: Apache-2.0 */
/* The emulator's twin of src/llm/kernel/cuda/ptx/pinned.cuh: a write is a copy of
 * the stream (copies.cpp). */
#ifndef FM_LLM_KERNEL_CUDA_PINNED_CUH
#define FM_LLM_KERNEL_CUDA_PINNED_CUH

#include "llm/kernel/cuda/ptx/launch.cuh"

FM_DEVICE void fm_pinned_store(uint32_t *p, uint32_t x)
{
    cudaMemcpyAsync(p, &x, sizeof x, cudaMemcpyDeviceToHost, NULL);
}

#endif
