/* SPDX-License-Identifier: Apache-2.0 */
/* Attention on the GPU: kernel/cuda/attention/mla.h has the forms, the products around
 * them are here. */
#include "llm/op/cuda/cuda_internal.h"

static fm_mla_cache cache_of(const fm_run *r, const fm_cuda_run *g, int layer)
{
    return (fm_mla_cache){.latent     = g->kv + (size_t)layer * g->kv_layer,
                          .e4m3       = g->kv_scale != NULL,
                          .slot_scale = fm__cuda_kv_scale(r, layer),
                          .width      = fm_kv_width(r->config),
                          .page_size  = r->limits.page_size,
                          .page       = g->page,
                          .max_page   = g->max_page};
}

/* --- absorbed ------------------------------------------------------------- */

/* Rows [first, end) of the generated ones. */
static fm_mla_rows rows_of(const fm_run *r, int first, int end)
{
    const fm_cuda_run *g   = r->backend;
    const int          few = fm__cuda_few_units(r->config, r->weights->n_head);
    const int          cut = g->pass.is_few ? few * FM_MLA_SLICES : 0;
    return (fm_mla_rows){.max_row  = end - first,
                         .max_unit = g->pass.is_few ? few : g->max_unit,
                         .part     = fm__cuda_part_keys(r->config),
                         .n_row    = g->there.n_gen, /* at least as many */
                         .n_key    = g->there.gen_keys + first,
                         .table    = g->there.gen_table + first,
                         .unit0    = g->unit0,
                         .unit     = g->unit,
                         .done     = g->done,
                         .n_done   = cut * ((r->weights->n_head + 15) / 16)};
}

/* As many rows from `first` on as there is room for their parts. */
static int wave_end(const fm_run *r, int first, int n_row)
{
    const fm_cuda_run *g      = r->backend;
    int                n_unit = 0, end = first;
    for (; end < n_row; end++) {
        n_unit += fm__cuda_parts(r->config, g->here.gen_keys[end]);
        if (n_unit > g->max_unit) break;
    }
    return end;
}

/* q' = [k_up^T q | qR], a product per head; qR is there since it was rotated */
static void absorb(fm_run *r, fm_act q, const fm_attn_weights *w)
{
    const fm_cuda_run     *g = fm__gpu(r);
    const fm_model_config *c = r->config;
    const int              H = r->weights->n_head, qk = c->nope + c->rope, width = fm_kv_width(c);
    fm__cuda_product(r, (fm_cuda_linear_args){.x        = q.data,
                                              .w        = w->k_up[0].panels,
                                              .y        = g->q_latent,
                                              .m        = fm__cuda_generated(r),
                                              .n        = c->kv_lora,
                                              .k        = c->nope,
                                              .ldx      = H * qk,
                                              .ldw      = c->kv_lora,
                                              .ldy      = H * width,
                                              .n_batch  = H,
                                              .x_stride = qk,
                                              .w_stride = (int64_t)(c->nope + c->v_dim) * c->kv_lora,
                                              .y_stride = width,
                                              .by_k     = 1,
                                              .y_bf16   = 1});
}

/* o = v_up z, a product per head */
static void values(fm_run *r, fm_act o, const fm_attn_weights *w)
{
    const fm_cuda_run     *g = fm__gpu(r);
    const fm_model_config *c = r->config;
    const int              H = r->weights->n_head;
    fm__cuda_product(r, (fm_cuda_linear_args){.x        = g->z_latent,
                                              .w        = w->v_up[0].panels,
                                              .y        = o.data,
                                              .m        = fm__cuda_generated(r),
                                              .n        = c->v_dim,
                                              .k        = c->kv_lora,
                                              .ldx      = H * c->kv_lora,
                                              .ldw      = c->kv_lora,
                                              .ldy      = o.width,
                                              .n_batch  = H,
                                              .x_stride = c->kv_lora,
                                              .w_stride = (int64_t)(c->nope + c->v_dim) * c->kv_lora,
                                              .y_stride = c->v_dim,
                                              .y_bf16   = 1});
}

/* The list of parts is the same for all layers if one wave has all rows. It may be read without
 * waiting: the product that made the queries waited for the kernels that made the list and wrote
 * the cache. */
static fm_status attend_wave(fm_run *r, int layer, int first, int end)
{
    fm_cuda_run *g     = fm__gpu(r);
    const size_t H     = (size_t)r->weights->n_head;
    const int    whole = first == 0 && end == fm__cuda_generated(r);
    const fm_mla_absorbed_args a = {
        .rows     = rows_of(r, first, end),
        .cache    = cache_of(r, g, layer),
        .n_head   = r->weights->n_head,
        .kv_lora  = r->config->kv_lora,
        .scale    = fm_attention_scale(r->config),
        .q        = g->q_latent + (size_t)first * H * (size_t)fm_kv_width(r->config),
        .part_z   = g->part_z,
        .part_sum = g->part_sum,
        .few      = g->pass.is_few,
        .score    = g->score,
        .z        = g->z_latent + (size_t)first * H * (size_t)r->config->kv_lora,
        .settled  = whole && g->pass.is_planned,
        .n_sm     = g->dev.n_sm};
    if (!whole || !g->pass.is_planned) FM_TRY(fm_cuda_mla_plan(&a.rows, g->stream));
    g->pass.is_planned = whole;
    return fm_cuda_mla_absorbed(&a, g->stream);
}

