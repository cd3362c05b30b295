/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that take one row at a time, and routing. */
#include "llm/kernel/cuda/route/route.h"
#include "llm/kernel/cuda/rows/rows.h"
#include "llm/kernel/cuda/variants.h"
#include "llm/op/cuda/cuda_internal.h"

/* Where each row's token will be cached; once in a pass. */
void fm__cuda_find_slots(fm_run *r)
{
    fm_cuda_run             *g     = fm__gpu(r);
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
    if (g->pass.has_slots) return;
    g->pass.has_slots = 1;
    if (fm__is_well(r, fm_cuda_pages(&pages, g->stream)))
        r->fault = fm_cuda_slots(&slots, g->stream);
}

void fm__cuda_embed(fm_run *r, fm_f32s x, const void *table)
{
    const fm_cuda_run *g = fm__gpu(r);
    fm_cuda_embed_args a = {.x      = x.data,
                            .table  = table,
                            .token  = g->there.token,
                            .n_row  = r->n_row,
                            .width  = x.width,
                            .vocab  = r->config->vocab,
                            .chosen = fm__cuda_chosen(r)};
    fm__cuda_find_slots(r);
    if (r->fault == FM_OK && g->exchange.attn) { /* of words that came together */
        a.table  = fm__cuda_gather_words(r, table);
        a.token  = g->there.word_at;
        a.vocab  = g->pass.n_word;
        a.chosen = NULL;
    }
    if (r->fault == FM_OK) r->fault = fm_cuda_embed(&a, g->stream);
}

/* --- norms ------------------------------------------------------------------ */

/* A norm has one thread block for a row, the sum alone several for a wide one: it is faster where
 * there are few. */
enum { WIDE_ROW = 2048, FEW_ROWS = 256 };

static int suits_norm(const fm_cuda_combine_args *a)
{
    return a->width <= (a->n_row > FEW_ROWS ? FM_CUDA_NORM_EXPERTS : WIDE_ROW);
}

/* Only if one pass has all rows: the next one overwrites pair_out. */
fm_status fm__cuda_combine_later(fm_run *r, const fm_cuda_combine_args *a)
{
    fm_cuda_run *g = fm__gpu(r);
    if (g->immediate || a->n_row != r->n_row || !suits_norm(a) ||
        fm_cuda_leaves_out(FM_VARIANT_NORM_SUM))
        return fm_cuda_combine(a, g->stream);
    g->pass.experts = *a;
    return FM_OK;
}

void fm__cuda_add_later(fm_run *r, fm_f32s x, fm_f32s y)
{
    fm_cuda_run *g = fm__gpu(r);
    if (g->pass.sum.x || (g->pass.experts.y && g->pass.experts.y != y.data)) fm__cuda_settle(r);
    g->pass.sum = (fm_cuda_add_args){x.data, y.data, r->n_row, x.width};
    if (g->immediate) fm__cuda_settle(r);
}

void fm__cuda_settle(fm_run *r)
{
    fm_cuda_run  *g = fm__gpu(r);
    fm_cuda_pass *p = &g->pass;
    if (p->experts.y && r->fault == FM_OK) r->fault = fm_cuda_combine(&p->experts, g->stream);
    if (p->sum.x && r->fault == FM_OK) r->fault = fm_cuda_add(&p->sum, g->stream);
    p->experts.y = NULL;
    p->sum.x     = NULL;
}

/* A deferred sum x += y, and the deferred sum over experts, are computed by the same kernel. */
static void norm(fm_run *r, fm_act y, fm_f32s x, const float *w, const int32_t *gather, int n_row)
{
    fm_cuda_run         *g = fm__gpu(r);
    fm_cuda_pass        *p = &g->pass;
    fm_cuda_rmsnorm_args a = {.y      = y.data,
                              .x      = x.data,
                              .gather = gather,
                              .w      = w,
                              .eps    = r->config->eps,
                              .n_row  = n_row,
                              .width  = x.width};
    const fm_cuda_bytes  bytes = gather ? (fm_cuda_bytes){NULL, NULL} : fm__cuda_bytes_for(r, y);
    a.y8       = bytes.x;
    a.y8_scale = bytes.scale;
    if (p->sum.x == x.data) {
        a.add = p->sum.y;
        if (p->experts.y) a.experts = p->experts;
        p->experts.y = NULL;
        p->sum.x     = NULL;
    }
    r->fault = fm_cuda_rmsnorm(&a, g->stream);
}

void fm__cuda_rmsnorm(fm_run *r, fm_act y, fm_f32s x, const float *w)
{
    norm(r, y, x, w, NULL, r->n_row);
    if (y.data == r->act.h.data) fm__cuda_side_note(r);
}

/* The last norm of x: the residual sum itself need not be stored. */
void fm__cuda_gather_norm(fm_run *r, fm_act y, fm_f32s x, const float *w)
{
    norm(r, y, x, w, fm__gpu(r)->there.out, r->n_out);
}

/* --- rotation and cache ------------------------------------------------------ */

static fm_cuda_rope_args queries(fm_run *r, uint16_t *q)
{
    const fm_cuda_run     *g = fm__gpu(r);
    const fm_model_config *c = r->config;
    return (fm_cuda_rope_args){.q           = q,
                               .cos         = g->cos,
                               .sin         = g->sin,
                               .pos         = g->there.pos,
                               .n_row       = r->weights->n_head ? r->n_row : 0,
                               .n_head      = r->weights->n_head,
                               .nope        = c->nope,
                               .rope        = c->rope,
                               .interleaved = c->rope_interleave,
                               .latent      = g->q_latent,
                               .n_latent    = fm__cuda_generated(r),
                               .kv_lora     = c->kv_lora,
                               .width       = fm_kv_width(c)};
}

/* Queries that wait for latents are rotated where these are cached. */
void fm__cuda_rope_q(fm_run *r, fm_act q)
{
    const fm_cuda_rope_args a = queries(r, q.data);
    fm_cuda_run            *g = fm__gpu(r);
    if (g->pass.queries.x)
        g->pass.rotation = a;
    else if (a.n_row)
        r->fault = fm_cuda_rope(&a, g->stream);
}

static fm_status store(fm_cuda_run *g, const fm_cuda_store_kv_args *a)
{
    const fm_cuda_rope_args q = g->pass.rotation;
    g->pass.rotation.q        = NULL;
    return q.q ? fm_cuda_rope_and_store(&q, a, g->stream) : fm_cuda_store_kv(a, g->stream);
}

/* Attention of more heads may read the cache before it waits for the kernel before it (mla.h). */
enum { PATIENT_HEADS = 32 };

void fm__cuda_store_kv(fm_run *r, int layer, fm_f32s ckv, const float *norm_w)
{
    fm_cuda_run                *g = fm__gpu(r);
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
    const int aside = g->side.is_open && r->weights->n_head <= PATIENT_HEADS;
    if (aside) fm__cuda_side_again(r);
    else       fm__cuda_side_join(r);
    if (r->fault == FM_OK) r->fault = fm__cuda_copies_layer(r, layer);
    if (r->fault == FM_OK) r->fault = store(g, &a);
    if (aside) fm__cuda_side_close(r);
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
    r->fault = fm__cuda_sorts_along(r) ? fm__cuda_route_and_sort(r, &a)
                                       : fm_cuda_route(&a, fm__gpu(r)->stream);
    fm__gpu(r)->pass.is_routed = 1;
}
