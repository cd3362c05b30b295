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

#include "llm/kernel/cuda/linear/linear.h"
#include "llm/kernel/cuda/linear/lt_library.h"

enum { MAX_PLANS = 512, CANDIDATES = 16, ALIGNMENT = 16 };

/* Inside a function that has the product's args as `a`. */
#define LT(call)                                                                                   \
    do {                                                                                           \
        const cublasStatus_t s_ = lt_calls->call;                                                  \
        if (s_ != CUBLAS_STATUS_SUCCESS) return refused(a, s_);                                    \
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
    int                        has_one; /* an algorithm: not every product does */
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

static fm_status refused(const fm_cuda_linear_args *a, cublasStatus_t s)
{
    return fm_fail(FM_E_DEVICE, "cuBLASLt refuses a product of m %d, n %d, k %d, %d times: %s",
                   a->m, a->n, a->k, a->n_batch, lt_calls->cublasLtGetStatusString(s));
}

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
    FM_BUG_UNLESS((uintptr_t)workspace % FM_CUDA_LT_ALIGN == 0);
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

typedef struct {
    cudaDataType type;
    int          rows, cols, ld;
    int64_t      stride; /* between members of the batch */
} layout;

static fm_status one_layout(cublasLtMatrixLayoutOpaque_t *l, const fm_cuda_linear_args *a,
                            const layout *m)
{
    const int32_t n_batch = a->n_batch;
    LT(cublasLtMatrixLayoutInit_internal(l, sizeof *l, m->type, (uint64_t)m->rows,
                                         (uint64_t)m->cols, m->ld));
    LT(cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &n_batch,
                                        sizeof n_batch));
    LT(cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &m->stride,
                                        sizeof m->stride));
    return FM_OK;
}

static fm_status make_layouts(layouts *l, const fm_cuda_linear_args *a, int m)
{
    const int    w_rows = a->by_k ? a->n : a->k, w_cols = a->by_k ? a->k : a->n;
    const layout w = {CUDA_R_16BF, w_rows, w_cols, a->ldw, a->w_stride};
    const layout x = {CUDA_R_16BF, a->k, m, a->ldx, a->x_stride};
    const layout y = {a->y_bf16 ? CUDA_R_16BF : CUDA_R_32F, a->n, m, a->ldy, a->y_stride};
    FM_TRY(one_layout(&l->w, a, &w));
    FM_TRY(one_layout(&l->x, a, &x));
    return one_layout(&l->y, a, &y);
}

