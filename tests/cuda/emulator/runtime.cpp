/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include <map>
#include <vector>

#include "call.h"
#include "cuda_runtime.h"
#include "shared.h"

/* Few multiprocessors, so that persistent grids take several turns. */
enum { MULTIPROCESSORS = 3, SHARED_PER_BLOCK = 227 << 10 };

static std::map<void *, size_t> allocated;
static char                     a_handle;

const char *cudaGetErrorString(cudaError_t e)
{
    return e == cudaSuccess                 ? "no error"
           : e == cudaErrorMemoryAllocation ? "out of memory"
                                            : "invalid value";
}

const char *cudaGetErrorName(cudaError_t e)
{
    return cudaGetErrorString(e);
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = 13000;
    return cudaSuccess;
}

cudaError_t cudaGetLastError()
{
    return cudaSuccess;
}

cudaError_t cudaPeekAtLastError()
{
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    void *p = NULL;
    if (posix_memalign(&p, 256, bytes ? bytes : 1) != 0) return cudaErrorMemoryAllocation;
    memset(p, 0xff, bytes);
    allocated[p] = bytes;
    *out         = p;
    return cudaSuccess;
}

cudaError_t cudaFree(void *p)
{
    if (!p) return cudaSuccess;
    if (!allocated.erase(p)) fm_emu_stop("cudaFree of %p, which was not allocated", p);
    free(p);
    return cudaSuccess;
}

cudaError_t cudaMemset(void *to, int value, size_t bytes)
{
    if (bytes) memset(to, value, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t)
{
    if (fm_emu_is_recording()) {
        fm_emu_record([=]() { (void)cudaMemset(to, value, bytes); });
        return cudaSuccess;
    }
    return cudaMemset(to, value, bytes);
}

cudaError_t cudaSetDevice(int device)
{
    return device == 0 ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = 0;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *n)
{
    *n = 1;
    return cudaSuccess;
}

/* --- recording -------------------------------------------------------------- */

struct fm_emu_graph {
    std::vector<std::function<void()>> work;
};

static fm_emu_graph *recording;

bool fm_emu_is_recording()
{
    return recording != NULL;
}

void fm_emu_record(std::function<void()> work)
{
    recording->work.push_back(std::move(work));
}

void fm_emu_call(void (*work)(const void *), const void *arg, size_t bytes)
{
    const std::vector<char> copy((const char *)arg, (const char *)arg + bytes);
    if (recording)
        fm_emu_record([=]() { work(copy.data()); });
    else
        work(arg);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t, int)
{
    if (recording) return cudaErrorInvalidValue;
    recording = new fm_emu_graph;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t *out)
{
    if (!recording) return cudaErrorInvalidValue;
    *out      = recording;
    recording = NULL;
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t g, unsigned long long)
{
    *out = new fm_emu_graph(*g);
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t g, cudaStream_t)
{
    if (recording) return cudaErrorInvalidValue;
    for (const std::function<void()> &work : g->work) work();
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t g)
{
    delete g;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t g)
{
    delete g;
    return cudaSuccess;
}

/* --- the device ------------------------------------------------------------- */

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int device)
{
    *p = cudaDeviceProp{"emulator", 9, MULTIPROCESSORS};
    return device == 0 ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
    *available = *total = (size_t)1 << 30;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attr, int)
{
    *value = attr == cudaDevAttrMultiProcessorCount ? MULTIPROCESSORS : SHARED_PER_BLOCK;
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute, int value)
{
    fm_emu_allow_shared(kernel, (size_t)value);
    return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t *s)
{
    *s = (cudaStream_t)&a_handle;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned)
{
    return cudaStreamCreate(s);
}

cudaError_t cudaStreamDestroy(cudaStream_t)
{
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned)
{
    return cudaSuccess;
}
