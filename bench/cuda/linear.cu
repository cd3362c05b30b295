/* SPDX-License-Identifier: Apache-2.0 */
/* Dense products, our kernels beside cuBLASLt, at the shapes of V2-Lite and R1.
 * Weights rotate over copies that together exceed L2 several times. */
#include <stdio.h>

#include "bench/cuda/sections.h"
#include "bench/cuda/stand.h"
#include "llm/kernel/cuda/experts/experts.h"
#include "llm/kernel/cuda/linear/linear.h"

enum { MAX_COPIES = 1024, WIDE = 65536 };
static const double ROTATING = 250e6; /* bytes */

typedef struct {
    const char *name;
    int         n, k, n_batch, by_k, e4m3, swiglu;
} product_shape;

static const product_shape shapes[] = {
    {"v2lite q+kv_a", 3648, 2048, 1, 0, 0},    {"v2lite kv_a", 576, 2048, 1, 0, 0},
    {"v2lite router", 64, 2048, 1, 0, 0},      {"v2lite o", 2048, 2048, 1, 0, 0},
    {"v2lite gate+up", 5632, 2048, 1, 0, 0, 1}, {"v2lite shared down", 2048, 2816, 1, 0, 0},
    {"v2lite logits", 102400, 2048, 1, 0, 0},  {"v2lite absorb k", 512, 128, 16, 1, 0},
    {"v2lite absorb v", 128, 512, 16, 0, 0},   {"r1 q_a+kv_a", 2112, 7168, 1, 0, 0},
    {"r1 q_b", 24576, 1536, 1, 0, 0},          {"r1 o", 7168, 16384, 1, 0, 0},
    {"r1 kv_b", 32768, 512, 1, 0, 0},          {"r1 logits", 129280, 7168, 1, 0, 0},
    {"r1 n 2048 k 7168", 2048, 7168, 1, 0, 0}, {"r1 router", 256, 7168, 1, 0, 0},
    {"r1 absorb k", 512, 128, 128, 1, 0},      {"r1 absorb v", 128, 512, 128, 0, 0},
    {"r1 gate+up", 4096, 7168, 1, 0, 0, 1},
};

static const product_shape e4m3_shapes[] = {
    {"r1 q_b e4m3", 24576, 1536, 1, 0, 1},       {"r1 q_a+kv_a e4m3", 2112, 7168, 1, 0, 1},
    {"r1 o e4m3", 7168, 16384, 1, 0, 1},         {"r1 gate+up e4m3", 4096, 7168, 1, 0, 1, 1},
    {"r1 shared down e4m3", 7168, 2048, 1, 0, 1},
};

static const int row_counts[] = {1, 32, 256, 4096, 8, 64, 128, 512}; /* the telling ones first */
static const int e4m3_counts[] = {256, 32, 64, 4096, 128, 16, 8, 512, 1, 1024};

typedef struct {
    fm_cuda_linear_args a;
    char               *w; /* n_copy of them */
    size_t              bytes;
    int                 n_copy;
    fm_cuda_lt         *lt;
    fm_status (*run)(fm_cuda_lt *lt, const fm_cuda_linear_args *a, fm_stream stream);
} replay;

static fm_status tiles(fm_cuda_lt *lt, const fm_cuda_linear_args *a, fm_stream stream)
{
    (void)lt;
    return fm_cuda_linear_tiles(a, stream);
}

template <fm_cuda_wide SHAPE>
static fm_status wide(fm_cuda_lt *lt, const fm_cuda_linear_args *a, fm_stream stream)
{
    (void)lt;
    return fm_cuda_linear_wide(a, SHAPE, stream);
}

/* Gate and up of many rows, as an FFN has them. */
static fm_status by_experts(fm_cuda_lt *lt, const fm_cuda_linear_args *a, fm_stream stream)
{
    (void)lt;
    fm_cuda_experts_args e = {};
    e.gate_up              = {a->w, a->scale, 0};
    e.h                    = a->x;
    e.middle               = (uint16_t *)a->y;
    e.n_row                = a->m;
    e.block_rows           = fm_cuda_experts_block_rows(a->m, 1, a->scale != NULL);
    e.D                    = a->k;
    e.I                    = a->n / 2;
    e.n_sm                 = a->n_sm;
    return fm_cuda_experts_up(&e, stream);
}

static void record(void *arg, fm_stream stream)
{
    replay *r = (replay *)arg;
    for (int i = 0; i < r->n_copy; i++) {
        r->a.w = r->w + (size_t)i * r->bytes;
        stand_need(r->run(r->lt, &r->a, stream));
    }
}

static size_t weight_bytes(const product_shape *s)
{
    return (size_t)s->n * (size_t)s->k * (size_t)s->n_batch * (s->e4m3 ? 1 : 2);
}

