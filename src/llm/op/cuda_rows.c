/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that take one row at a time, and routing. */
#include "llm/kernel/cuda/route.h"
#include "llm/kernel/cuda/rows.h"
#include "llm/op/cuda_internal.h"

/* Where each row's token will be cached. */
void fm__cuda_find_slots(fm_run *r)
{
    const fm_cuda_run       *g     = fm__gpu(r);
    const fm_cuda_pages_args pages = {.page     = g->page,
                                      .list     = g->there.page_list,
                                      .begin    = g->there.page_begin,
                                      .n_table  = g->pass.n_table,
                                      .max_page = g->max_page};
    const fm_cuda_slots_args slots = {.slot      = g->slot,
                                      .pos       = g->there.pos,
                                      .table     = g->there.table,
                                      .page      = g->page,
                                      .n_row     = r->n_row,
                                      .page_size = r->limits.page_size,
                                      .max_page  = g->max_page};
    if (fm__is_well(r, fm_cuda_pages(&pages, g->stream)))
        r->fault = fm_cuda_slots(&slots, g->stream);
}

void fm__cuda_embed(fm_run *r, fm_f32s x, const void *table)
{
    const fm_cuda_run *g = fm__gpu(r);
    fm_cuda_embed_args a = {.x     = x.data,
                            .table = table,
                            .token = g->there.token,
                            .n_row = r->n_row,
                            .width = x.width,
                            .vocab = r->config->vocab};
    fm__cuda_find_slots(r);
    if (r->fault == FM_OK && g->exchange.attn) { /* of words that came together */
        a.table = fm__cuda_gather_words(r, table);
        a.token = g->there.word_at;
        a.vocab = r->weights->shard.attn.n * r->n_row;
    }
    if (r->fault == FM_OK) r->fault = fm_cuda_embed(&a, g->stream);
}

static void norm(fm_run *r, fm_act y, fm_f32s x, const float *w, const int32_t *gather, int n_row)
{
    const fm_cuda_rmsnorm_args a = {.y      = y.data,
                                    .x      = x.data,
                                    .gather = gather,
                                    .w      = w,
                                    .eps    = r->config->eps,
                                    .n_row  = n_row,
                                    .width  = x.width};
    r->fault                     = fm_cuda_rmsnorm(&a, fm__gpu(r)->stream);
}

void fm__cuda_rmsnorm(fm_run *r, fm_act y, fm_f32s x, const float *w)
{
    norm(r, y, x, w, NULL, r->n_row);
}

void fm__cuda_gather_norm(fm_run *r, fm_act y, fm_f32s x, const float *w)
{
    norm(r, y, x, w, fm__gpu(r)->there.out, r->n_out);
}

void fm__cuda_rope_q(fm_run *r, fm_act q)
{
    const fm_cuda_run      *g = fm__gpu(r);
    const fm_model_config  *c = r->config;
    const fm_cuda_rope_args a = {.q           = q.data,
                                 .cos         = g->cos,
                                 .sin         = g->sin,
                                 .pos         = g->there.pos,
                                 .n_row       = r->n_row,
                                 .n_head      = r->weights->n_head,
                                 .nope        = c->nope,
                                 .rope        = c->rope,
                                 .interleaved = c->rope_interleave};
    if (a.n_head) r->fault = fm_cuda_rope(&a, g->stream);
}

void fm__cuda_store_kv(fm_run *r, int layer, fm_f32s ckv, const float *norm_w)
{
    const fm_cuda_run          *g = fm__gpu(r);
    const fm_model_config      *c = r->config;
    const fm_cuda_store_kv_args a = {.cache       = g->kv + (size_t)layer * g->kv_layer,
                                     .e4m3        = g->kv_scale != NULL,
                                     .slot_scale  = fm__cuda_kv_scale(r, layer),
                                     .ckv         = ckv.data,
                                     .norm        = norm_w,
                                     .cos         = g->cos,
                                     .sin         = g->sin,
                                     .pos         = g->there.pos,
                                     .slot        = g->slot,
                                     .eps         = c->eps,
                                     .n_row       = r->n_row,
                                     .kv_lora     = c->kv_lora,
                                     .rope        = c->rope,
                                     .width       = fm_kv_width(c),
                                     .interleaved = c->rope_interleave};
    r->fault                      = fm_cuda_store_kv(&a, g->stream);
}

void fm__cuda_route(fm_run *r, fm_routing out, fm_f32s score, const float *bias)
{
    const fm_model_config   *c = r->config;
    const fm_cuda_route_args a = {.expert       = out.expert,
                                  .weight       = out.weight,
                                  .score        = score.data,
                                  .bias         = bias,
                                  .n_live       = fm__gpu(r)->there.n_live,
                                  .n_row        = r->n_row,
                                  .n_expert     = c->n_expert,
                                  .top_k        = c->top_k,
                                  .n_group      = c->n_group,
                                  .top_group    = c->top_group,
                                  .norm_top_k   = c->norm_top_k,
                                  .routed_scale = c->routed_scale,
                                  .method       = c->route,
                                  .func         = c->score};
    r->fault                   = fm_cuda_route(&a, fm__gpu(r)->stream);
}
