/* SPDX-License-Identifier: Apache-2.0 */
/* The device itself, and what it costs to start work on it: from the host, from
 * a recorded step, in time and in memory. */
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>

#include <initializer_list>

#include "bench/cuda/sections.h"
#include "bench/cuda/stand.h"
#include "bench/median.h"
#include "device/cuda/device.h"
#include "llm/kernel/cuda/linear/linear.h"
#include "llm/kernel/cuda/ptx/pinned.cuh"
#include "llm/kernel/cuda/ptx/ptx.cuh"

extern "C" {
#include "base/clock.h"
}

enum { NODES = 380, GRAPHS = 21, LAUNCHES = 400, SAMPLES = 51, THREADS = 128 };

static double free_mib(void)
{
    size_t available = 0, total = 0;
    (void)cudaMemGetInfo(&available, &total);
    return (double)available / (1 << 20);
}

void section_device(void)
{
    cudaDeviceProp p;
    int            clock = 0, memory_clock = 0, driver = 0;
    char           text[32];
    (void)cudaGetDeviceProperties(&p, 0);
    (void)cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, 0);
    (void)cudaDeviceGetAttribute(&memory_clock, cudaDevAttrMemoryClockRate, 0);
    (void)cudaDriverGetVersion(&driver);
    stand_number("GPU", p.name, p.multiProcessorCount, "SMs");
    stand_number("memory", "", (double)p.totalGlobalMem / (1 << 30), "GiB");
    stand_number("memory", "left by an empty context", free_mib() / 1024, "GiB");
    stand_number("L2", "", (double)p.l2CacheSize / (1 << 20), "MiB");
    stand_number("clock", "highest", clock * 1e-3, "MHz");
    stand_number("memory clock", "highest", memory_clock * 1e-3, "MHz");
    snprintf(text, sizeof text, "%d.%d", driver / 1000, driver % 1000 / 10);
    stand_number("driver", text, driver, "version");
}

/* --- nodes of a graph --------------------------------------------------------- */

FM_KERNEL(THREADS) nothing() {}

FM_KERNEL(THREADS) nothing_early()
{
    fm_grid_release();
    fm_grid_wait();
}

typedef struct {
    int grid, early;
} chain;

static void record_chain(void *arg, fm_stream stream)
{
    const chain *c = (const chain *)arg;
    for (int i = 0; i < NODES; i++)
        if (c->early)
            fm_launch_early(nothing_early, c->grid, THREADS, 0, stream);
        else
            FM_LAUNCH(nothing, c->grid, THREADS, 0, stream);
    stand_need(fm_cuda_launched("a chain of empty kernels"));
}

static void measure_nodes(void)
{
    for (int early = 0; early < 2; early++)
        for (int grid : {1, stand_sm(), 4 * stand_sm()}) {
            chain c = {grid, early};
            char  shape[40];
            snprintf(shape, sizeof shape, "%d blocks, %s", grid, early ? "early start" : "plain");
            stand_number("node to node", shape, stand_time(record_chain, &c) / NODES, "us");
        }
}

/* --- the host's part ----------------------------------------------------------- */

static cudaGraphExec_t record_graph(cudaStream_t s)
{
    const chain     c = {stand_sm(), 0};
    cudaGraph_t     graph;
    cudaGraphExec_t exec = NULL;
    (void)cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal);
    record_chain((void *)&c, s);
    if (cudaStreamEndCapture(s, &graph) != cudaSuccess) return NULL;
    (void)cudaGraphInstantiate(&exec, graph, 0);
    (void)cudaGraphDestroy(graph);
    return exec;
}

