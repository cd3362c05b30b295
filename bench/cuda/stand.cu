/* SPDX-License-Identifier: Apache-2.0 */
#include "stand.h"

#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>

enum { WARM = 3, SAMPLES = 21 };

static cudaDeviceProp gpu;

static void need(cudaError_t e, const char *what)
{
    if (e == cudaSuccess) return;
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(e));
    exit(1);
}
#define NEED(call) need((call), #call)

void stand_need(fm_status s)
{
    if (s == FM_OK) return;
    fprintf(stderr, "%s\n", fm_why());
    exit(1);
}

void stand_open(void)
{
    NEED(cudaGetDeviceProperties(&gpu, 0));
    printf("%s, %d multiprocessors; held against %.1f TB/s and %.0f TFLOP/s\n", gpu.name,
           gpu.multiProcessorCount, STAND_BANDWIDTH / 1e12, STAND_FLOPS / 1e12);
}

int stand_sm(void)
{
    return gpu.multiProcessorCount;
}

void *stand_take(size_t bytes)
{
    void *p = NULL;
    NEED(cudaMalloc(&p, bytes));
    return p;
}

void stand_free(void *p)
{
    NEED(cudaFree(p));
}

void *stand_upload(const void *from, size_t bytes)
{
    void *p = stand_take(bytes);
    NEED(cudaMemcpy(p, from, bytes, cudaMemcpyHostToDevice));
    return p;
}

static __device__ uint32_t mixed(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)(x >> 32);
}

/* 32 bits at a time: two bf16 of sizes 2^-7 to 2, four e4m3 below NaN, or a factor. */
__global__ static void fill(uint32_t *p, size_t n, stand_contents what, uint64_t seed)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x) {
        const uint32_t r = mixed((i + 1) * 0x9e3779b97f4a7c15u ^ seed);
        if (what == STAND_BF16)
            p[i] = (r & 0x83ff83ffu) | 0x3c003c00u;
        else if (what == STAND_E4M3)
            p[i] = r & 0xbfbfbfbfu;
        else
            p[i] = 0x3c000000u | (r & 0x007fffffu);
    }
}

void *stand_random(size_t bytes, stand_contents what, uint64_t seed)
{
    uint32_t *p = (uint32_t *)stand_take(bytes);
    fill<<<4096, 256>>>(p, bytes / 4, what, seed);
    NEED(cudaDeviceSynchronize());
    return p;
}

static int by_size(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static cudaGraphExec_t capture(void (*record)(void *, fm_stream), void *arg, cudaStream_t stream)
{
    cudaGraph_t     graph;
    cudaGraphExec_t exec;
    record(arg, stream); /* loads the kernels; not allowed while capturing */
    NEED(cudaStreamSynchronize(stream));
    NEED(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    record(arg, stream);
    NEED(cudaStreamEndCapture(stream, &graph));
    NEED(cudaGraphInstantiate(&exec, graph, 0));
    NEED(cudaGraphDestroy(graph));
    return exec;
}

double stand_time(void (*record)(void *arg, fm_stream stream), void *arg)
{
    cudaStream_t stream;
    cudaEvent_t  begin, end;
    float        ms[SAMPLES];
    NEED(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    NEED(cudaEventCreate(&begin));
    NEED(cudaEventCreate(&end));
    const cudaGraphExec_t exec = capture(record, arg, stream);
    for (int i = -WARM; i < SAMPLES; i++) {
        NEED(cudaEventRecord(begin, stream));
        NEED(cudaGraphLaunch(exec, stream));
        NEED(cudaEventRecord(end, stream));
        NEED(cudaEventSynchronize(end));
        if (i >= 0) NEED(cudaEventElapsedTime(&ms[i], begin, end));
    }
    qsort(ms, SAMPLES, sizeof *ms, by_size);
    NEED(cudaGraphExecDestroy(exec));
    NEED(cudaEventDestroy(begin));
    NEED(cudaEventDestroy(end));
    NEED(cudaStreamDestroy(stream));
    return ms[SAMPLES / 2] * 1e3;
}

void stand_head(void)
{
    printf("\n%-14s %-24s %6s %10s %8s %6s %9s %6s\n", "kernel", "shape", "T", "us", "GB/s", "%",
           "TFLOP/s", "%");
}

void stand_line(const char *kernel, const char *shape, int T, double us, double bytes, double flop)
{
    const double bw = bytes / us * 1e6, fl = flop / us * 1e6;
    printf("%-14s %-24s %6d %10.1f %8.0f %5.1f%% %9.1f %5.1f%%\n", kernel, shape, T, us, bw / 1e9,
           100 * bw / STAND_BANDWIDTH, fl / 1e12, 100 * fl / STAND_FLOPS);
    fflush(stdout);
}