static void attend_generated(fm_run *r, fm_act o, fm_act q, int layer, const fm_attn_weights *w)
{
    absorb(r, q, w);
    fm__cuda_side_join(r); /* what attention reads is cached */
    for (int first = 0, end; r->fault == FM_OK && first < fm__cuda_generated(r); first = end) {
        end      = wave_end(r, first, fm__cuda_generated(r));
        r->fault = attend_wave(r, layer, first, end);
    }
    values(r, o, w);
}

/* --- expanded ------------------------------------------------------------- */

static fm_mla_spans spans_of(const fm_cuda_run *g, int key_begin, int key_end)
{
    return (fm_mla_spans){.max_span  = g->pass.n_prompt_span,
                          .max_tile  = g->pass.n_tile,
                          .n_span    = g->there.n_span,
                          .span      = g->there.span,
                          .key_begin = key_begin,
                          .key_end   = key_end,
                          .key0      = g->key0,
                          .n_tile    = g->n_tile,
                          .tile      = g->tile};
}

/* Keys in [begin, end) of all prompt spans. */
static int keys_between(const fm_cuda_run *g, int begin, int end)
{
    int n = 0;
    for (int k = 0; k < g->pass.n_prompt_span; k++) {
        const fm_mla_span *s    = &g->here.span[k];
        const int          last = fm__cuda_least(s->pos0 + s->n_row, end);
        if (last > begin) n += last - begin;
    }
    return n;
}

/* The end of a pass over keys that begins at `begin`: as many as fit. */
static int pass_end(const fm_cuda_run *g, int begin, int last)
{
    int blocks = (last - begin + FM_MLA_BLOCK_KEYS - 1) / FM_MLA_BLOCK_KEYS;
    while (keys_between(g, begin, begin + blocks * FM_MLA_BLOCK_KEYS) > g->max_key)
        blocks = (blocks + 1) / 2;
    return begin + blocks * FM_MLA_BLOCK_KEYS;
}

/* latents -> keys and values of every head */
static void expand(fm_run *r, const fm_attn_weights *w, int n_key)
{
    const fm_cuda_run     *g = fm__gpu(r);
    const fm_model_config *c = r->config;
    const int              n = r->weights->n_head * (c->nope + c->v_dim);
    fm__cuda_product(r, (fm_cuda_linear_args){.x      = g->latent,
                                              .w      = w->k_up[0].panels,
                                              .y      = g->key,
                                              .m      = n_key,
                                              .n      = n,
                                              .k      = c->kv_lora,
                                              .ldx    = fm_kv_width(c),
                                              .ldw    = c->kv_lora,
                                              .ldy    = n,
                                              .y_bf16 = 1});
}

static void attend_keys(fm_run *r, fm_act o, fm_act q, int layer, const fm_attn_weights *w,
                        int begin, int end, int last)
{
    fm_cuda_run           *g     = fm__gpu(r);
    const fm_model_config *c     = r->config;
    const int              each  = c->nope + c->v_dim, is_one = begin == 0 && end >= last;
    const fm_mla_spans     spans = spans_of(g, begin, end);
    const fm_mla_gather_args bring = {spans, cache_of(r, g, layer), g->max_key, g->latent};
    const fm_mla_expanded_args a     = {.spans       = spans,
                                    .n_head      = r->weights->n_head,
                                    .nope        = c->nope,
                                    .rope        = c->rope,
                                    .v_dim       = c->v_dim,
                                    .scale       = fm_attention_scale(c),
                                    .q           = q.data,
                                    .key         = g->key,
                                    .value       = g->key + c->nope,
                                    .key_rope    = g->latent + c->kv_lora,
                                    .key_stride  = (int64_t)r->weights->n_head * each,
                                    .head_stride = each,
                                    .rope_stride = fm_kv_width(c),
                                    .state_o     = is_one ? NULL : g->state_o,
                                    .state_sum   = g->state_sum,
                                    .o           = o.data};
    if (!is_one || !g->pass.is_tiled) r->fault = fm_cuda_mla_tiles(&spans, g->stream);
    g->pass.is_tiled = is_one; /* once for all layers */
    if (r->fault == FM_OK) r->fault = fm_cuda_mla_gather(&bring, g->stream);
    expand(r, w, keys_between(g, begin, end));
    if (r->fault == FM_OK) r->fault = fm_cuda_mla_expanded(&a, g->stream);
}

static void attend_prompt(fm_run *r, fm_act o, fm_act q, int layer, const fm_attn_weights *w)
{
    const fm_cuda_run *g    = fm__gpu(r);
    int                last = 0;
    for (int k = 0; k < g->pass.n_prompt_span; k++) {
        const fm_mla_span *s = &g->here.span[k];
        if (s->pos0 + s->n_row > last) last = s->pos0 + s->n_row;
    }
    for (int begin = 0; r->fault == FM_OK && begin < last;) {
        const int end = pass_end(g, begin, last);
        attend_keys(r, o, q, layer, w, begin, end, last);
        begin = end;
    }
}

void fm__cuda_attend(fm_run *r, fm_act o, fm_act q, int layer, const fm_attn_weights *w)
{
    const fm_cuda_run *g = fm__gpu(r);
    if (r->weights->n_head == 0 || !fm__cuda_generated(r)) fm__cuda_side_join(r);
    if (r->weights->n_head == 0) return;
    if (r->fault == FM_OK && fm__cuda_generated(r)) attend_generated(r, o, q, layer, w);
    if (r->fault == FM_OK && g->pass.n_prompt_span) attend_prompt(r, o, q, layer, w);
}
