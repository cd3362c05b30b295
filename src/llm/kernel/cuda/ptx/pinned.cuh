/* SPDX-License-Identifier: Apache-2.0 */
/* Pinned host memory, written by kernels: for a few bytes that is faster than a copy queued between
 * two kernels. */
#ifndef FM_LLM_KERNEL_CUDA_PTX_PINNED_CUH
#define FM_LLM_KERNEL_CUDA_PTX_PINNED_CUH

#include "llm/kernel/cuda/ptx/launch.cuh"

/* The host sees it once the kernel is known to be done. */
FM_DEVICE void fm_pinned_store(uint32_t *p, uint32_t x)
{
    __stwt(p, x);
}

#endif