static void measure_graphs(cudaStream_t s)
{
    cudaGraphExec_t graph[GRAPHS];
    double          start[SAMPLES];
    const double    before = free_mib(), from = fm_now();
    for (int i = 0; i < GRAPHS; i++) graph[i] = record_graph(s);
    stand_number("record", "380 nodes", (fm_now() - from) / GRAPHS * 1e3, "ms");
    for (int i = 0; i < GRAPHS; i++) (void)cudaGraphLaunch(graph[i], s);
    stand_wait();
    stand_number("memory of graphs", "21 of 380 nodes", before - free_mib(), "MiB");
    for (int i = 0; i < SAMPLES; i++) {
        const double begin = fm_now();
        (void)cudaGraphLaunch(graph[0], s);
        start[i] = (fm_now() - begin) * 1e6;
        stand_wait();
    }
    stand_number("start of a graph", "380 nodes, host", fm_median(start, SAMPLES), "us");
    for (int i = 0; i < GRAPHS; i++) (void)cudaGraphExecDestroy(graph[i]);
}

static void measure_launch(cudaStream_t s)
{
    double us[SAMPLES];
    for (int i = 0; i < SAMPLES; i++) {
        const double from = fm_now();
        for (int j = 0; j < LAUNCHES; j++) FM_LAUNCH(nothing, stand_sm(), THREADS, 0, s);
        us[i] = (fm_now() - from) / LAUNCHES * 1e6;
        stand_need(fm_cuda_launched("nothing"));
        stand_wait();
    }
    stand_number("launch", "host, one kernel", fm_median(us, SAMPLES), "us");
}

/* --- what may lie between two kernels ------------------------------------------- */

enum { BETWEEN = 200, SMALL = 1024, LARGE = 300 << 10 };

/* What a choice of tokens says to the host. */
FM_KERNEL(THREADS) tell(uint32_t *here)
{
    fm_grid_release();
    fm_grid_wait();
    if (threadIdx.x == 0) fm_pinned_store(here, 7);
}

typedef struct {
    cudaStream_t    stream;
    cudaEvent_t     mark;
    cudaGraphExec_t graph; /* of one kernel */
    char           *here, *there;
} meadow;

static void put_nothing(const meadow *) {}
static void put_mark(const meadow *m) { (void)cudaEventRecord(m->mark, m->stream); }
static void put_graph(const meadow *m) { (void)cudaGraphLaunch(m->graph, m->stream); }
static void put_telling(const meadow *m)
{
    fm_launch_early(tell, 1, THREADS, 0, m->stream, (uint32_t *)m->here);
}
static void put_upload(const meadow *m)
{
    stand_need(fm_cuda_upload(m->there, m->here, SMALL, m->stream));
}
static void put_large_upload(const meadow *m)
{
    stand_need(fm_cuda_upload(m->there, m->here, LARGE, m->stream));
}
static void put_download(const meadow *m)
{
    stand_need(fm_cuda_download(m->here, m->there, SMALL, m->stream));
}

/* One kernel and what is put behind it, the host far ahead. */
static double between_us(const meadow *m, void (*put)(const meadow *))
{
    double us[SAMPLES];
    for (int i = 0; i < SAMPLES; i++) {
        stand_hold(m->stream, 3000);
        stand_marks_reset();
        stand_mark(m->stream);
        for (int k = 0; k < BETWEEN; k++) {
            fm_launch_early(nothing_early, stand_sm(), THREADS, 0, m->stream);
            put(m);
        }
        stand_mark(m->stream);
        stand_wait();
        us[i] = stand_between(0, 1) / BETWEEN;
    }
    return fm_median(us, SAMPLES);
}

static cudaGraphExec_t record_one(cudaStream_t s)
{
    cudaGraph_t     graph;
    cudaGraphExec_t exec = NULL;
    (void)cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal);
    FM_LAUNCH(nothing, stand_sm(), THREADS, 0, s);
    if (cudaStreamEndCapture(s, &graph) != cudaSuccess) return NULL;
    (void)cudaGraphInstantiate(&exec, graph, 0);
    (void)cudaGraphDestroy(graph);
    return exec;
}

