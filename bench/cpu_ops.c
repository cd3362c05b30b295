/* SPDX-License-Identifier: Apache-2.0 */
/* Single operations on the stand.  Weights rotate through many copies or
 * layers, so that small ones come from memory as in a real step. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "bench/cpu_measure.h"
#include "bench/cpu_profile.h"
#include "device/host.h"
#include "llm/model/model.h"

double fm_fastest(const fm_measuring *m, fm_go_fn *go, void *ctx)
{
    const double until = fm_now() + (m->quick ? 0.05 : 0.5);
    double       best  = HUGE_VAL;
    go(ctx); /* nothing is cold */
    for (int i = 0; i < 3 || fm_now() < until; i++) {
        const double began = fm_now();
        go(ctx);
        best = fmin(best, fm_now() - began);
    }
    return best;
}

/* Any finite numbers of either sign. */
static void fill_bf16(void *p, size_t bytes, int n_thread)
{
    uint32_t *w = p;
#pragma omp parallel for num_threads(n_thread) schedule(static)
    for (size_t i = 0; i < bytes / 4; i++) w[i] = fm_rng_u32(1, i) & 0xbfbfbfbf;
}

typedef struct {
    fm_stand *s;
    char     *weights;
    size_t    bytes, next;
    fm_act    x;
    fm_f32s   y;
    int       m, n, k;
} gemm_job;

/* Several small products make one go, so that a go is long enough to time. */
static int products_per_go(const gemm_job *j)
{
    const double flops = 2.0 * j->m * j->n * j->k, bytes = 2.0 * j->n * j->k;
    return 1 + (int)(2e8 / (flops + 16 * bytes));
}

static void run_gemm(void *ctx)
{
    gemm_job    *j    = ctx;
    const size_t each = (size_t)j->n * (size_t)j->k * 2;
    for (int i = products_per_go(j); i > 0; i--) {
        const fm_matrix w = {
            .n = j->n, .k = j->k, .dtype = FM_BF16, .panels = j->weights + j->next};
        j->s->run->ops->linear_f32(j->s->run, j->y, j->x, &w, j->m);
        j->next += each;
        if (j->next + each > j->bytes) j->next = 0;
    }
}

static void measure_one_gemm(const fm_measuring *m, gemm_job *j)
{
    const int     n_product = products_per_go(j);
    const fm_cost cost      = fm_cost_product(&m->roof, j->m, j->n, j->k);
    fm_result     x = {.group = "gemm", .unit = "GFLOP/s", .work = cost.flops * 1e-9};
    snprintf(x.name, sizeof x.name, "m=%d n=k=%d", j->m, j->n);
    x.seconds = fm_fastest(m, run_gemm, j) / n_product;
    x.bound   = fm_cost_seconds(cost, &m->roof);
    fm_report_add(m->report, &x);
}

fm_status fm_measure_gemm(const fm_measuring *m, fm_stand *s)
{
    static const int size[] = {1024, 4096};
    const int        most_m = m->quick ? 1024 : 4096, most_k = 4096;
    const int        gap   = s->run->act.h.stride - s->run->act.h.width; /* as rows lie in a pass */
    const size_t     arena = (size_t)512 << 20, x = (size_t)most_m * (size_t)(most_k + gap) * 2;
    const size_t     all = arena + 3 * x; /* y is f32 */
    char            *p   = NULL;
    if (!fm_wanted(m, "gemm")) return FM_OK;
    FM_TRY(fm_host_alloc((void **)&p, all, "matrices"));
    fill_bf16(p, all, s->limits.n_thread);
    for (int i = 0; i < 2; i++)
        for (int rows = 1; rows <= most_m; rows *= 4) {
            gemm_job j = {.s = s, .weights = p, .bytes = arena, .m = rows, .n = size[i],
                          .k = size[i], .x = {p + arena, size[i], size[i] + gap},
                          .y = {(float *)(p + arena + x), size[i]}};
            measure_one_gemm(m, &j);
        }
    fm_host_free(p, all);
    return FM_OK;
}

typedef struct {
    fm_stand *s;
    int       layer;
} layer_job;

static int next_layer(layer_job *j, int moe)
{
    do {
        j->layer = (j->layer + 1) % j->s->config.n_layer;
    } while (moe && !fm_layer_is_moe(&j->s->config, j->layer));
    return j->layer;
}

/* k different experts for every row, all equally likely. */
static void draw_experts(fm_stand *s, int rows)
{
    const fm_model_config *c = &s->config;
    uint64_t               n = 0;
    for (int i = 0; i < rows; i++) {
        int32_t *expert = s->run->act.route.expert + (size_t)i * (size_t)c->top_k;
        for (int k = 0; k < c->top_k;) {
            int seen  = 0;
            expert[k] = (int32_t)(fm_rng_u32(5, n++) % (uint32_t)c->n_expert);
            for (int q = 0; q < k; q++) seen |= expert[q] == expert[k];
            k += !seen;
        }
        for (int k = 0; k < c->top_k; k++)
            s->run->act.route.weight[i * c->top_k + k] = 1.0f / (float)c->top_k;
    }
}

static void run_experts(void *ctx)
{
    layer_job *j = ctx;
    fm_run    *r = j->s->run;
    fm_experts(r, r->act.y, r->act.h, r->act.route,
               j->s->weights.layer[next_layer(j, 1)].ffn.expert);
}

