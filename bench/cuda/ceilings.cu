/* SPDX-License-Identifier: Apache-2.0 */
/* What the GPU can do at best: memory, library products, the tensor core
 * instruction our decode kernels are built on, the bus. */
#include <cublasLt.h>
#include <cuda_runtime.h>
#include <stdio.h>

#include <initializer_list>

#include "bench/cuda/sections.h"
#include "bench/cuda/stand.h"
#include "llm/kernel/cuda/linear/linear.h"
#include "llm/kernel/cuda/ptx/ptx.cuh"
#include "probe/cuda/gpu_kernels.h"

enum {
    CUBE        = 8192,
    MMA_STEPS   = 4096,
    MMA_CHAINS  = 8,
    MMA_THREADS = 256,
    MMA_BLOCKS  = 2
}; /* per multiprocessor: registers for eight chains */
static const size_t ARENA = (size_t)4 << 30, PINNED = (size_t)256 << 20;

/* A call that records `bytes` or `flop` of work. */
typedef struct {
    void  *from, *to;
    size_t bytes;
} transfer;

/* --- memory ----------------------------------------------------------------- */

static void record_copy(void *arg, fm_stream stream)
{
    const transfer   *t = (const transfer *)arg;
    const cudaError_t e =
        cudaMemcpyAsync(t->to, t->from, t->bytes, cudaMemcpyDefault, (cudaStream_t)stream);
    if (e != cudaSuccess) stand_need(fm_fail(FM_E_DEVICE, "copy: %s", cudaGetErrorString(e)));
}

static void record_read(void *arg, fm_stream stream)
{
    const transfer *t = (const transfer *)arg;
    stand_need(fm_gpu_read_launch(t->from, t->bytes, (uint32_t *)t->to, stand_sm(), stream));
}

static void measure_memory(void)
{
    transfer t = {stand_random(ARENA, STAND_BF16, 1), stand_take(ARENA), ARENA};
    stand_line(FM_GPU_COPY, "4 GiB", 0, stand_time(record_copy, &t), 2.0 * (double)ARENA, 0);
    stand_line(FM_GPU_READ, "4 GiB", 0, stand_time(record_read, &t), (double)ARENA, 0);
    stand_free(t.from);
    stand_free(t.to);
}

static void measure_bus(void)
{
    transfer up = {NULL, stand_take(PINNED), PINNED};
    if (cudaMallocHost(&up.from, PINNED) != cudaSuccess) return;
    transfer     down  = {up.to, up.from, PINNED};
    const double there = stand_time(record_copy, &up), back = stand_time(record_copy, &down);
    stand_number("host to device", "pinned", (double)PINNED / there * 1e-3, "GB/s");
    stand_number("device to host", "pinned", (double)PINNED / back * 1e-3, "GB/s");
    (void)cudaFreeHost(up.from);
    stand_free(up.to);
}

/* --- library products -------------------------------------------------------- */

typedef struct {
    fm_cuda_lt         *lt;
    fm_cuda_linear_args a;
} product;

static void record_product(void *arg, fm_stream stream)
{
    const product *p = (const product *)arg;
    stand_need(fm_cuda_lt_run(p->lt, &p->a, stream));
}

static void measure_bf16(fm_cuda_lt *lt, const char *name, int m, int n, int k)
{
    product p = {};
    char    shape[40];
    p.lt  = lt;
    p.a.x = (const uint16_t *)stand_random((size_t)m * (size_t)k * 2, STAND_BF16, 1);
    p.a.w = stand_random((size_t)n * (size_t)k * 2, STAND_BF16, 2);
    p.a.y = stand_take((size_t)m * (size_t)n * 2);
    p.a.m = m, p.a.n = n, p.a.k = k;
    p.a.ldx = p.a.ldw = k, p.a.ldy = n;
    p.a.n_batch = 1, p.a.y_bf16 = 1, p.a.n_sm = stand_sm();
    snprintf(shape, sizeof shape, "n %d k %d", n, k);
    stand_line(name, shape, m, stand_time(record_product, &p),
               2.0 * ((double)n * k + (double)m * (n + k)), 2.0 * m * n * k);
    stand_free((void *)p.a.x);
    stand_free((void *)p.a.w);
    stand_free(p.a.y);
}

