/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/cuda/stand.h"

#include <cuda_runtime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/median.h"

extern "C" {
#include "base/clock.h"
}

enum { WARM = 3, MIN_SAMPLES = 5, MAX_SAMPLES = 41, MAX_GOES = 64 };
static const double GRAPH_US = 350, SAMPLING_US = 120e3, WARM_CLOCK_US = 150e3;

static cudaDeviceProp  gpu;
static const char     *section;
static double          deadline;
static fm_roof ceilings;
static int             results;

static cudaEvent_t mark[STAND_MARKS];
static int         n_mark, n_event;

static void need(cudaError_t e, const char *what)
{
    if (e == cudaSuccess) return;
    fprintf(stderr, "%s: %s: %s\n", section, what, cudaGetErrorString(e));
    _exit(1);
}
#define NEED(call) need((call), #call)

void stand_need(fm_status s)
{
    if (s == FM_OK) return;
    fprintf(stderr, "%s: %s\n", section, fm_why());
    _exit(1);
}

/* --- memory ----------------------------------------------------------------- */

void *stand_take(size_t bytes)
{
    void *p = NULL;
    NEED(cudaMalloc(&p, bytes));
    return p;
}

void stand_free(void *p) { NEED(cudaFree(p)); }

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

/* 32 bits at a time: two bf16 of sizes 2^-7 to 2, four e4m3 below NaN, a factor, or
 * a logit of -8 to 8, those near 0 being the likeliest. */
__global__ static void fill(uint32_t *p, size_t n, stand_contents what, uint64_t seed)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x) {
        const uint32_t r = mixed((i + 1) * 0x9e3779b97f4a7c15u ^ seed);
        if (what == STAND_BF16)
            p[i] = (r & 0x83ff83ffu) | 0x3c003c00u;
        else if (what == STAND_E4M3)
            p[i] = r & 0xbfbfbfbfu;
        else if (what == STAND_FACTORS)
            p[i] = 0x3c000000u | (r & 0x007fffffu);
        else
            p[i] = __float_as_uint(((int)(r & 0xffff) + (int)(r >> 16) - 65536) * 0x1p-13f);
    }
}

void *stand_random(size_t bytes, stand_contents what, uint64_t seed)
{
    uint32_t *p = (uint32_t *)stand_take(bytes);
    fill<<<4096, 256>>>(p, bytes / 4, what, seed);
    NEED(cudaGetLastError());
    NEED(cudaDeviceSynchronize());
    return p;
}

/* --- opening ---------------------------------------------------------------- */

/* An idle GPU has low clocks. */
static void warm_clocks(void)
{
    const size_t n     = (size_t)64 << 20;
    uint32_t    *p     = (uint32_t *)stand_take(n * 4);
    const double until = fm_now() + WARM_CLOCK_US * 1e-6;
    while (fm_now() < until) {
        fill<<<4096, 256>>>(p, n, STAND_BF16, 1);
        NEED(cudaDeviceSynchronize());
    }
    stand_free(p);
}

void stand_open(const char *name, double seconds, const fm_roof *c, int fd)
{
    int n    = 0;
    section  = name;
    ceilings = *c;
    results  = fd;
    deadline = fm_now() + seconds;
    if (cudaGetDeviceCount(&n) != cudaSuccess || n == 0) {
        printf("no GPU: nothing was measured\n");
        fflush(stdout);
        _exit(STAND_NO_GPU);
    }
    NEED(cudaSetDevice(0));
    NEED(cudaGetDeviceProperties(&gpu, 0));
    if (gpu.major != 9) {
        printf("%s is not a Hopper GPU: nothing was measured\n", gpu.name);
        fflush(stdout);
        _exit(STAND_NO_GPU);
    }
    warm_clocks();
}

int stand_sm(void) { return gpu.multiProcessorCount; }

int stand_is_over(void) { return fm_now() >= deadline; }

const fm_roof *stand_ceilings(void) { return &ceilings; }

/* --- time ------------------------------------------------------------------- */

typedef struct {
    void (*record)(void *arg, fm_stream stream);
    void        *arg;
    cudaStream_t stream;
    cudaEvent_t  begin, end;
} watch;

