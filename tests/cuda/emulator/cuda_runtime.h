/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA's host interface and language, as far as the kernels use them, on host
 * memory.  Everything is finished when a call returns. */
#ifndef FM_TESTS_CUDA_EMULATOR_CUDA_RUNTIME_H
#define FM_TESTS_CUDA_EMULATOR_CUDA_RUNTIME_H

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "grid.h"
#include "intrinsics.h"
#include "vector_types.h"

#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __forceinline__ inline __attribute__((unused))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
#define __shared__ static __attribute__((section("fm_shared")))

#define threadIdx (fm_emu_here.thread)
#define blockIdx  (fm_emu_here.block)
#define blockDim  (fm_emu_here.block_dim)
#define gridDim   (fm_emu_here.grid_dim)
#define warpSize  32

typedef enum {
    cudaSuccess                 = 0,
    cudaErrorInvalidValue       = 1,
    cudaErrorMemoryAllocation   = 2,
    cudaErrorInsufficientDriver = 35,
    cudaErrorNoDevice           = 100,
    cudaErrorNotReady           = 600,
} cudaError_t;
typedef enum {
    cudaMemcpyHostToHost,
    cudaMemcpyHostToDevice,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice,
    cudaMemcpyDefault,
} cudaMemcpyKind;
typedef enum { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 } cudaFuncAttribute;
typedef enum {
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
    cudaDevAttrMultiProcessorCount          = 16,
} cudaDeviceAttr;
typedef struct fm_emu_stream *cudaStream_t;
typedef struct fm_emu_event  *cudaEvent_t;
enum { cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2 };

const char *cudaGetErrorString(cudaError_t e);
const char *cudaGetErrorName(cudaError_t e);
cudaError_t cudaGetLastError();
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaPeekAtLastError();

/* Filled with ones (NaN, -1); freeing what was not allocated aborts.  Copies to
 * and from pinned memory are as late as they may be, see copies.cpp. */
cudaError_t cudaMalloc(void **out, size_t bytes);
cudaError_t cudaMallocHost(void **out, size_t bytes);
cudaError_t cudaFree(void *p);
cudaError_t cudaFreeHost(void *p);
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind, cudaStream_t s);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t s = NULL);
cudaError_t cudaMemset(void *to, int value, size_t bytes);
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t s = NULL);

cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaGetDeviceCount(int *n);
typedef struct {
    char name[256];
    int  major, multiProcessorCount;
} cudaDeviceProp;
/* Kernels, copies and fills of all streams are kept from begin to end of a recording, and run when
 * it is launched; waiting for a stream meanwhile fails. */
typedef struct fm_emu_graph *cudaGraph_t;
typedef struct fm_emu_graph *cudaGraphExec_t;
enum { cudaStreamCaptureModeThreadLocal = 1 };
cudaError_t cudaStreamBeginCapture(cudaStream_t s, int mode);
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *out);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t g, unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t g, cudaStream_t s);
cudaError_t cudaGraphDestroy(cudaGraph_t g);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t g);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int device);
cudaError_t cudaMemGetInfo(size_t *available, size_t *total);
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attr, int device);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute attr, int value);
cudaError_t cudaStreamCreate(cudaStream_t *s);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t s);
cudaError_t cudaStreamQuery(cudaStream_t s);
cudaError_t cudaStreamSynchronize(cudaStream_t s);
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags = 0);
cudaError_t cudaEventCreate(cudaEvent_t *e);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned flags);
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s = NULL);
cudaError_t cudaEventQuery(cudaEvent_t e);
cudaError_t cudaEventSynchronize(cudaEvent_t e);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to);
cudaError_t cudaEventDestroy(cudaEvent_t e);

template <class T> static inline cudaError_t cudaMalloc(T **out, size_t bytes)
{
    return cudaMalloc((void **)out, bytes);
}

#endif