static fm_status describe(cublasLtMatmulDescOpaque_t *d, const fm_cuda_linear_args *a)
{
    const cublasOperation_t w = a->by_k ? CUBLAS_OP_N : CUBLAS_OP_T;
    LT(cublasLtMatmulDescInit_internal(d, sizeof *d, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    LT(cublasLtMatmulDescSetAttribute(d, CUBLASLT_MATMUL_DESC_TRANSA, &w, sizeof w));
    return FM_OK;
}

/* Tensor cores only: their chain is the definition.  Algorithms that split k are
 * welcome here and made whole below: without them the library offers some that
 * take ten times as long. */
static fm_status prefer(cublasLtMatmulPreferenceOpaque_t *p, const fm_cuda_linear_args *a,
                        size_t workspace_bytes)
{
    const uint64_t tensor_cores = ~(uint64_t)CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA;
    const uint32_t aligned      = ALIGNMENT;
    const cublasLtMatmulPreferenceAttributes_t alignment[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    LT(cublasLtMatmulPreferenceInit_internal(p, sizeof *p));
    LT(cublasLtMatmulPreferenceSetAttribute(p, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                            &workspace_bytes, sizeof workspace_bytes));
    LT(cublasLtMatmulPreferenceSetAttribute(p, CUBLASLT_MATMUL_PREF_IMPL_MASK, &tensor_cores,
                                            sizeof tensor_cores));
    for (size_t i = 0; i < sizeof alignment / sizeof *alignment; i++)
        LT(cublasLtMatmulPreferenceSetAttribute(p, alignment[i], &aligned, sizeof aligned));
    return FM_OK;
}

/* A sum over k is one chain: no parts, nothing to reduce. */
static int make_whole(cublasLtMatmulAlgo_t *algorithm)
{
    const int32_t  parts  = 1;
    const uint32_t scheme = CUBLASLT_REDUCTION_SCHEME_NONE;
    return lt_calls->cublasLtMatmulAlgoConfigSetAttribute(
               algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &parts, sizeof parts) ==
               CUBLAS_STATUS_SUCCESS &&
           lt_calls->cublasLtMatmulAlgoConfigSetAttribute(
               algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &scheme, sizeof scheme) ==
               CUBLAS_STATUS_SUCCESS;
}

/* Whether an algorithm runs with these layouts within the workspace. */
static int fits(fm_cuda_lt *lt, plan *p, layouts *l, const cublasLtMatmulAlgo_t *algorithm)
{
    cublasLtMatmulHeuristicResult_t r;
    const cublasStatus_t            s = lt_calls->cublasLtMatmulAlgoCheck(
        lt->handle, &p->product, &l->w, &l->x, &l->y, &l->y, algorithm, &r);
    return s == CUBLAS_STATUS_SUCCESS && r.workspaceSize <= lt->workspace_bytes;
}

static fm_status choose(fm_cuda_lt *lt, plan *p, const fm_cuda_linear_args *a)
{
    layouts                          top, bottom;
    cublasLtMatmulPreferenceOpaque_t preference;
    cublasLtMatmulHeuristicResult_t  found[CANDIDATES];
    int                              n = 0;
    FM_TRY(describe(&p->product, a));
    FM_TRY(make_layouts(&top, a, p->key.bucket));
    FM_TRY(make_layouts(&bottom, a, p->key.bucket / 2 + 1));
    FM_TRY(prefer(&preference, a, lt->workspace_bytes));
    LT(cublasLtMatmulAlgoGetHeuristic(lt->handle, &p->product, &top.w, &top.x, &top.y, &top.y,
                                      &preference, CANDIDATES, found, &n));
    for (int i = 0; i < n; i++) {
        cublasLtMatmulAlgo_t *algorithm = &found[i].algo;
        if (found[i].state != CUBLAS_STATUS_SUCCESS || !make_whole(algorithm) ||
            !fits(lt, p, &top, algorithm) || !fits(lt, p, &bottom, algorithm))
            continue;
        p->algorithm = *algorithm;
        p->has_one   = 1;
        return FM_OK;
    }
    return FM_OK;
}

static fm_status usable(const plan *p)
{
    return p->has_one ? FM_OK
                      : fm_fail(FM_E_NOSUP, "cuBLASLt has no algorithm for m <= %d, n %d, k %d",
                                p->key.bucket, p->key.n, p->key.k);
}

fm_status fm_cuda_lt_plan(fm_cuda_lt *lt, const fm_cuda_linear_args *a)
{
    const plan_key k = key_of(a);
    if (a->scale) return fm_fail(FM_E_NOSUP, "cuBLASLt: e4m3 weights");
    plan *p = find(lt, &k);
    if (p) return usable(p);
    if (lt->n_plan == MAX_PLANS)
        return fm_fail(FM_E_FULL, "cuBLASLt: more than %d kinds of product", MAX_PLANS);
    p      = &lt->plan[lt->n_plan];
    p->key = k;
    FM_TRY(choose(lt, p, a));
    lt->n_plan++;
    return usable(p);
}

fm_status fm_cuda_lt_run(fm_cuda_lt *lt, const fm_cuda_linear_args *a, fm_stream stream)
{
    const plan_key k   = key_of(a);
    const float    one = 1, beta = a->accumulate ? 1 : 0;
    layouts        l;
    FM_TRY(fm_cuda_lt_plan(lt, a));
    plan *p = find(lt, &k);
    FM_TRY(make_layouts(&l, a, a->m));
    LT(cublasLtMatmul(lt->handle, &p->product, &one, a->w, &l.w, a->x, &l.x, &beta, a->y, &l.y,
                      a->y, &l.y, &p->algorithm, lt->workspace, lt->workspace_bytes,
                      (cudaStream_t)stream));
    return FM_OK;
}
