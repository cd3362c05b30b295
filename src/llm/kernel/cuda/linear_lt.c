/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLASLt behind linear.h: the only file that knows it.
 *
 * Its matrices are column-major, so y = x w^T is asked for as y^T = w x^T: what
 * is row-major here is already transposed there.
 *
 * A plan is an algorithm for one kind of product and one bucket of m (a power
 * of two and what lies below it), found once; descriptors live in the plan and
 * layouts on the stack, so running a plan allocates nothing. */
#include <stdlib.h>
#include <string.h>

#include "llm/kernel/cuda/linear.h"
#include "llm/kernel/cuda/lt_library.h"

enum { MAX_PLANS = 512, CANDIDATES = 8, ALIGNMENT = 16 };

#define LT(call)                                                                                   \
    do {                                                                                           \
        const cublasStatus_t s_ = (call);                                                          \
        if (s_ != CUBLAS_STATUS_SUCCESS)                                                           \
            return fm_fail(FM_E_DEVICE, "%s: %s", #call, lt_calls->cublasLtGetStatusString(s_));             \
    } while (0)

static const fm__lt_calls *lt_calls; /* set by fm_cuda_lt_create() */

/* What an algorithm depends on; compared as bytes. */
typedef struct {
    int64_t x_stride, w_stride, y_stride;
    int32_t bucket, n, k, ldx, ldw, ldy, n_batch;
    int32_t by_k, y_bf16, accumulate;
} plan_key;

typedef struct {
    plan_key                   key;
    cublasLtMatmulDescOpaque_t product;
    cublasLtMatmulAlgo_t       algorithm;
} plan;

struct fm_cuda_lt {
    cublasLtHandle_t handle;
    void            *workspace;
    size_t           workspace_bytes;
    int              n_plan;
    plan             plan[MAX_PLANS];
};

typedef struct {
    cublasLtMatrixLayoutOpaque_t w, x, y;
} layouts;

static int bucket_of(int m)
{
    int b = 16;
    while (b < m) b *= 2;
    return b;
}

static plan_key key_of(const fm_cuda_linear_args *a)
{
    plan_key k;
    memset(&k, 0, sizeof k); /* padding takes part in the comparison */
    k.x_stride   = a->x_stride;
    k.w_stride   = a->w_stride;
    k.y_stride   = a->y_stride;
    k.bucket     = bucket_of(a->m);
    k.n          = a->n;
    k.k          = a->k;
    k.ldx        = a->ldx;
    k.ldw        = a->ldw;
    k.ldy        = a->ldy;
    k.n_batch    = a->n_batch;
    k.by_k       = a->by_k;
    k.y_bf16     = a->y_bf16;
    k.accumulate = a->accumulate;
    return k;
}

static plan *find(fm_cuda_lt *lt, const plan_key *k)
{
    for (int i = 0; i < lt->n_plan; i++)
        if (memcmp(&lt->plan[i].key, k, sizeof *k) == 0) return &lt->plan[i];
    return NULL;
}

fm_status fm_cuda_lt_create(fm_cuda_lt **out, void *workspace, size_t workspace_bytes)
{
    FM_TRY(fm__lt_library(&lt_calls));
    fm_cuda_lt *lt = calloc(1, sizeof *lt);
    if (!lt) return fm_fail(FM_E_OOM, "plans for cuBLASLt");
    const cublasStatus_t s = lt_calls->cublasLtCreate(&lt->handle);
    if (s != CUBLAS_STATUS_SUCCESS) {
        free(lt);
        return fm_fail(FM_E_DEVICE, "cublasLtCreate: %s", lt_calls->cublasLtGetStatusString(s));
    }
    lt->workspace       = workspace;
    lt->workspace_bytes = workspace_bytes;
    *out                = lt;
    return FM_OK;
}

void fm_cuda_lt_destroy(fm_cuda_lt *lt)
{
    if (!lt) return;
    lt_calls->cublasLtDestroy(lt->handle);
    free(lt);
}

static fm_status one_layout(cublasLtMatrixLayoutOpaque_t *l, cudaDataType type, int rows, int cols,
                            int ld, int32_t n_batch, int64_t stride)
{
    LT(lt_calls->cublasLtMatrixLayoutInit_internal(l, sizeof *l, type, (uint64_t)rows, (uint64_t)cols, ld));
    LT(lt_calls->cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &n_batch,
                                        sizeof n_batch));
    LT(lt_calls->cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                        sizeof stride));
    return FM_OK;
}

static fm_status make_layouts(layouts *l, const fm_cuda_linear_args *a, int m)
{
    const cudaDataType y = a->y_bf16 ? CUDA_R_16BF : CUDA_R_32F;
    FM_TRY(one_layout(&l->w, CUDA_R_16BF, a->by_k ? a->n : a->k, a->by_k ? a->k : a->n, a->ldw,
                      a->n_batch, a->w_stride));
    FM_TRY(one_layout(&l->x, CUDA_R_16BF, a->k, m, a->ldx, a->n_batch, a->x_stride));
    return one_layout(&l->y, y, a->n, m, a->ldy, a->n_batch, a->y_stride);
}

