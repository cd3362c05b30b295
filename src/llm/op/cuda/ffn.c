/* SPDX-License-Identifier: Apache-2.0 */
/* Products: dense ones, and FFNs that every row goes through. */
#include "llm/kernel/cuda/experts/experts.h"
#include "llm/op/cuda/cuda_internal.h"

void fm__cuda_product(fm_run *r, fm_cuda_linear_args a)
{
    fm_cuda_run *g = fm__gpu(r);
    if (r->fault != FM_OK || a.m == 0 || a.n == 0) return;
    a.n_sm = g->dev.n_sm;
    if (!a.n_batch) a.n_batch = 1;
    r->fault = fm_cuda_linear(g->lt, &a, g->stream);
}

static fm_cuda_linear_args dense(fm_run *r, const uint16_t *x, const fm_matrix *w, void *y,
                                 int m)
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
                                 .ldy        = w->n,
                                 .n_batch    = 1,
                                 .n_sm       = fm__gpu(r)->dev.n_sm};
}

/* y = x w^T, out F32 or BF16. */
static void product(fm_run *r, const void *x, const fm_matrix *w, void *y, fm_cuda_fp8_out out, int n)
{
    fm_cuda_linear_args a = dense(r, x, w, y, n);
    a.y_bf16              = out == FM_CUDA_FP8_BF16;
    if (r->fault != FM_OK || n == 0 || w->n == 0) return;
    if (fm__cuda_quantises(r, w))
        fm__cuda_bytes_product(r, fm__cuda_bytes_of(r, x, w->k, n), w, y, out, n);
    else
        fm__cuda_product(r, a);
}

/* --- queries and latents --------------------------------------------------- */

/* Both come from the same rows.  Few rows go through one launch, for which queries and their rotation
 * wait; of more, latents go beside. */
static int wait_for_latents(fm_run *r, const fm_cuda_linear_args *a, const fm_matrix *w)
{
    fm_cuda_run *g = fm__gpu(r);
    if (g->immediate || r->fault != FM_OK || a->m == 0 || a->n == 0 || a->y != r->act.q.data ||
        a->x != r->act.h.data || fm__cuda_quantises(r, w) || !fm_cuda_linear_suits_two(a, a))
        return 0;
    g->pass.queries = *a;
    return 1;
}

static void run_queries(fm_run *r)
{
    fm_cuda_run  *g = fm__gpu(r);
    fm_cuda_pass *p = &g->pass;
    fm__cuda_product(r, p->queries);
    if (p->rotation.q && r->fault == FM_OK) r->fault = fm_cuda_rope(&p->rotation, g->stream);
    p->queries.x  = NULL;
    p->rotation.q = NULL;
}

static int run_with_queries(fm_run *r, const fm_cuda_linear_args *a, const fm_matrix *w)
{
    fm_cuda_run         *g = fm__gpu(r);
    fm_cuda_linear_args *q = &g->pass.queries;
    if (!q->x) return 0;
    if (a->n == 0 || fm__cuda_quantises(r, w) || !fm_cuda_linear_suits_two(q, a)) {
        run_queries(r);
        return 0;
    }
    if (r->fault == FM_OK) r->fault = fm_cuda_linear_two(q, a, g->stream);
    q->x = NULL;
    return 1;
}

/* --- dense products -------------------------------------------------------- */

void fm__cuda_linear_f32(fm_run *r, fm_f32s y, fm_act x, const fm_matrix *w, int n_row)
{
    FM_BUG_UNLESS(x.width == w->k && y.width == w->n);
    const fm_cuda_linear_args a = dense(r, x.data, w, y.data, n_row);
    if (run_with_queries(r, &a, w)) return;
    const int aside = y.data == r->act.ckv.data && fm__cuda_side_open(r);
    product(r, x.data, w, y.data, FM_CUDA_FP8_F32, n_row);
    if (aside) fm__cuda_side_close(r); /* queries come from the same h */
}

void fm__cuda_linear_act(fm_run *r, fm_act y, fm_act x, const fm_matrix *w, int n_row)
{
    FM_BUG_UNLESS(x.width == w->k && y.width == w->n);
    fm_cuda_linear_args a = dense(r, x.data, w, y.data, n_row);
    a.y_bf16              = 1;
    if (!wait_for_latents(r, &a, w)) product(r, x.data, w, y.data, FM_CUDA_FP8_BF16, n_row);
}