static int copies(size_t bytes)
{
    const int n = (int)(ROTATING / (double)bytes) + 4;
    return n < MAX_COPIES ? n : MAX_COPIES;
}

/* As a layer has them: heads side by side in a row. */
static void take(replay *r, const product_shape *s, int m)
{
    r->bytes  = weight_bytes(s);
    r->n_copy = copies(r->bytes);
    r->w = (char *)stand_random(r->bytes * (size_t)r->n_copy, s->e4m3 ? STAND_E4M3 : STAND_BF16, 1);
    fm_cuda_linear_args *a = &r->a;
    a->x = (const uint16_t *)stand_random((size_t)m * (size_t)s->k * (size_t)s->n_batch * 2,
                                          STAND_BF16, 99);
    a->y = stand_take((size_t)m * (size_t)s->n * (size_t)s->n_batch * 4);
    if (s->e4m3)
        a->scale = (const float *)stand_random(
            (size_t)((s->n + 255) / 128) * (size_t)((s->k + 127) / 128) * 4, STAND_FACTORS, 98);
    a->m        = m;
    a->n        = s->n;
    a->k        = s->k;
    a->ldx      = s->k * s->n_batch;
    a->ldw      = s->by_k ? s->n : s->k;
    a->ldy      = s->swiglu ? s->n / 2 : s->n * s->n_batch;
    a->n_batch  = s->n_batch;
    a->x_stride = s->k;
    a->w_stride = (int64_t)s->n * s->k;
    a->y_stride = s->n;
    a->by_k     = s->by_k;
    a->swiglu   = s->swiglu;
    a->n_sm     = stand_sm();
}

static void give_back(replay *r)
{
    stand_free(r->w);
    stand_free((void *)r->a.x);
    stand_free(r->a.y);
    stand_free((void *)r->a.scale);
}

static void time_one(replay *r, const product_shape *s, const char *kernel,
                     fm_status (*run)(fm_cuda_lt *, const fm_cuda_linear_args *, fm_stream))
{
    const int    m    = r->a.m;
    const double acts = (double)m * s->n_batch * (s->k * 2.0 + s->n * (s->swiglu ? 1.0 : 4.0));
    const double flop = 2.0 * m * s->n * s->k * s->n_batch;
    r->run            = run;
    (s->e4m3 ? stand_line_fp8 : stand_line)(kernel, s->name, m, stand_time(record, r) / r->n_copy,
                                            (double)r->bytes + acts, flop);
}

/* tokens x rows of w */
static void time_wide(replay *r, const product_shape *s)
{
    const int m = r->a.m;
    if (m <= 256) time_one(r, s, "wide 64x64", wide<FM_CUDA_WIDE_64X64>);
    if (m <= 32) return;
    time_one(r, s, "wide 64x128", wide<FM_CUDA_WIDE_64X128>);
    time_one(r, s, "wide 128x64", wide<FM_CUDA_WIDE_128X64>);
    time_one(r, s, "wide 128x128", wide<FM_CUDA_WIDE_128X128>);
    time_one(r, s, "wide 128x256", wide<FM_CUDA_WIDE_128X256>);
}

static void time_e4m3(const product_shape *s, int m)
{
    replay r = {};
    take(&r, s, m);
    if (m <= 512) time_one(&r, s, "tiles", tiles);
    if (m > 8) time_wide(&r, s);
    if (m > 8) time_one(&r, s, "as chosen", fm_cuda_linear);
    give_back(&r);
}

static void time_shape(const product_shape *s, int m, fm_cuda_lt *lt)
{
    replay r = {};
    if (m > 512 && s->n > WIDE) return; /* nobody asks for so many logits */
    take(&r, s, m);
    r.lt = lt;
    time_one(&r, s, "tiles", tiles);
    if (s->swiglu)
        time_one(&r, s, "experts", by_experts);
    else if (fm_cuda_lt_plan(lt, &r.a) == FM_OK)
        time_one(&r, s, "cuBLASLt", fm_cuda_lt_run);
    give_back(&r);
}

void section_e4m3(void)
{
    stand_need(fm_cuda_linear_init());
    for (int m : e4m3_counts)
        for (const product_shape &s : e4m3_shapes)
            if (!stand_is_over()) time_e4m3(&s, m);
}

void section_linear(void)
{
    const size_t workspace_bytes = 64u << 20;
    fm_cuda_lt  *lt              = NULL;
    void        *workspace       = stand_take(workspace_bytes);
    stand_need(fm_cuda_linear_init());
    stand_need(fm_cuda_experts_init());
    stand_need(fm_cuda_lt_create(&lt, workspace, workspace_bytes));
    for (int m : row_counts)
        for (const product_shape &s : shapes)
            if (!stand_is_over()) time_shape(&s, m, lt);
    fm_cuda_lt_destroy(lt);
    stand_free(workspace);
}
