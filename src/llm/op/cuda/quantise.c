/* SPDX-License-Identifier: Apache-2.0 */
/* Activations of E4M3 weights, quantised to E4M3 where the checkpoint wants it (W8A8).
 *
 *     h, cqn     by the norm that makes them, in the same launch, for all products that follow
 *     others     before the product
 *     experts    few pairs pick rows of h8; for many, they are copied in the order of the pairs
 *
 * A run made `immediate` quantises before each product: what a norm made may have been replaced. */
#include "llm/op/cuda/cuda_internal.h"

int fm__cuda_quantises(const fm_run *r, const fm_matrix *w)
{
    return r->config->fp8_activations && w->scale != NULL;
}

void fm__cuda_quantise(fm_run *r, fm_cuda_bytes to, const void *x, int k, int n_row)
{
    const fm_cuda_quantise_args a = {
        .x = x, .y = to.x, .scale = to.scale, .n_row = n_row, .n_x = n_row, .k = k, .ldx = k};
    if (r->fault == FM_OK) r->fault = fm_cuda_quantise(&a, fm__gpu(r)->stream);
}

fm_cuda_bytes fm__cuda_bytes_for(const fm_run *r, fm_act y)
{
    const fm_cuda_run *g = r->backend;
    if (r->config->fp8_activations && !g->immediate) {
        if (y.data == r->act.h.data) return g->h8;
        if (y.data == r->act.cqn.data) return g->cqn8;
    }
    return (fm_cuda_bytes){NULL, NULL};
}

/* Those of `all` from the row at x on; x NULL: x is no row of it. */
static fm_cuda_bytes part_of(fm_cuda_bytes all, fm_act of, const void *x, int n_row)
{
    const uint16_t *first = of.data, *at = x;
    const size_t    width = (size_t)of.width,
                 row      = width && at >= first ? (size_t)(at - first) / width : 0;
    if (!width || at < first || row >= (size_t)n_row) return (fm_cuda_bytes){NULL, NULL};
    return (fm_cuda_bytes){all.x + row * width,
                           all.scale + row * ((width + FM_CUDA_FP8_K - 1) / FM_CUDA_FP8_K)};
}

/* n_row rows of k at x: as the norm left them, or quantised now. */
fm_cuda_bytes fm__cuda_bytes_of(fm_run *r, const void *x, int k, int n_row)
{
    const fm_cuda_run *g = fm__gpu(r);
    fm_cuda_bytes      b = {NULL, NULL};
    if (!g->immediate) b = part_of(g->h8, r->act.h, x, r->n_row);
    if (!g->immediate && !b.x) b = part_of(g->cqn8, r->act.cqn, x, r->n_row);
    if (b.x) return b;
    fm__cuda_quantise(r, g->rows8, x, k, n_row);
    return g->rows8;
}

fm_cuda_fp8_args fm__cuda_bytes_args(const fm_run *r, fm_cuda_bytes x, const fm_matrix *w)
{
    const fm_cuda_run *g = r->backend;
    return (fm_cuda_fp8_args){.x          = x.x,
                              .x_scale    = x.scale,
                              .w          = w->panels,
                              .scale      = w->scale,
                              .scale_row0 = w->scale_row0,
                              .n          = w->n,
                              .k          = w->k,
                              .n_expert   = 1,
                              .n_sm       = g->dev.n_sm};
}

void fm__cuda_bytes_product(fm_run *r, fm_cuda_bytes x, const fm_matrix *w, void *y,
                            fm_cuda_fp8_out out, int n_row)
{
    fm_cuda_fp8_args a = fm__cuda_bytes_args(r, x, w);
    a.y                = y;
    a.ldy              = out == FM_CUDA_FP8_SWIGLU ? w->n / 2 : w->n;
    a.out              = out;
    a.n_row            = n_row;
    if (r->fault == FM_OK) r->fault = fm_cuda_fp8(&a, fm__gpu(r)->stream);
}