/* --- dense and shared FFNs ------------------------------------------------- */

/* Gate, up and SwiGLU for many rows: the experts' tiles, one expert for all. */
static void middle_of_many(fm_run *r, const uint16_t *h, const fm_matrix *w, uint16_t *to, int n)
{
    const fm_cuda_experts_args a = {
        .gate_up    = {w->panels, w->scale, w->scale_row0},
        .h          = h,
        .middle     = to,
        .n_row      = n,
        .block_rows = fm_cuda_experts_block_rows(n, 1, 0),
        .D          = w->k,
        .I          = w->n / 2,
        .n_sm       = fm__gpu(r)->dev.n_sm};
    r->fault = fm_cuda_experts_up(&a, fm__gpu(r)->stream);
}

/* Tiles for few rows also serve more of them, until the experts' tiles, 128 x 64,
 * give half of the multiprocessors one; as measured on an H200. */
static int suits_few(const fm_matrix *w, int n, int n_sm)
{
    enum { FEW = 32, MOST = 128 };
    const int64_t tasks = (int64_t)((w->n + 127) / 128) * ((n + 63) / 64);
    return n <= FEW || (n <= MOST && 2 * tasks <= n_sm);
}

/* The own channels of the middle, wherever they go: [n, I'] */
static void middle(fm_run *r, const uint16_t *h, const fm_mlp_weights *w, uint16_t *to, int n)
{
    fm_cuda_linear_args up = dense(r, h, &w->gate_up, to, n);
    if (r->fault != FM_OK || up.n == 0) return;
    if (fm__cuda_quantises(r, &w->gate_up)) {
        fm__cuda_bytes_product(r, fm__cuda_bytes_of(r, h, up.k, n), &w->gate_up, to,
                               FM_CUDA_FP8_SWIGLU, n);
        return;
    }
    if (!up.scale && !suits_few(&w->gate_up, n, fm__gpu(r)->dev.n_sm)) {
        middle_of_many(r, h, &w->gate_up, to, n);
        return;
    }
    up.swiglu = 1;
    up.ldy    = up.n / 2;
    fm__cuda_product(r, up);
}

static void mlp_rows(fm_run *r, const uint16_t *h, const fm_mlp_weights *w, float *y, int n)
{
    const fm_cuda_run     *g    = fm__gpu(r);
    const fm_share         me   = r->weights->shard.attn;
    const fm_columns       col  = fm__channels_by(me, w->inter);
    const fm_cuda_exchange *x   = &g->exchange;
    const fm_cuda_pieces   own  = fm__cuda_pieces(col, sizeof *h, x->room, me.index, (size_t)n);
    middle(r, h, w, x->attn ? (uint16_t *)own.own : g->middle, n);
    if (x->attn) fm__cuda_gather(r, &own, x->attn, g->middle, n, 0);
    product(r, g->middle, &w->down, y, FM_CUDA_FP8_F32, n);
}

static void mlp_beside(fm_run *r, const uint16_t *h, const fm_mlp_weights *w, float *y)
{
    uint16_t *to = fm__gpu(r)->side.middle;
    middle(r, h, w, to, r->n_row);
    if (fm__cuda_quantises(r, &w->down)) {
        fm__cuda_quantise(r, fm__gpu(r)->side.middle8, to, w->down.k, r->n_row);
        fm__cuda_bytes_product(r, fm__gpu(r)->side.middle8, &w->down, y, FM_CUDA_FP8_F32, r->n_row);
    } else {
        fm__cuda_product(r, dense(r, to, &w->down, y, r->n_row));
    }
    fm__cuda_side_close(r);
}

void fm__cuda_mlp(fm_run *r, fm_f32s y, fm_act h, const fm_mlp_weights *w)
{
    if (fm__gpu(r)->pass.is_routed && fm__cuda_side_open(r)) { /* experts come next */
        mlp_beside(r, h.data, w, y.data);
        return;
    }
    for (int row = 0; r->fault == FM_OK && row < r->n_row; row += FM_CUDA_PASS_ROWS)
        mlp_rows(r, (const uint16_t *)h.data + (size_t)row * (size_t)h.width, w,
                 y.data + (size_t)row * (size_t)y.width,
                 fm__cuda_least(r->n_row - row, FM_CUDA_PASS_ROWS));
}