/* How a product of e4m3 is asked for. */
typedef struct {
    const char *name;
    int8_t      fast_sums; /* not always rounded to f32 */
    int         blocks; /* a factor for 128 x 128 weights and for 128 of a row, not one for all */
} e4m3_way;

/* d = a b^T of e4m3, bf16 out. */
typedef struct {
    cublasLtHandle_t                handle;
    cublasLtMatmulDesc_t            product;
    cublasLtMatrixLayout_t          in, out;
    cublasLtMatmulHeuristicResult_t found;
    void                           *a, *b, *d, *space, *a_scale, *b_scale;
    size_t                          space_bytes;
} cube;

static cublasStatus_t run_cube(const cube *c, fm_stream stream)
{
    const float one = 1, zero = 0;
    return cublasLtMatmul(c->handle, c->product, &one, c->a, c->in, c->b, c->in, &zero, c->d,
                          c->out, c->d, c->out, &c->found.algo, c->space, c->space_bytes,
                          (cudaStream_t)stream);
}

static void record_cube(void *arg, fm_stream stream)
{
    if (run_cube((const cube *)arg, stream) != CUBLAS_STATUS_SUCCESS)
        stand_need(fm_fail(FM_E_DEVICE, "cublasLtMatmul of e4m3"));
}

static bool set(cube *c, cublasLtMatmulDescAttributes_t what, const void *value, size_t bytes)
{
    return cublasLtMatmulDescSetAttribute(c->product, what, value, bytes) == CUBLAS_STATUS_SUCCESS;
}

static bool set_blocks(cube *c)
{
    const int32_t a = CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F;
    const int32_t b = CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F;
    return set(c, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, &a, sizeof a) &&
           set(c, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, &b, sizeof b) &&
           set(c, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &c->a_scale, sizeof c->a_scale) &&
           set(c, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &c->b_scale, sizeof c->b_scale);
}

/* Is there an algorithm for it, and does it start? */
static bool prepare_cube(cube *c, const e4m3_way *way)
{
    const cublasOperation_t    turn = CUBLAS_OP_T;
    cublasLtMatmulPreference_t preference;
    int                        n = 0;
    if (cublasLtMatmulDescCreate(&c->product, CUBLAS_COMPUTE_32F, CUDA_R_32F) ||
        !set(c, CUBLASLT_MATMUL_DESC_TRANSA, &turn, sizeof turn) ||
        !set(c, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &way->fast_sums, sizeof way->fast_sums) ||
        (way->blocks && !set_blocks(c)))
        return false;
    if (cublasLtMatrixLayoutCreate(&c->in, CUDA_R_8F_E4M3, CUBE, CUBE, CUBE) ||
        cublasLtMatrixLayoutCreate(&c->out, CUDA_R_16BF, CUBE, CUBE, CUBE) ||
        cublasLtMatmulPreferenceCreate(&preference) ||
        cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                             &c->space_bytes, sizeof c->space_bytes))
        return false;
    return !cublasLtMatmulAlgoGetHeuristic(c->handle, c->product, c->in, c->in, c->out, c->out,
                                           preference, 1, &c->found, &n) &&
           n == 1 && run_cube(c, NULL) == CUBLAS_STATUS_SUCCESS;
}

static void measure_e4m3(const e4m3_way *way)
{
    const size_t n = (size_t)CUBE * CUBE;
    cube         c = {};
    c.space_bytes  = (size_t)64 << 20;
    if (cublasLtCreate(&c.handle)) return;
    c.a       = stand_random(n, STAND_E4M3, 1);
    c.b       = stand_random(n, STAND_E4M3, 2);
    c.a_scale = stand_random(n / (128 * 128) * 4, STAND_FACTORS, 3);
    c.b_scale = stand_random(n / 128 * 4, STAND_FACTORS, 4);
    c.d       = stand_take(2 * n);
    c.space   = stand_take(c.space_bytes);
    if (prepare_cube(&c, way))
        stand_line_fp8(way->name, "n 8192 k 8192", CUBE, stand_time(record_cube, &c),
                       4.0 * (double)n, 2.0 * CUBE * (double)n);
    else
        stand_number(way->name, "not in this cuBLASLt", 0, "FLOP/s");
    for (void *p : {c.a, c.b, c.a_scale, c.b_scale, c.d, c.space}) stand_free(p);
    cublasLtDestroy(c.handle);
}