static void measure_between(cudaStream_t s)
{
    const struct {
        const char *name;
        void (*put)(const meadow *);
    } all[] = {{"nothing", put_nothing},
               {"a mark", put_mark},
               {"a graph of one kernel", put_graph},
               {"a word told", put_telling},
               {"1 KiB uploaded", put_upload},
               {"300 KiB uploaded", put_large_upload},
               {"1 KiB downloaded", put_download}};
    meadow m = {s, NULL, record_one(s), NULL, (char *)stand_take(LARGE)};
    (void)cudaEventCreateWithFlags(&m.mark, cudaEventDisableTiming);
    (void)cudaMallocHost((void **)&m.here, LARGE);
    for (const auto &a : all) stand_number("between kernels", a.name, between_us(&m, a.put), "us");
    (void)cudaFreeHost(m.here);
    (void)cudaEventDestroy(m.mark);
    (void)cudaGraphExecDestroy(m.graph);
    stand_free(m.there);
}

/* --- how soon the host knows ---------------------------------------------------- */

__global__ static void say(volatile int *to, int what)
{
    __threadfence_system();
    *to = what;
}

static double seen_us(cudaStream_t s, volatile int *here, int *there, int what, int by_flag)
{
    const double from = fm_now();
    say<<<1, 1, 0, s>>>(there, what);
    if (!by_flag) (void)cudaStreamSynchronize(s);
    while (by_flag && *here != what && fm_now() - from < 1) continue; /* a fault never says it */
    const double us = (fm_now() - from) * 1e6;
    stand_wait();
    return us;
}

static void measure_answer(cudaStream_t s)
{
    double us[SAMPLES];
    int   *here = NULL, *there = NULL;
    if (cudaHostAlloc((void **)&here, sizeof *here, cudaHostAllocMapped) != cudaSuccess) return;
    (void)cudaHostGetDevicePointer((void **)&there, here, 0);
    for (int by_flag = 0; by_flag < 2; by_flag++) {
        for (int i = 0; i < SAMPLES; i++)
            us[i] = seen_us(s, here, there, 1 + i + by_flag * SAMPLES, by_flag);
        stand_number("launch to answer", by_flag ? "polled mapped memory" : "stream synchronised",
                     fm_median(us, SAMPLES), "us");
    }
    (void)cudaFreeHost(here);
}

/* --- memory of the library -------------------------------------------------------- */

static void measure_library(cudaStream_t s)
{
    const size_t        bytes = (size_t)64 << 20;
    const int           n     = 1024;
    fm_cuda_lt         *lt    = NULL;
    void               *space = stand_take(bytes);
    fm_cuda_linear_args a     = {};
    a.x = (const uint16_t *)stand_random((size_t)n * (size_t)n * 2, STAND_BF16, 1);
    a.w = stand_random((size_t)n * (size_t)n * 2, STAND_BF16, 2);
    a.y = stand_take((size_t)n * (size_t)n * 2);
    a.m = a.n = a.k = a.ldx = a.ldw = a.ldy = n;
    a.n_batch = 1, a.y_bf16 = 1, a.n_sm = stand_sm();
    const double before = free_mib(), from = fm_now();
    stand_need(fm_cuda_lt_create(&lt, space, bytes));
    stand_need(fm_cuda_lt_run(lt, &a, s));
    stand_wait();
    stand_number("first product", "cuBLASLt from nothing", (fm_now() - from) * 1e3, "ms");
    stand_number("memory of cuBLASLt", "beside its workspace", before - free_mib(), "MiB");
    fm_cuda_lt_destroy(lt);
    stand_free((void *)a.x), stand_free((void *)a.w), stand_free(a.y), stand_free(space);
}

void section_launches(void)
{
    cudaStream_t s = NULL;
    (void)cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    measure_library(s); /* first: what it loads is loaded once */
    measure_nodes();
    measure_graphs(s);
    measure_launch(s);
    measure_between(s);
    measure_answer(s);
    (void)cudaStreamDestroy(s);
}
