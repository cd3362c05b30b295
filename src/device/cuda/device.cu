/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/device.h"

#include <cuda_runtime.h>
#include <stdio.h>

#include "device/cuda/check.h"

enum { HOPPER = 9 };

int fm_cuda_count(void)
{
    int n = 0;
    return cudaGetDeviceCount(&n) == cudaSuccess ? n : 0;
}

fm_status fm_cuda_open(fm_cuda_device *out, int index)
{
    const int n = fm_cuda_count();
    if (index < 0 || index >= n)
        return fm_fail(FM_E_DEVICE, "there is no GPU %d here: %d can be used", index, n);
    cudaDeviceProp p;
    FM_CUDA(cudaGetDeviceProperties(&p, index));
    if (p.major != HOPPER)
        return fm_fail(FM_E_DEVICE, "GPU %d, %s, is not a Hopper GPU: kernels are built for sm_90a",
                       index, p.name);
    FM_CUDA(cudaSetDevice(index));
    *out = fm_cuda_device();
    snprintf(out->name, sizeof out->name, "%s", p.name);
    out->n_sm = p.multiProcessorCount;
    FM_CUDA(cudaMemGetInfo(&out->available, &out->total));
    return FM_OK;
}

fm_status fm_cuda_stream_create(fm_stream *out)
{
    cudaStream_t s;
    FM_CUDA(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    *out = s;
    return FM_OK;
}

void fm_cuda_stream_destroy(fm_stream s)
{
    if (s) (void)cudaStreamDestroy((cudaStream_t)s);
}

fm_status fm_cuda_stream_is_done(fm_stream s, int *done)
{
    const cudaError_t e = cudaStreamQuery((cudaStream_t)s);
    *done               = e == cudaSuccess;
    if (*done || e == cudaErrorNotReady) return FM_OK;
    return fm_fail(FM_E_DEVICE, "work on the GPU: %s", cudaGetErrorString(e));
}

fm_status fm_cuda_stream_wait(fm_stream s)
{
    FM_CUDA(cudaStreamSynchronize((cudaStream_t)s));
    return FM_OK;
}

fm_status fm_cuda_alloc(void **out, size_t bytes, const char *what)
{
    const cudaError_t e = cudaMalloc(out, bytes ? bytes : 1);
    if (e == cudaSuccess) return FM_OK;
    return fm_fail(FM_E_OOM, "%s: %.2f GiB of device memory: %s", what, (double)bytes / (1 << 30),
                   cudaGetErrorString(e));
}

void fm_cuda_free(void *p)
{
    (void)cudaFree(p);
}

fm_status fm_cuda_alloc_pinned(void **out, size_t bytes, const char *what)
{
    const cudaError_t e = cudaMallocHost(out, bytes ? bytes : 1);
    if (e == cudaSuccess) return FM_OK;
    return fm_fail(FM_E_OOM, "%s: %.2f GiB of pinned memory: %s", what, (double)bytes / (1 << 30),
                   cudaGetErrorString(e));
}

void fm_cuda_free_pinned(void *p)
{
    (void)cudaFreeHost(p);
}

fm_status fm_cuda_upload(void *dst, const void *src, size_t bytes, fm_stream s)
{
    FM_CUDA(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyHostToDevice, (cudaStream_t)s));
    return FM_OK;
}

fm_status fm_cuda_download(void *dst, const void *src, size_t bytes, fm_stream s)
{
    FM_CUDA(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToHost, (cudaStream_t)s));
    return FM_OK;
}

fm_status fm_cuda_copy(void *dst, const void *src, size_t bytes, fm_stream s)
{
    FM_CUDA(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToDevice, (cudaStream_t)s));
    return FM_OK;
}

fm_status fm_cuda_clear(void *dst, size_t bytes, fm_stream s)
{
    FM_CUDA(cudaMemsetAsync(dst, 0, bytes, (cudaStream_t)s));
    return FM_OK;
}
