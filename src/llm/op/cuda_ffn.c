/* SPDX-License-Identifier: Apache-2.0 */
/* Products: dense ones, FFNs and routed experts. */
#include "llm/kernel/cuda/experts.h"
#include "llm/kernel/cuda/route.h"
#include "llm/kernel/cuda/rows.h"
#include "llm/op/cuda_internal.h"

void fm__cuda_product(fm_run *r, fm_cuda_linear_args a)
{
    fm_cuda_run *g = fm__gpu(r);
    if (r->fault != FM_OK || a.m == 0) return;
    a.n_sm = g->dev.n_sm;
    if (!a.n_batch) a.n_batch = 1;
    r->fault = fm_cuda_linear(g->lt, &a, g->stream);
}

static fm_cuda_linear_args dense(const uint16_t *x, const fm_matrix *w, void *y, int m)
{
    return (fm_cuda_linear_args){.x     = x,
                                 .w     = w->panels,
                                 .scale = w->scale,
                                 .y     = y,
                                 .m     = m,
                                 .n     = w->n,
                                 .k     = w->k,
                                 .ldx   = w->k,
                                 .ldw   = w->k,
                                 .ldy   = w->n};
}

void fm__cuda_linear_f32(fm_run *r, fm_f32s y, fm_act x, const fm_matrix *w, int n_row)
{
    FM_BUG_UNLESS(x.width == w->k && y.width == w->n);
    fm__cuda_product(r, dense(x.data, w, y.data, n_row));
}

void fm__cuda_linear_act(fm_run *r, fm_act y, fm_act x, const fm_matrix *w, int n_row)
{
    FM_BUG_UNLESS(x.width == w->k && y.width == w->n);
    fm_cuda_linear_args a = dense(x.data, w, y.data, n_row);
    a.y_bf16              = 1;
    fm__cuda_product(r, a);
}

static fm_cuda_experts_args tiles(const fm_cuda_run *g, const fm_mlp_weights *w, const uint16_t *h,
                                  float *out)
{
    return (fm_cuda_experts_args){.gate_up  = {w->gate_up.panels, w->gate_up.scale},
                                  .down     = {w->down.panels, w->down.scale},
                                  .h        = h,
                                  .middle   = g->middle,
                                  .pair_out = out,
                                  .D        = w->gate_up.k,
                                  .I        = w->inter,
                                  .n_sm     = g->dev.n_sm};
}

static fm_status run_tiles(const fm_cuda_run *g, const fm_cuda_experts_args *a)
{
    FM_TRY(fm_cuda_experts_up(a, g->stream));
    return fm_cuda_experts_down(a, g->stream);
}

static void mlp_by_library(fm_run *r, const uint16_t *h, const fm_mlp_weights *w, float *y, int n)
{
    const fm_cuda_run        *g    = fm__gpu(r);
    const fm_cuda_swiglu_args gate = {g->middle, g->gate_up, 1, n, w->inter};
    fm_cuda_linear_args       up   = dense(h, &w->gate_up, g->gate_up, n);
    up.y_bf16                      = 1;
    fm__cuda_product(r, up);
    if (r->fault == FM_OK) r->fault = fm_cuda_swiglu(&gate, g->stream);
    fm__cuda_product(r, dense(g->middle, &w->down, y, n));
}

void fm__cuda_mlp(fm_run *r, fm_f32s y, fm_act h, const fm_mlp_weights *w)
{
    const fm_cuda_run *g          = fm__gpu(r);
    const int          by_library = g->lt && !w->gate_up.scale && r->n_row > FM_CUDA_LT_ROWS;
    for (int row = 0; r->fault == FM_OK && row < r->n_row; row += FM_CUDA_PASS_ROWS) {
        const int       n  = fm__cuda_least(r->n_row - row, FM_CUDA_PASS_ROWS);
        const uint16_t *in = (const uint16_t *)h.data + (size_t)row * (size_t)h.width;
        float          *to = y.data + (size_t)row * (size_t)y.width;
        if (by_library) {
            mlp_by_library(r, in, w, to, n);
            continue;
        }
        fm_cuda_experts_args a = tiles(g, w, in, to);
        a.n_row                = n;
        a.block_rows           = fm_cuda_experts_block_rows(n, 1, w->gate_up.scale != NULL);
        a.max_block            = (n + a.block_rows - 1) / a.block_rows;
        r->fault               = run_tiles(g, &a);
    }
}

/* One pass of rows through their experts; pairs are sorted on the device. */
static fm_status route_pass(const fm_run *r, const fm_cuda_run *g, fm_f32s y, fm_act h,
                            fm_routing rt, const fm_mlp_weights *expert, int accumulate, int row,
                            int n)
{
    const fm_model_config *c     = r->config;
    const size_t           at    = (size_t)row * (size_t)c->top_k;
    const int              width = fm_cuda_experts_block_rows(n * c->top_k, c->n_expert,
                                                              expert->gate_up.scale != NULL);
    const fm_cuda_pairs_args pairs = {.expert     = rt.expert + at,
                                      .count      = g->count,
                                      .offset     = g->offset,
                                      .pair_row   = g->pair_row,
                                      .pair_of    = g->pair_of,
                                      .block      = g->block,
                                      .n_block    = g->n_block,
                                      .n_row      = n,
                                      .top_k      = c->top_k,
                                      .n_expert   = c->n_expert,
                                      .block_rows = width};
    const fm_cuda_combine_args sum = {.y          = y.data + (size_t)row * (size_t)y.width,
                                      .pair_out   = g->pair_out,
                                      .pair_of    = g->pair_of,
                                      .weight     = rt.weight + at,
                                      .accumulate = accumulate,
                                      .n_row      = n,
                                      .top_k      = c->top_k,
                                      .width      = y.width};
    fm_cuda_experts_args a =
        tiles(g, expert, (const uint16_t *)h.data + (size_t)row * (size_t)h.width, g->pair_out);
    a.pair_row   = g->pair_row;
    a.block      = g->block;
    a.n_block    = g->n_block;
    a.block_rows = width;
    a.max_block  = n * c->top_k / width + c->n_expert;

    FM_TRY(fm_cuda_pairs(&pairs, g->stream));
    FM_TRY(run_tiles(g, &a));
    return fm_cuda_combine(&sum, g->stream);
}

void fm__cuda_experts(fm_run *r, fm_f32s y, fm_act h, fm_routing rt, const fm_mlp_weights *expert,
                      int accumulate)
{
    const fm_cuda_run *g = fm__gpu(r);
    for (int row = 0; r->fault == FM_OK && row < r->n_row; row += FM_CUDA_PASS_ROWS)
        r->fault = route_pass(r, g, y, h, rt, expert, accumulate, row,
                              fm__cuda_least(r->n_row - row, FM_CUDA_PASS_ROWS));
}
