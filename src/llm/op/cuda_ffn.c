/* SPDX-License-Identifier: Apache-2.0 */
/* Products: dense ones, and FFNs that every row goes through. */
#include "llm/kernel/cuda/experts.h"
#include "llm/kernel/cuda/rows.h"
#include "llm/op/cuda_internal.h"

void fm__cuda_product(fm_run *r, fm_cuda_linear_args a)
{
    fm_cuda_run *g = fm__gpu(r);
    if (r->fault != FM_OK || a.m == 0 || a.n == 0) return;
    a.n_sm = g->dev.n_sm;
    if (!a.n_batch) a.n_batch = 1;
    r->fault = fm_cuda_linear(g->lt, &a, g->stream);
}

static fm_cuda_linear_args dense(const uint16_t *x, const fm_matrix *w, void *y, int m)
{
    return (fm_cuda_linear_args){.x          = x,
                                 .w          = w->panels,
                                 .scale      = w->scale,
                                 .scale_row0 = w->scale_row0,
                                 .y          = y,
                                 .m          = m,
                                 .n          = w->n,
                                 .k          = w->k,
                                 .ldx        = w->k,
                                 .ldw        = w->k,
                                 .ldy        = w->n};
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

/* --- dense and shared FFNs ------------------------------------------------- */

/* The own channels of the middle, wherever they go: [n, I'] */
static void middle(fm_run *r, const uint16_t *h, const fm_mlp_weights *w, uint16_t *to, int n)
{
    const fm_cuda_run        *g     = fm__gpu(r);
    const int                 inter = w->gate_up.n / 2;
    const fm_cuda_swiglu_args gate  = {to, g->gate_up, 1, n, inter};
    fm_cuda_linear_args       up    = dense(h, &w->gate_up, to, n);
    if (r->fault != FM_OK || inter == 0) return;
    if (!g->lt || n <= FM_CUDA_LT_ROWS) {
        up.swiglu = 1;
        up.ldy    = inter;
        fm__cuda_product(r, up);
    } else if (w->gate_up.scale) {
        const fm_cuda_experts_args a = {
            .gate_up    = {w->gate_up.panels, w->gate_up.scale, w->gate_up.scale_row0},
            .h          = h,
            .middle     = to,
            .n_row      = n,
            .block_rows = fm_cuda_experts_block_rows(n, 1, 1),
            .D          = w->gate_up.k,
            .I          = inter,
            .n_sm       = g->dev.n_sm};
        r->fault = fm_cuda_experts_up(&a, g->stream);
    } else {
        up.y      = g->gate_up;
        up.y_bf16 = 1;
        fm__cuda_product(r, up);
        if (r->fault == FM_OK) r->fault = fm_cuda_swiglu(&gate, g->stream);
    }
}

static void mlp_rows(fm_run *r, const uint16_t *h, const fm_mlp_weights *w, float *y, int n)
{
    const fm_cuda_run     *g    = fm__gpu(r);
    const fm_share         me   = r->weights->shard.attn;
    const fm_columns       col  = {me.n, w->inter, FM_SHARD_CHANNELS, 1};
    const fm_cuda_exchange *x   = &g->exchange;
    const fm_cuda_pieces   own  = fm__cuda_pieces(col, sizeof *h, x->room, me.index, (size_t)n);
    middle(r, h, w, x->attn ? (uint16_t *)own.own : g->middle, n);
    if (x->attn) fm__cuda_gather(r, &own, x->attn, g->middle, n, 0);
    fm__cuda_product(r, dense(g->middle, &w->down, y, n));
}

void fm__cuda_mlp(fm_run *r, fm_f32s y, fm_act h, const fm_mlp_weights *w)
{
    fm_cuda_run *g = fm__gpu(r);
    if (g->pass.rides) {
        g->pass.riding = w;
        return;
    }
    for (int row = 0; r->fault == FM_OK && row < r->n_row; row += FM_CUDA_PASS_ROWS)
        mlp_rows(r, (const uint16_t *)h.data + (size_t)row * (size_t)h.width, w,
                 y.data + (size_t)row * (size_t)y.width,
                 fm__cuda_least(r->n_row - row, FM_CUDA_PASS_ROWS));
}