static fm_status describe(cublasLtMatmulDescOpaque_t *d, int by_k)
{
    const cublasOperation_t w = by_k ? CUBLAS_OP_N : CUBLAS_OP_T;
    LT(lt_calls->cublasLtMatmulDescInit_internal(d, sizeof *d, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    LT(lt_calls->cublasLtMatmulDescSetAttribute(d, CUBLASLT_MATMUL_DESC_TRANSA, &w, sizeof w));
    return FM_OK;
}

/* Sums over parts of k stay in f32. */
static fm_status prefer(cublasLtMatmulPreferenceOpaque_t *p, size_t workspace_bytes)
{
    const uint32_t schemes =
        CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    const uint32_t                             aligned     = ALIGNMENT;
    const cublasLtMatmulPreferenceAttributes_t alignment[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    LT(lt_calls->cublasLtMatmulPreferenceInit_internal(p, sizeof *p));
    LT(lt_calls->cublasLtMatmulPreferenceSetAttribute(p, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                            &workspace_bytes, sizeof workspace_bytes));
    LT(lt_calls->cublasLtMatmulPreferenceSetAttribute(p, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes,
                                            sizeof schemes));
    for (size_t i = 0; i < sizeof alignment / sizeof *alignment; i++)
        LT(lt_calls->cublasLtMatmulPreferenceSetAttribute(p, alignment[i], &aligned, sizeof aligned));
    return FM_OK;
}

/* Whether an algorithm found for the top of a bucket also runs at its bottom
 * within the workspace. */
static int fits(fm_cuda_lt *lt, plan *p, layouts *l, const cublasLtMatmulAlgo_t *algorithm)
{
    cublasLtMatmulHeuristicResult_t r;
    const cublasStatus_t s = lt_calls->cublasLtMatmulAlgoCheck(lt->handle, &p->product, &l->w, &l->x, &l->y,
                                                     &l->y, algorithm, &r);
    return s == CUBLAS_STATUS_SUCCESS && r.workspaceSize <= lt->workspace_bytes;
}

static fm_status choose(fm_cuda_lt *lt, plan *p, const fm_cuda_linear_args *a)
{
    layouts                          top, bottom;
    cublasLtMatmulPreferenceOpaque_t preference;
    cublasLtMatmulHeuristicResult_t  found[CANDIDATES];
    int                              n = 0;
    FM_TRY(describe(&p->product, a->by_k));
    FM_TRY(make_layouts(&top, a, p->key.bucket));
    FM_TRY(make_layouts(&bottom, a, p->key.bucket / 2 + 1));
    FM_TRY(prefer(&preference, lt->workspace_bytes));
    LT(lt_calls->cublasLtMatmulAlgoGetHeuristic(lt->handle, &p->product, &top.w, &top.x, &top.y, &top.y,
                                      &preference, CANDIDATES, found, &n));
    for (int i = 0; i < n; i++) {
        if (found[i].state != CUBLAS_STATUS_SUCCESS || !fits(lt, p, &bottom, &found[i].algo))
            continue;
        p->algorithm = found[i].algo;
        return FM_OK;
    }
    return fm_fail(FM_E_NOSUP, "cuBLASLt has no algorithm for m <= %d, n = %d, k = %d",
                   p->key.bucket, a->n, a->k);
}

fm_status fm_cuda_lt_plan(fm_cuda_lt *lt, const fm_cuda_linear_args *a)
{
    const plan_key k = key_of(a);
    if (a->scale) return fm_fail(FM_E_NOSUP, "cuBLASLt: e4m3 weights");
    if (find(lt, &k)) return FM_OK;
    if (lt->n_plan == MAX_PLANS)
        return fm_fail(FM_E_FULL, "cuBLASLt: more than %d kinds of product", MAX_PLANS);
    plan *p = &lt->plan[lt->n_plan];
    p->key  = k;
    FM_TRY(choose(lt, p, a));
    lt->n_plan++;
    return FM_OK;
}

fm_status fm_cuda_lt_run(fm_cuda_lt *lt, const fm_cuda_linear_args *a, fm_stream stream)
{
    const plan_key k   = key_of(a);
    const float    one = 1, beta = a->accumulate ? 1 : 0;
    layouts        l;
    FM_TRY(fm_cuda_lt_plan(lt, a));
    plan *p = find(lt, &k);
    FM_TRY(make_layouts(&l, a, a->m));
    LT(lt_calls->cublasLtMatmul(lt->handle, &p->product, &one, a->w, &l.w, a->x, &l.x, &beta, a->y, &l.y,
                      a->y, &l.y, &p->algorithm, lt->workspace, lt->workspace_bytes,
                      (cudaStream_t)stream));
    return FM_OK;
}
