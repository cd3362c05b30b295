/* SPDX-License-Identifier: Apache-2.0 */
/* The emulator's twin of src/llm/kernel/cuda/ptx/launch.cuh. */
#ifndef FM_LLM_KERNEL_CUDA_LAUNCH_CUH
#define FM_LLM_KERNEL_CUDA_LAUNCH_CUH

#include <cuda_runtime.h>
#include <stdint.h>

#include "base/status.h"
#include "device/cuda/check.h"
#include "device/cuda/stream.h"

#define FM_KERNEL(...) static void
#define FM_DEVICE      static inline __attribute__((unused))

#define FM_SHARED_BYTES(name) unsigned char *const name = fm_emu_shared_bytes()

#define FM_LAUNCH(kernel, grid, block, smem_bytes, stream, ...)                                    \
    ((void)(stream),                                                                               \
     fm_emu_launch(#kernel, (kernel), (grid), (block), (smem_bytes), __VA_ARGS__))

#define FM_LAUNCH_EARLY FM_LAUNCH

template <class K> static inline cudaError_t fm_allow_shared(K *kernel, int bytes)
{
    return cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                bytes);
}

#endif