static cudaGraphExec_t capture(const watch *w, int goes)
{
    cudaGraph_t     graph;
    cudaGraphExec_t exec;
    NEED(cudaStreamBeginCapture(w->stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < goes; i++) w->record(w->arg, w->stream);
    NEED(cudaStreamEndCapture(w->stream, &graph));
    NEED(cudaGraphInstantiate(&exec, graph, 0));
    NEED(cudaGraphDestroy(graph));
    NEED(cudaGraphUpload(exec, w->stream));
    return exec;
}

static double replay_us(const watch *w, cudaGraphExec_t exec)
{
    float ms;
    NEED(cudaEventRecord(w->begin, w->stream));
    NEED(cudaGraphLaunch(exec, w->stream));
    NEED(cudaEventRecord(w->end, w->stream));
    NEED(cudaEventSynchronize(w->end));
    NEED(cudaEventElapsedTime(&ms, w->begin, w->end));
    return ms * 1e3;
}

static double time_of(const watch *w, cudaGraphExec_t exec)
{
    double us[MAX_SAMPLES], spent = 0;
    int    n = 0;
    for (int i = 0; i < WARM; i++) spent += replay_us(w, exec);
    while (n < MIN_SAMPLES || (n < MAX_SAMPLES && spent < SAMPLING_US))
        spent += us[n++] = replay_us(w, exec);
    return fm_median(us, n);
}

double stand_time(void (*record)(void *arg, fm_stream stream), void *arg)
{
    watch w = {record, arg, NULL, NULL, NULL};
    NEED(cudaStreamCreateWithFlags(&w.stream, cudaStreamNonBlocking));
    NEED(cudaEventCreate(&w.begin));
    NEED(cudaEventCreate(&w.end));
    record(arg, w.stream); /* loads kernels and makes plans; not allowed while capturing */
    NEED(cudaStreamSynchronize(w.stream));

    cudaGraphExec_t exec = capture(&w, 1);
    (void)replay_us(&w, exec);
    const double once = replay_us(&w, exec);
    const int    goes = once < GRAPH_US ? (int)fmin(ceil(GRAPH_US / once), MAX_GOES) : 1;
    if (goes > 1) {
        NEED(cudaGraphExecDestroy(exec));
        exec = capture(&w, goes);
    }
    const double us = time_of(&w, exec) / goes;
    NEED(cudaGraphExecDestroy(exec));
    NEED(cudaEventDestroy(w.begin));
    NEED(cudaEventDestroy(w.end));
    NEED(cudaStreamDestroy(w.stream));
    return us;
}

void stand_marks_reset(void) { n_mark = 0; }

int stand_mark(fm_stream stream)
{
    FM_BUG_UNLESS(n_mark < STAND_MARKS);
    if (n_mark == n_event) NEED(cudaEventCreate(&mark[n_event++]));
    NEED(cudaEventRecord(mark[n_mark], (cudaStream_t)stream));
    return n_mark++;
}

double stand_between(int from, int to)
{
    float ms;
    NEED(cudaEventElapsedTime(&ms, mark[from], mark[to]));
    return ms * 1e3;
}

void stand_wait(void) { NEED(cudaDeviceSynchronize()); }

__global__ static void hold(uint64_t ns)
{
    uint64_t from, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(from));
    do {
        __nanosleep(1000);
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - from < ns);
}

void stand_hold(fm_stream stream, double us)
{
    hold<<<1, 1, 0, (cudaStream_t)stream>>>((uint64_t)(us * 1e3));
    NEED(cudaGetLastError());
}

/* --- results ---------------------------------------------------------------- */

void stand_send(const fm_gpu_result *x)
{
    fm_gpu_result r = *x;
    snprintf(r.section, sizeof r.section, "%s", section);
    if (write(results, &r, sizeof r) != (ssize_t)sizeof r) _exit(1); /* nobody listens */
}

static void send_line(const char *kernel, const char *shape, int T, double us, double bytes,
                      double flop, double peak)
{
    fm_gpu_result x = {};
    snprintf(x.name, sizeof x.name, "%s", kernel);
    snprintf(x.shape, sizeof x.shape, "%s", shape);
    x.T        = T;
    x.us       = us;
    x.bytes    = bytes;
    x.flop     = flop;
    x.bound_us = 1e6 * fmax(bytes / ceilings.bandwidth, flop / peak);
    stand_send(&x);
}

void stand_line(const char *kernel, const char *shape, int T, double us, double bytes, double flop)
{
    send_line(kernel, shape, T, us, bytes, flop, ceilings.bf16);
}

void stand_line_fp8(const char *kernel, const char *shape, int T, double us, double bytes,
                    double flop)
{
    send_line(kernel, shape, T, us, bytes, flop, ceilings.fp8);
}

void stand_number(const char *name, const char *shape, double value, const char *unit)
{
    fm_gpu_result x = {};
    snprintf(x.name, sizeof x.name, "%s", name);
    snprintf(x.shape, sizeof x.shape, "%s", shape);
    snprintf(x.unit, sizeof x.unit, "%s", unit);
    x.value = value;
    stand_send(&x);
}