static void measure_library(void)
{
    const size_t bytes = (size_t)64 << 20;
    void        *space = stand_take(bytes);
    fm_cuda_lt  *lt    = NULL;
    stand_need(fm_cuda_lt_create(&lt, space, bytes));
    measure_bf16(lt, FM_GPU_BF16, CUBE, CUBE, CUBE);
    measure_bf16(lt, "cuBLASLt R1 out", 4096, 7168, 16384);
    measure_bf16(lt, "cuBLASLt R1 out", 256, 7168, 16384);
    fm_cuda_lt_destroy(lt);
    stand_free(space);
    for (const e4m3_way &way : {e4m3_way{FM_GPU_FP8, 1, 0}, e4m3_way{"e4m3, f32 sums", 0, 0},
                                e4m3_way{"e4m3, blocks of 128", 0, 1}})
        measure_e4m3(&way);
}

/* --- the instruction ---------------------------------------------------------- */

FM_DEVICE void mma_e4m3(float d[4], const uint32_t a[4], const uint32_t b[2])
{
    asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* Independent sums from registers alone; operands differ by lane and chain. */
template <bool E4M3>
FM_KERNEL(MMA_THREADS, MMA_BLOCKS)
multiply(const uint32_t *numbers, float *out)
{
    uint32_t a[MMA_CHAINS][4], b[2];
    float    d[MMA_CHAINS][4] = {}, sum = 0;
    for (int c = 0; c < MMA_CHAINS; c++)
        for (int i = 0; i < 4; i++) a[c][i] = numbers[(c * 4 + i) * MMA_THREADS + threadIdx.x];
    for (int i = 0; i < 2; i++) b[i] = numbers[(MMA_CHAINS * 4 + i) * MMA_THREADS + threadIdx.x];
    for (int step = 0; step < MMA_STEPS; step++) {
#pragma unroll
        for (int c = 0; c < MMA_CHAINS; c++)
            if (E4M3)
                mma_e4m3(d[c], a[c], b);
            else
                fm_mma_bf16_16816(d[c], a[c], b);
    }
    for (int c = 0; c < MMA_CHAINS; c++) sum += d[c][0] + d[c][1] + d[c][2] + d[c][3];
    out[blockIdx.x * MMA_THREADS + threadIdx.x] = sum;
}

typedef struct {
    const uint32_t *numbers;
    float          *out;
} operands;

template <bool E4M3> static void record_mma(void *arg, fm_stream stream)
{
    const operands *o = (const operands *)arg;
    FM_LAUNCH(multiply<E4M3>, MMA_BLOCKS * stand_sm(), MMA_THREADS, 0, stream, o->numbers, o->out);
    stand_need(fm_cuda_launched("multiply"));
}

template <bool E4M3> static void measure_mma(const char *name)
{
    const size_t n     = (size_t)(MMA_CHAINS * 4 + 2) * MMA_THREADS * 4;
    const double warps = (double)MMA_BLOCKS * stand_sm() * (MMA_THREADS / 32);
    operands     o     = {};
    o.numbers          = (const uint32_t *)stand_random(n, E4M3 ? STAND_E4M3 : STAND_BF16, 3);
    o.out              = (float *)stand_take((size_t)(MMA_BLOCKS * stand_sm()) * MMA_THREADS * 4);
    const double flop  = warps * MMA_STEPS * MMA_CHAINS * 2.0 * 16 * 8 * (E4M3 ? 32 : 16);
    (E4M3 ? stand_line_fp8 : stand_line)(name, "registers alone", 0,
                                         stand_time(record_mma<E4M3>, &o), 0, flop);
    stand_free((void *)o.numbers);
    stand_free(o.out);
}

void section_ceilings(void)
{
    measure_memory();
    measure_library();
    measure_mma<false>("mma.sync bf16");
    measure_mma<true>("mma.sync e4m3");
    measure_bus();
}
