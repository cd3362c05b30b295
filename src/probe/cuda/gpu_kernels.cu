/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/cuda/gpu_kernels.h"

#include <cuda_runtime.h>

#include "device/cuda/check.h"

enum {
    READ_THREADS = 512,
    READ_BLOCKS  = 2,
    UNROLL       = 8,
    FMA_THREADS  = 256,
    FMA_BLOCKS   = 8,
    CHAINS       = 8
};

/* Several loads in flight per thread; the sum is kept only if it is one value, so that nothing is
 * written and no load can be left out. */
__global__ __launch_bounds__(READ_THREADS, READ_BLOCKS) void read_all(const uint4 *p, size_t n,
                                                                      uint32_t *out)
{
    const size_t stride = (size_t)gridDim.x * READ_THREADS;
    uint32_t     sum    = 0;
    for (size_t i = blockIdx.x * (size_t)READ_THREADS + threadIdx.x; i < n; i += UNROLL * stride) {
        uint4 v[UNROLL];
#pragma unroll
        for (int j = 0; j < UNROLL; j++)
            v[j] = i + j * stride < n ? __ldcs(p + i + j * stride) : make_uint4(0, 0, 0, 0);
#pragma unroll
        for (int j = 0; j < UNROLL; j++) sum += v[j].x ^ v[j].y ^ v[j].z ^ v[j].w;
    }
    if (sum == 0x9e3779b9u) *out = sum;
}

fm_status fm_gpu_read_launch(const void *p, size_t bytes, uint32_t *out, int n_sm, fm_stream s)
{
    read_all<<<READ_BLOCKS * n_sm, READ_THREADS, 0, (cudaStream_t)s>>>((const uint4 *)p, bytes / 16,
                                                                       out);
    return fm_cuda_launched("read_all");
}

template <class T> __global__ __launch_bounds__(FMA_THREADS) void multiply_add(int steps, T *out)
{
    const T a = (T)0.999 - (T)1e-6 * (T)threadIdx.x, b = (T)1e-3;
    T       x[CHAINS], sum                             = 0;
    for (int c = 0; c < CHAINS; c++) x[c] = (T)c;
    for (int step = 0; step < steps; step++) {
#pragma unroll
        for (int c = 0; c < CHAINS; c++) x[c] = x[c] * a + b;
    }
    for (int c = 0; c < CHAINS; c++) sum += x[c];
    out[blockIdx.x * FMA_THREADS + threadIdx.x] = sum;
}

fm_status fm_gpu_fma_launch(int is_f64, int steps, void *out, int n_sm, fm_stream s)
{
    if (is_f64)
        multiply_add<double>
            <<<FMA_BLOCKS * n_sm, FMA_THREADS, 0, (cudaStream_t)s>>>(steps, (double *)out);
    else
        multiply_add<float>
            <<<FMA_BLOCKS * n_sm, FMA_THREADS, 0, (cudaStream_t)s>>>(steps, (float *)out);
    return fm_cuda_launched("multiply_add");
}

double fm_gpu_fma_flop(int steps, int n_sm)
{
    return 2.0 * steps * CHAINS * FMA_THREADS * FMA_BLOCKS * n_sm;
}

size_t fm_gpu_fma_bytes(int n_sm)
{
    return (size_t)FMA_THREADS * FMA_BLOCKS * (size_t)n_sm * sizeof(double);
}
