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

static fm_status check_generation(const cudaDeviceProp *p, int index)
{
    if (p->major == HOPPER) return FM_OK;
    return fm_fail(FM_E_DEVICE,
                   "GPU %d is a %s of compute capability %d.x, and fathom's kernels are for Hopper alone "
                   "(H100, H200, H20, GH200: 9.0)",
                   index, p->name, p->major);
}

/* CUDA calls a driver that is not there too old. */
static const char *why_none(cudaError_t e)
{
    int driver = 0;
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
        return "there is no NVIDIA driver on this machine, or the container does not see it";
    if (e == cudaErrorInsufficientDriver) return "its NVIDIA driver is older than CUDA 13 wants";
    return cudaGetErrorString(e == cudaSuccess ? cudaErrorNoDevice : e);
}

fm_status fm_cuda_usable(void)
{
    int               n = 0;
    const cudaError_t e = cudaGetDeviceCount(&n);
    fm_status         rc = fm_fail(FM_E_DEVICE, "no GPU can be used here: %s", why_none(e));
    for (int i = 0; e == cudaSuccess && i < n; i++) {
        cudaDeviceProp p;
        FM_CUDA(cudaGetDeviceProperties(&p, i));
        if ((rc = check_generation(&p, i)) == FM_OK) return FM_OK;
    }
    return rc;
}

fm_status fm_cuda_open(fm_cuda_device *out, int index)
{
    const int n = fm_cuda_count();
    if (index < 0 || index >= n)
        return fm_fail(FM_E_DEVICE, "there is no GPU %d here: %d can be used", index, n);
    cudaDeviceProp p;
    FM_CUDA(cudaGetDeviceProperties(&p, index));
    FM_TRY(check_generation(&p, index));
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

fm_status fm_cuda_mark_create(fm_mark *out)
{
    cudaEvent_t m;
    FM_CUDA(cudaEventCreateWithFlags(&m, cudaEventDisableTiming));
    *out = m;
    return FM_OK;
}

void fm_cuda_mark_destroy(fm_mark m)
{
    if (m) (void)cudaEventDestroy((cudaEvent_t)m);
}

fm_status fm_cuda_mark_set(fm_mark m, fm_stream s)
{
    FM_CUDA(cudaEventRecord((cudaEvent_t)m, (cudaStream_t)s));
    return FM_OK;
}

fm_status fm_cuda_mark_wait(fm_mark m, fm_stream s)
{
    FM_CUDA(cudaStreamWaitEvent((cudaStream_t)s, (cudaEvent_t)m, 0));
    return FM_OK;
}

fm_status fm_cuda_mark_is_reached(fm_mark m, int *reached)
{
    const cudaError_t e = cudaEventQuery((cudaEvent_t)m);
    *reached            = e == cudaSuccess;
    if (*reached || e == cudaErrorNotReady) return FM_OK;
    return fm_fail(FM_E_DEVICE, "work on the GPU: %s", cudaGetErrorString(e));
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

/* One copy where CUDA takes the stride, otherwise one per row. */
static fm_status copy_rows(char *dst, size_t dst_stride, const char *src, size_t src_stride, size_t width,
                           int n, cudaMemcpyKind kind, cudaStream_t s)
{
    const size_t most = 0x7fffffff;
    if (dst_stride <= most && src_stride <= most) {
        FM_CUDA(cudaMemcpy2DAsync(dst, dst_stride, src, src_stride, width, (size_t)n, kind, s));
        return FM_OK;
    }
    for (int i = 0; i < n; i++)
        FM_CUDA(cudaMemcpyAsync(dst + (size_t)i * dst_stride, src + (size_t)i * src_stride, width, kind, s));
    return FM_OK;
}

fm_status fm_cuda_upload_rows(const fm_rows_copy *c, fm_stream s)
{
    return copy_rows(c->device, c->device_stride, c->host, c->host_stride, c->width, c->n,
                     cudaMemcpyHostToDevice, (cudaStream_t)s);
}

fm_status fm_cuda_download_rows(const fm_rows_copy *c, fm_stream s)
{
    return copy_rows(c->host, c->host_stride, c->device, c->device_stride, c->width, c->n,
                     cudaMemcpyDeviceToHost, (cudaStream_t)s);
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
