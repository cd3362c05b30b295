/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/kernel/cuda/linear/lt_peak.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>

#include "base/rng.h"
#include "device/cuda/check.h"
#include "device/cuda/device.h"
#include "llm/kernel/cuda/linear/lt_library.h"

enum { CUBE = 8192, GOES = 4, BLOCK_BYTES = 4 << 20 };
static const size_t SPACE_BYTES = (size_t)64 << 20;

/* d = a b^T, bf16 out. */
typedef struct {
    const fm__lt_calls             *lt;
    cublasLtHandle_t                handle;
    cublasLtMatmulDescOpaque_t      product;
    cublasLtMatrixLayoutOpaque_t    in, out;
    cublasLtMatmulHeuristicResult_t found;
    void                           *a, *b, *d, *space;
    fm_stream                       stream;
    cudaEvent_t                     begin, end;
} cube;

#define LT(call)                                                                                   \
    do {                                                                                           \
        const cublasStatus_t s_ = c->lt->call;                                                     \
        if (s_ != CUBLAS_STATUS_SUCCESS)                                                           \
            return fm_fail(FM_E_NOSUP, "cuBLASLt, a large product: %s",                            \
                           c->lt->cublasLtGetStatusString(s_));                                    \
    } while (0)

/* Random numbers that are ordinary in both types: zeros would run faster. */
static fm_status fill(void *to, size_t bytes, fm_stream s)
{
    uint32_t *block = malloc(BLOCK_BYTES);
    fm_status rc    = block ? FM_OK : fm_fail(FM_E_OOM, "numbers to multiply");
    for (uint32_t i = 0; block && i < BLOCK_BYTES / sizeof *block; i++)
        block[i] = (fm_rng_u32(5, i) & 0xbfbfbfbfu) | 0x20202020u;
    for (size_t at = 0; rc == FM_OK && at < bytes; at += BLOCK_BYTES)
        rc = fm_cuda_upload((char *)to + at, block, BLOCK_BYTES, s);
    if (rc == FM_OK) rc = fm_cuda_stream_wait(s);
    free(block);
    return rc;
}

static fm_status describe(cube *c, fm_dtype type)
{
    const cublasOperation_t          turn = CUBLAS_OP_T;
    const int8_t                     fast = type == FM_FP8;
    const cudaDataType               in   = fast ? CUDA_R_8F_E4M3 : CUDA_R_16BF;
    cublasLtMatmulPreferenceOpaque_t preference;
    int                              n = 0;
    LT(cublasLtMatmulDescInit_internal(&c->product, sizeof c->product, CUBLAS_COMPUTE_32F,
                                       CUDA_R_32F));
    LT(cublasLtMatmulDescSetAttribute(&c->product, CUBLASLT_MATMUL_DESC_TRANSA, &turn,
                                      sizeof turn));
    LT(cublasLtMatmulDescSetAttribute(&c->product, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast,
                                      sizeof fast));
    LT(cublasLtMatrixLayoutInit_internal(&c->in, sizeof c->in, in, CUBE, CUBE, CUBE));
    LT(cublasLtMatrixLayoutInit_internal(&c->out, sizeof c->out, CUDA_R_16BF, CUBE, CUBE, CUBE));
    LT(cublasLtMatmulPreferenceInit_internal(&preference, sizeof preference));
    LT(cublasLtMatmulPreferenceSetAttribute(&preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                            &SPACE_BYTES, sizeof SPACE_BYTES));
    LT(cublasLtMatmulAlgoGetHeuristic(c->handle, &c->product, &c->in, &c->in, &c->out, &c->out,
                                      &preference, 1, &c->found, &n));
    return n == 1 ? FM_OK : fm_fail(FM_E_NOSUP, "cuBLASLt has no algorithm for a large product");
}

static fm_status multiply(cube *c)
{
    const float one = 1, zero = 0;
    for (int i = 0; i < GOES; i++)
        LT(cublasLtMatmul(c->handle, &c->product, &one, c->a, &c->in, c->b, &c->in, &zero, c->d,
                          &c->out, c->d, &c->out, &c->found.algo, c->space, SPACE_BYTES,
                          (cudaStream_t)c->stream));
    return FM_OK;
}

static fm_status time_once(cube *c, double *rate)
{
    float ms = 0;
    FM_CUDA(cudaEventRecord(c->begin, (cudaStream_t)c->stream));
    FM_TRY(multiply(c));
    FM_CUDA(cudaEventRecord(c->end, (cudaStream_t)c->stream));
    FM_CUDA(cudaEventSynchronize(c->end));
    FM_CUDA(cudaEventElapsedTime(&ms, c->begin, c->end));
    *rate = GOES * 2.0 * CUBE * CUBE * CUBE / (1e-3 * (double)ms);
    return FM_OK;
}

static fm_status prepare(cube *c, fm_dtype type)
{
    const size_t n = (size_t)CUBE * CUBE, bytes = n * fm_dtype_bytes(type);
    FM_TRY(fm__lt_library(&c->lt));
    LT(cublasLtCreate(&c->handle));
    FM_TRY(fm_cuda_stream_create(&c->stream));
    FM_CUDA(cudaEventCreate(&c->begin));
    FM_CUDA(cudaEventCreate(&c->end));
    FM_TRY(fm_cuda_alloc(&c->a, bytes, "a large matrix"));
    FM_TRY(fm_cuda_alloc(&c->b, bytes, "a large matrix"));
    FM_TRY(fm_cuda_alloc(&c->d, 2 * n, "a large matrix"));
    FM_TRY(fm_cuda_alloc(&c->space, SPACE_BYTES, "workspace of cuBLASLt"));
    FM_TRY(fill(c->a, bytes, c->stream));
    FM_TRY(fill(c->b, bytes, c->stream));
    return describe(c, type);
}

static void release(cube *c)
{
    fm_cuda_free(c->a);
    fm_cuda_free(c->b);
    fm_cuda_free(c->d);
    fm_cuda_free(c->space);
    if (c->begin) (void)cudaEventDestroy(c->begin);
    if (c->end) (void)cudaEventDestroy(c->end);
    fm_cuda_stream_destroy(c->stream);
    if (c->handle) c->lt->cublasLtDestroy(c->handle);
}

fm_status fm_cuda_lt_peak(fm_dtype type, double *rate, int n)
{
    cube      c  = {0};
    fm_status rc = prepare(&c, type);
    if (rc == FM_OK) rc = time_once(&c, rate); /* warm */
    for (int i = 0; rc == FM_OK && i < n; i++) rc = time_once(&c, &rate[i]);
    release(&c);
    return rc;
}
