/* SPDX-License-Identifier: Apache-2.0 */
/* What a GPU can do, over CUDA. */
#include "probe/gpu_rates.h"

#include <cuda_runtime_api.h>
#include <stdio.h>

#include "device/cuda/check.h"
#include "device/cuda/device.h"
#include "probe/cuda/gpu_kernels.h"

enum { REPEATS = 5, STEPS = 2048, FMA_LAUNCHES = 8, LOAD_LAUNCHES = 400 };
static const size_t ARENA = (size_t)2 << 30, PINNED = (size_t)128 << 20;

typedef struct {
    fm_cuda_device device;
    fm_stream      stream;
    cudaEvent_t    begin, end;
    void          *arena, *pinned;
    uint32_t      *sink; /* never written; also the room for fm_gpu_fma_bytes */
} bench;

typedef fm_status work(const bench *b, int which);

static fm_status read_memory(const bench *b, int which)
{
    (void)which;
    return fm_gpu_read_launch(b->arena, ARENA, b->sink, b->device.n_sm, b->stream);
}

static fm_status multiply(const bench *b, int is_f64)
{
    for (int i = 0; i < FMA_LAUNCHES; i++)
        FM_TRY(fm_gpu_fma_launch(is_f64, STEPS, b->sink, b->device.n_sm, b->stream));
    return FM_OK;
}

static fm_status move(const bench *b, int is_down)
{
    return is_down ? fm_cuda_download(b->pinned, b->arena, PINNED, b->stream)
                   : fm_cuda_upload(b->arena, b->pinned, PINNED, b->stream);
}

/* Seconds of one go on the device. */
static fm_status time_once(const bench *b, work *w, int which, double *seconds)
{
    float ms = 0;
    FM_CUDA(cudaEventRecord(b->begin, (cudaStream_t)b->stream));
    FM_TRY(w(b, which));
    FM_CUDA(cudaEventRecord(b->end, (cudaStream_t)b->stream));
    FM_CUDA(cudaEventSynchronize(b->end));
    FM_CUDA(cudaEventElapsedTime(&ms, b->begin, b->end));
    *seconds = 1e-3 * (double)ms;
    return FM_OK;
}

/* `amount` of bytes or FLOP in one go. */
static fm_status measure(fm_rate *out, const bench *b, work *w, int which, double amount)
{
    double rate[REPEATS], seconds = 0;
    FM_TRY(time_once(b, w, which, &seconds)); /* warm */
    for (int i = 0; i < REPEATS; i++) {
        FM_TRY(time_once(b, w, which, &seconds));
        rate[i] = amount / seconds;
    }
    *out = fm_rate_of(rate, REPEATS);
    return FM_OK;
}

static fm_status measure_products(fm_rates_gpu *out, fm_gpu_product *product)
{
    static const fm_factor factor[] = {FM_FACTOR_BF16, FM_FACTOR_FP8};
    for (size_t i = 0; product && i < sizeof factor / sizeof factor[0]; i++) {
        double          rate[REPEATS];
        const fm_status rc = product(factor[i], rate, REPEATS);
        if (rc == FM_E_NOSUP) continue; /* not in this library */
        FM_TRY(rc);
        out->product[factor[i]] = fm_rate_of(rate, REPEATS);
    }
    return FM_OK;
}

/* The driver is asked while the GPU works: an idle one has low clocks. */
static fm_status read_facts(fm_gpu_facts *facts, const bench *b, int index)
{
    char pci[32] = "";
    int  version = 0;
    FM_CUDA(cudaDeviceGetPCIBusId(pci, sizeof pci, index));
    FM_CUDA(cudaRuntimeGetVersion(&version));
    for (int i = 0; i < LOAD_LAUNCHES; i++)
        FM_TRY(fm_gpu_fma_launch(0, STEPS, b->sink, b->device.n_sm, b->stream));
    (void)fm_gpu_facts_read(facts, index, pci); /* without NVML little is known */
    snprintf(facts->pci, sizeof facts->pci, "%s", pci);
    snprintf(facts->runtime, sizeof facts->runtime, "%d.%d", version / 1000, version % 1000 / 10);
    return fm_cuda_stream_wait(b->stream);
}

static fm_status measure_all(fm_rates_gpu *out, fm_gpu_facts *facts, const bench *b, int index,
                             fm_gpu_product *product)
{
    const double flop = FMA_LAUNCHES * fm_gpu_fma_flop(STEPS, b->device.n_sm);
    FM_TRY(fm_cuda_clear(b->arena, ARENA, b->stream));
    FM_TRY(measure(&out->read, b, read_memory, 0, (double)ARENA));
    FM_TRY(measure(&out->product[FM_FACTOR_F32], b, multiply, 0, flop));
    FM_TRY(measure(&out->product[FM_FACTOR_F64], b, multiply, 1, flop));
    FM_TRY(measure(&out->upload, b, move, 0, (double)PINNED));
    FM_TRY(measure(&out->download, b, move, 1, (double)PINNED));
    FM_TRY(measure_products(out, product));
    return read_facts(facts, b, index);
}

static fm_status open_bench(bench *b, int index)
{
    FM_TRY(fm_cuda_open(&b->device, index));
    FM_TRY(fm_cuda_stream_create(&b->stream));
    FM_CUDA(cudaEventCreate(&b->begin));
    FM_CUDA(cudaEventCreate(&b->end));
    FM_TRY(fm_cuda_alloc(&b->arena, ARENA, "GPU memory to read"));
    FM_TRY(fm_cuda_alloc((void **)&b->sink, fm_gpu_fma_bytes(b->device.n_sm), "sums"));
    return fm_cuda_alloc_pinned(&b->pinned, PINNED, "memory to copy from");
}

static void close_bench(bench *b)
{
    fm_cuda_free(b->arena);
    fm_cuda_free(b->sink);
    fm_cuda_free_pinned(b->pinned);
    if (b->begin) (void)cudaEventDestroy(b->begin);
    if (b->end) (void)cudaEventDestroy(b->end);
    fm_cuda_stream_destroy(b->stream);
}

int fm_gpu_rates_count(void) { return fm_cuda_count(); }

fm_status fm_gpu_rates(fm_rates_gpu *out, fm_gpu_facts *facts, int index, fm_gpu_product *product)
{
    bench     b  = {0};
    fm_status rc = open_bench(&b, index);
    if (rc == FM_OK) {
        snprintf(out->name, sizeof out->name, "%.95s", b.device.name);
        out->memory = b.device.total;
        rc          = measure_all(out, facts, &b, index, product);
    }
    close_bench(&b);
    return rc;
}
