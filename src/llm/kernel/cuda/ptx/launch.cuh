/* SPDX-License-Identifier: Apache-2.0 */
/* How a kernel is declared and started.  Kernels are compiled twice: by nvcc
 * over this header, and by a C++ compiler over the emulator's header of the
 * same name (tests/cuda/emulator), which comes first on its include path.
 *
 *     FM_KERNEL(256) scale(float *x, int n)
 *     {
 *         FM_SHARED_BYTES(memory);              dynamic shared memory, 1024-byte aligned
 *         __shared__ float sum[8];              static shared memory
 *         ...
 *     }
 *     FM_LAUNCH(scale, n_block, 256, smem_bytes, stream, x, n);
 *     return fm_cuda_launched("scale");
 *
 * A kernel that is a template with several parameters is named in parentheses:
 * FM_LAUNCH((tile<64, 128>), ...).  More than 48 KB of shared memory needs
 * FM_CUDA(fm_allow_shared(kernel, bytes)) once before the first launch. */
#ifndef FM_LLM_KERNEL_CUDA_PTX_LAUNCH_CUH
#define FM_LLM_KERNEL_CUDA_PTX_LAUNCH_CUH

#include <cuda_runtime.h>
#include <stdint.h>

#include "base/status.h"
#include "device/cuda/check.h"
#include "device/cuda/stream.h"

/* FM_KERNEL(threads) or FM_KERNEL(threads, blocks per multiprocessor) */
#define FM_KERNEL(...) __global__ __launch_bounds__(__VA_ARGS__) static void
#define FM_DEVICE      __device__ __forceinline__ static

#define FM_SHARED_BYTES(name) extern __shared__ __align__(1024) unsigned char name[]

#define FM_LAUNCH(kernel, grid, block, smem_bytes, stream, ...)                                    \
    kernel<<<(grid), (block), (smem_bytes), (cudaStream_t)(stream)>>>(__VA_ARGS__)

/* May begin while its predecessor in the stream still runs: the kernel calls
 * fm_grid_wait() before it touches what a predecessor wrote. */
#define FM_LAUNCH_EARLY(kernel, grid, block, smem_bytes, stream, ...)                              \
    fm_launch_early(kernel, (grid), (block), (smem_bytes), (stream), __VA_ARGS__)

template <class... P, class... A>
static inline void fm_launch_early(void (*kernel)(P...), dim3 grid, dim3 block, size_t smem_bytes,
                                   fm_stream stream, A... arg)
{
    cudaLaunchAttribute early = {};
    early.id                  = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;

    cudaLaunchConfig_t c = {};
    c.gridDim            = grid;
    c.blockDim           = block;
    c.dynamicSmemBytes   = smem_bytes;
    c.stream             = (cudaStream_t)stream;
    c.attrs              = &early;
    c.numAttrs           = 1;
    (void)cudaLaunchKernelEx(&c, kernel, static_cast<P>(arg)...); /* fm_cuda_launched() reports */
}

template <class K> static inline cudaError_t fm_allow_shared(K *kernel, int bytes)
{
    return cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                bytes);
}

#endif