void fm_measure_experts(const fm_measuring *m, fm_stand *s, const char *heading)
{
    static const int rows[] = {1, 8, 32, 64, 256, 2048};
    if (!fm_wanted(m, "experts") || !s->config.n_expert) return;
    fill_bf16(s->run->act.h.data, (size_t)s->limits.max_rows * (size_t)s->run->act.h.stride * 2,
              s->limits.n_thread);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const fm_shape shape = {.n_seq = rows[i], .n_row = 1, .generated = 1};
        const fm_cost  cost  = fm_cost_experts(&m->roof, &s->config, rows[i]);
        layer_job      j     = {s, 0};
        fm_result      x     = {.group = heading, .unit = "GFLOP/s", .work = cost.flops * 1e-9};
        fm_stand_shape(s, &shape);
        draw_experts(s, rows[i]);
        snprintf(x.name, sizeof x.name, "%d tokens", rows[i]);
        x.seconds = fm_fastest(m, run_experts, &j);
        x.bound   = fm_cost_seconds(cost, &m->roof);
        fm_report_add(m->report, &x);
    }
}

static void run_attention(void *ctx)
{
    layer_job *j = ctx;
    fm_run    *r = j->s->run;
    const int  l = next_layer(j, 0);
    fm_attend(r, r->act.o, r->act.q, l, &j->s->weights.layer[l].attn);
}

static void measure_one_attention(const fm_measuring *m, fm_stand *s, const fm_shape *shape)
{
    const fm_cost cost = fm_cost_attention(&m->roof, &s->config, shape);
    layer_job     j    = {s, 0};
    fm_result     x    = {.group = shape->generated ? "attention, generated" : "attention, prompt",
                          .unit = "GFLOP/s", .work = cost.flops * 1e-9};
    fm_stand_shape(s, shape);
    if (shape->generated)
        snprintf(x.name, sizeof x.name, "%d x %d keys", shape->n_seq, shape->pos0 + 1);
    else snprintf(x.name, sizeof x.name, "%d tokens from %d", shape->n_row, shape->pos0);
    x.seconds = fm_fastest(m, run_attention, &j);
    x.bound   = fm_cost_seconds(cost, &m->roof);
    fm_report_add(m->report, &x);
}

void fm_measure_attention(const fm_measuring *m, fm_stand *s)
{
    static const fm_shape shape[] = {
        {.n_seq = 1, .n_row = 128},
        {.n_seq = 1, .n_row = 512},
        {.n_seq = 1, .n_row = 2048},
        {.n_seq = 1, .n_row = 2048, .pos0 = 14336},
        {.n_seq = 1, .n_row = 1, .pos0 = 1023, .generated = 1},
        {.n_seq = 1, .n_row = 1, .pos0 = 4095, .generated = 1},
        {.n_seq = 1, .n_row = 1, .pos0 = 16383, .generated = 1},
        {.n_seq = 8, .n_row = 1, .pos0 = 1023, .generated = 1},
        {.n_seq = 64, .n_row = 1, .pos0 = 127, .generated = 1},
        {.n_seq = 64, .n_row = 1, .pos0 = 1023, .generated = 1},
    };
    if (!fm_wanted(m, "attention")) return;
    fm_stand_fill(s, 64, 1024);
    fill_bf16(s->run->act.q.data, (size_t)s->limits.max_rows * (size_t)s->run->act.q.stride * 2,
              s->limits.n_thread);
    for (size_t i = 0; i < sizeof shape / sizeof shape[0]; i++)
        if (!m->quick || shape[i].pos0 < 8192) measure_one_attention(m, s, &shape[i]);
}

static void run_forward(void *ctx)
{
    fm_model_deepseek.forward(((layer_job *)ctx)->s->run);
}

static void measure_one_pass(const fm_measuring *m, fm_stand *s, const fm_shape *shape,
                             const char *title)
{
    const fm_bound bound = fm_bound_step(&s->config, shape, &m->roof);
    layer_job      j     = {s, 0};
    fm_profile     p, best = {0};
    double         least = HUGE_VAL;
    fm_stand_shape(s, shape);
    run_forward(&j);
    for (int i = 0; i < m->n_pass; i++) {
        fm_profile_begin(&p, s->run);
        const double began = fm_now();
        run_forward(&j);
        const double took = fm_now() - began;
        fm_profile_end(&p, s->run);
        if (took < least) least = took, best = p;
    }
    for (fm_op op = 0; op < FM_N_OP; op++) {
        fm_result x = {.group = title, .unit = "passes/s", .work = 1, .seconds = best.seconds[op],
                       .bound = bound.op[op]};
        snprintf(x.name, sizeof x.name, "%s", fm_op_name(op));
        if (x.seconds > 0) fm_report_add(m->report, &x);
    }
    fm_result all = {.group = title, .name = "all", .unit = "passes/s", .work = 1, .seconds = least,
                     .bound = bound.seconds};
    fm_report_add(m->report, &all);
}

void fm_measure_parts(const fm_measuring *m, fm_stand *s)
{
    static const fm_shape one   = {.n_seq = 1, .n_row = 1, .pos0 = 127, .generated = 1, .n_out = 1};
    static const fm_shape many  = {
         .n_seq = 64, .n_row = 1, .pos0 = 127, .generated = 1, .n_out = 64};
    static const fm_shape plain = {.n_seq = 1, .n_row = 2048, .n_out = 1};
    if (!fm_wanted(m, "parts")) return;
    fm_stand_fill(s, 64, 128);
    measure_one_pass(m, s, &one, "parts of decode 1");
    measure_one_pass(m, s, &many, "parts of decode 64");
    measure_one_pass(m, s, &plain, "parts of prefill 2048");
}
