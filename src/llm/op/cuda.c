/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU back end: its memory, carved once, and its table of ops. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "llm/kernel/cuda/experts.h"
#include "llm/op/cuda_internal.h"

static size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t pass_rows(const fm_run_limits *lim)
{
    return (size_t)fm__cuda_least(lim->max_rows, FM_CUDA_PASS_ROWS);
}

static size_t widest_mlp(const fm_model_config *c, const fm_shard *shard)
{
    size_t w = (size_t)(c->n_shared * c->moe_inter);
    for (int l = shard->layer.begin; l < shard->layer.end; l++)
        if (!fm_layer_is_moe(c, l)) w = most(w, (size_t)c->dense_inter);
    return w;
}

/* --- carving: on a counting slab this is the plan -------------------------- */

static void carve_acts(fm_acts *a, const fm_model_config *c, const fm_run_limits *lim, fm_slab *s)
{
    const size_t T = (size_t)lim->max_rows, out = (size_t)lim->max_out;
#define F32S(rows, n) ((fm_f32s){fm_slab_take(s, (rows) * (size_t)(n) * sizeof(float)), (n)})
#define ACT(rows, n)  ((fm_act){fm_slab_take(s, (rows) * (size_t)(n) * sizeof(uint16_t)), (n)})
    a->x      = F32S(T, c->hidden);
    a->h      = ACT(T, c->hidden);
    a->cq     = F32S(T, c->q_lora);
    a->cqn    = ACT(T, c->q_lora);
    a->q      = ACT(T, c->n_head * (c->nope + c->rope));
    a->ckv    = F32S(T, c->kv_lora + c->rope);
    a->o      = ACT(T, c->n_head * c->v_dim);
    a->y      = F32S(T, c->hidden);
    a->score  = F32S(T, c->n_expert);
    a->hl     = ACT(out, c->hidden);
    a->logits = F32S(out, c->vocab);
#undef F32S
#undef ACT
    a->route.expert = fm_slab_take(s, T * (size_t)c->top_k * sizeof(int32_t));
    a->route.weight = fm_slab_take(s, T * (size_t)c->top_k * sizeof(float));
    a->o_all        = a->o;
    a->h_all        = a->h;
    a->route_all    = a->route;
}

static void carve_lists(fm_cuda_lists *l, const fm_cuda_run *g, const fm_run_limits *lim, fm_slab *s)
{
    const size_t T = (size_t)lim->max_rows, one = sizeof(int32_t);
    l->token     = fm_slab_take(s, T * one);
    l->pos       = fm_slab_take(s, T * one);
    l->table     = fm_slab_take(s, T * one);
    l->out       = fm_slab_take(s, (size_t)lim->max_out * one);
    l->gen_keys  = fm_slab_take(s, T * one);
    l->gen_table = fm_slab_take(s, T * one);
    l->n_live    = fm_slab_take(s, one);
    l->n_gen     = fm_slab_take(s, one);
    l->n_span    = fm_slab_take(s, one);
    l->span      = fm_slab_take(s, (size_t)g->max_span * sizeof *l->span);
    l->page_begin = fm_slab_take(s, ((size_t)g->max_span + 1) * one);
    l->page_list  = fm_slab_take(s, (size_t)g->max_span * (size_t)g->max_page * one);
}

static void carve_absorbed(fm_cuda_run *g, const fm_model_config *c, const fm_run_limits *lim,
                           fm_slab *s)
{
    const size_t T = (size_t)lim->max_rows, H = (size_t)c->n_head, L = (size_t)c->kv_lora;
    const size_t unit = (size_t)g->max_unit;
    g->q_latent       = fm_slab_take(s, T * H * (size_t)fm_kv_width(c) * sizeof(uint16_t));
    g->z_latent       = fm_slab_take(s, T * H * L * sizeof(uint16_t));
    g->unit           = fm_slab_take(s, unit * sizeof *g->unit);
    g->unit0          = fm_slab_take(s, (T + 1) * sizeof(int32_t));
    g->part_z         = fm_slab_take(s, unit * H * L * sizeof(float));
    g->part_sum       = fm_slab_take(s, unit * H * 2 * sizeof(float));
}

static void carve_expanded(fm_cuda_run *g, const fm_model_config *c, const fm_run_limits *lim,
                           fm_slab *s)
{
    const size_t T = (size_t)lim->max_rows, H = (size_t)c->n_head, keys = (size_t)g->max_key;
    g->tile      = fm_slab_take(s, (size_t)g->max_tile * sizeof *g->tile);
    g->n_tile    = fm_slab_take(s, sizeof(int32_t));
    g->key0      = fm_slab_take(s, ((size_t)g->max_span + 1) * sizeof(int32_t));
    g->latent    = fm_slab_take(s, keys * (size_t)fm_kv_width(c) * sizeof(uint16_t));
    g->key       = fm_slab_take(s, keys * H * (size_t)(c->nope + c->v_dim) * sizeof(uint16_t));
    g->state_o   = fm_slab_take(s, T * H * (size_t)c->v_dim * sizeof(float));
    g->state_sum = fm_slab_take(s, T * H * 5 * sizeof(float));
}

static void carve_ffn(fm_cuda_run *g, const fm_model_config *c, const fm_shard *shard,
                      const fm_run_limits *lim, fm_slab *s)
{
    const size_t rows = pass_rows(lim), pairs = rows * (size_t)c->top_k, E = (size_t)c->n_expert;
    const size_t wide = widest_mlp(c, shard);
    g->middle  = fm_slab_take(s, most(rows * wide, pairs * (size_t)c->moe_inter) * sizeof(uint16_t));
    g->gate_up = fm_slab_take(s, rows * 2 * wide * sizeof(uint16_t));
    g->pair_out = fm_slab_take(s, pairs * (size_t)c->hidden * sizeof(float));
    g->count    = fm_slab_take(s, E * sizeof(int32_t));
    g->offset   = fm_slab_take(s, (E + 1) * sizeof(int32_t));
    g->pair_row = fm_slab_take(s, pairs * sizeof(int32_t));
    g->pair_of  = fm_slab_take(s, pairs * sizeof(int32_t));
    g->block    = fm_slab_take(s, (pairs / 8 + E) * 3 * sizeof(int32_t)); /* 8: narrowest block */
    g->n_block  = fm_slab_take(s, sizeof(int32_t));
}

static void carve(fm_cuda_run *g, fm_acts *a, const fm_model_config *c, const fm_shard *shard,
                  const fm_run_limits *lim, fm_slab *s)
{
    const size_t angles = (size_t)lim->max_context * (size_t)(c->rope / 2);
    carve_lists(&g->there, g, lim, s);
    carve_acts(a, c, lim, s);
    carve_absorbed(g, c, lim, s);
    carve_expanded(g, c, lim, s);
    carve_ffn(g, c, shard, lim, s);
    fm__cuda_carve_choice(&g->choose_there, lim, s);
    g->choose_scratch = fm_slab_take(s, fm_cuda_sample_bytes(lim->max_out, c->vocab));
    g->page     = fm_slab_take(s, (size_t)g->max_span * (size_t)g->max_page * sizeof(int32_t));
    g->slot     = fm_slab_take(s, (size_t)lim->max_rows * sizeof(int32_t));
    g->cos      = fm_slab_take(s, angles * sizeof(float));
    g->sin      = fm_slab_take(s, angles * sizeof(float));
    g->lt_space = fm_slab_take(s, FM_CUDA_LT_BYTES);
}

static void carve_pinned(fm_cuda_run *g, const fm_model_config *c, const fm_run_limits *lim, fm_slab *s)
{
    carve_lists(&g->here, g, lim, s);
    fm__cuda_carve_choice(&g->choose_here, lim, s);
    g->logits = fm_slab_take(s, (size_t)lim->max_out * (size_t)c->vocab * sizeof(float));
    g->row_of = fm_slab_take(s, (size_t)lim->max_rows * sizeof(int32_t));
    g->edit_at = fm_slab_take(s, (size_t)c->vocab * sizeof(int32_t));
}

/* Every sequence has at most a prompt and a generated span in a pass. */
static void set_bounds(fm_cuda_run *g, const fm_run_limits *lim)
{
    g->max_span = 2 * lim->max_out;
    g->max_page = (lim->max_context + lim->page_size - 1) / lim->page_size;
    g->max_unit = lim->max_rows + (int)((size_t)lim->n_page * (size_t)lim->page_size / FM_CUDA_PART);
    g->max_tile = lim->max_rows / FM_MLA_TILE_ROWS + g->max_span;
    g->max_key  = FM_CUDA_KEYS;
    if (g->max_key < g->max_span * FM_MLA_BLOCK_KEYS) g->max_key = g->max_span * FM_MLA_BLOCK_KEYS;
}

fm_run_bytes fm_run_cuda_bytes(const fm_model_config *c, const fm_shard *shard,
                               const fm_run_limits *lim)
{
    fm_cuda_run g = {0};
    fm_acts     a;
    fm_slab     s = {0};
    set_bounds(&g, lim);
    carve(&g, &a, c, shard, lim, &s);
    return (fm_run_bytes){
        .workspace = s.used,
        .kv_page   = (size_t)fm_range_len(shard->layer) * (size_t)lim->page_size *
                   (size_t)fm_kv_width(c) * sizeof(uint16_t),
    };
}

/* --- ops ------------------------------------------------------------------ */

static void destroy(fm_run *r)
{
    fm_cuda_run *g = r->backend;
    if (g) {
        for (int i = 0; i < g->n_recorded; i++) fm_cuda_graph_destroy(g->recorded[i].graph);
        fm_cuda_lt_destroy(g->lt);
        fm_cuda_stream_destroy(g->stream);
        fm_cuda_free(g->memory);
        fm_cuda_free(g->kv);
        fm_cuda_free_pinned(g->pinned);
        free(g);
    }
    free(r);
}

static void nothing_to_gather(fm_run *r, fm_act all, fm_act mine)
{
    (void)r, (void)all, (void)mine; /* one rank: the same buffer */
}

static void nothing_to_dispatch(fm_run *r, fm_act h_all, fm_routing route_all, fm_act h,
                                fm_routing route)
{
    (void)r, (void)h_all, (void)route_all, (void)h, (void)route;
}

static void one_stage(fm_run *r, fm_f32s x)
{
    (void)x;
    r->fault = fm_fail(FM_E_NOSUP, "the GPU back end holds all layers");
}

static void stay(fm_run *r, fm_f32s logits)
{
    (void)r, (void)logits; /* until somebody asks for them */
}

static fm_status take_logits(fm_run *r, const fm_batch *b, const float **all)
{
    fm_cuda_run *g = fm__gpu(r);
    const size_t n = (size_t)b->n_out * (size_t)r->act.logits.width;
    FM_TRY(fm_cuda_download(g->logits, r->act.logits.data, n * sizeof(float), g->stream));
    FM_TRY(fm_cuda_stream_wait(g->stream));
    *all = g->logits;
    return FM_OK;
}

static const fm_ops cuda_ops = {
    .name        = "cuda",
    .begin       = fm__cuda_begin,
    .end         = fm__cuda_end,
    .embed       = fm__cuda_embed,
    .rmsnorm     = fm__cuda_rmsnorm,
    .gather_norm = fm__cuda_gather_norm,
    .linear_f32  = fm__cuda_linear_f32,
    .linear_act  = fm__cuda_linear_act,
    .rope_q      = fm__cuda_rope_q,
    .store_kv    = fm__cuda_store_kv,
    .attend      = fm__cuda_attend,
    .route       = fm__cuda_route,
    .mlp         = fm__cuda_mlp,
    .experts     = fm__cuda_experts,
    .gather_act  = nothing_to_gather,
    .gather_add  = fm__cuda_gather_add,
    .dispatch    = nothing_to_dispatch,
    .pass_on     = one_stage,
    .receive     = one_stage,
    .collect     = stay,
    .logits      = take_logits,
    .sample      = fm__cuda_sample,
    .destroy     = destroy,
};

/* --- making one ----------------------------------------------------------- */

static fm_status fill_rope(fm_cuda_run *g, const fm_model_config *c, int max_context)
{
    const int    half  = c->rope / 2;
    const size_t n     = (size_t)max_context * (size_t)half;
    const float  mag   = fm_rope_magnitude(c);
    float       *angle = malloc(2 * n * sizeof *angle), freq[512];
    if (!angle) return fm_fail(FM_E_OOM, "rotation table");
    FM_BUG_UNLESS(half <= 512);
    fm_rope_frequencies(c, freq);
    for (size_t i = 0; i < n; i++) {
        const float a = (float)(i / (size_t)half) * freq[i % (size_t)half];
        angle[i]      = cosf(a) * mag;
        angle[n + i]  = sinf(a) * mag;
    }
    fm_status rc = fm_cuda_upload(g->cos, angle, n * sizeof(float), g->stream);
    if (rc == FM_OK) rc = fm_cuda_upload(g->sin, angle + n, n * sizeof(float), g->stream);
    if (rc == FM_OK) rc = fm_cuda_stream_wait(g->stream);
    free(angle);
    return rc;
}

static fm_status allocate(fm_run *r, fm_cuda_run *g)
{
    const fm_model_config *c     = r->config;
    const fm_shard        *shard = &r->weights->shard;
    const fm_run_bytes     bytes = fm_run_cuda_bytes(c, shard, &r->limits);
    fm_slab                here = {0}, there = {0};
    carve_pinned(g, c, &r->limits, &here);
    g->pinned_bytes = here.used;
    g->memory_bytes = bytes.workspace;
    g->kv_bytes     = bytes.kv_page * (size_t)r->limits.n_page;
    g->kv_layer     = g->kv_bytes / (size_t)r->weights->n_layer;
    FM_TRY(fm_cuda_alloc((void **)&g->memory, g->memory_bytes, "step workspace"));
    FM_TRY(fm_cuda_alloc((void **)&g->kv, g->kv_bytes, "KV pages"));
    FM_TRY(fm_cuda_alloc_pinned((void **)&g->pinned, g->pinned_bytes, "step lists"));
    here  = (fm_slab){.base = g->pinned, .size = g->pinned_bytes};
    there = (fm_slab){.base = g->memory, .size = g->memory_bytes};
    carve_pinned(g, c, &r->limits, &here);
    carve(g, &r->act, c, shard, &r->limits, &there);
    memset(g->edit_at, 0, (size_t)c->vocab * sizeof *g->edit_at);
    FM_TRY(fm_cuda_clear(g->kv, g->kv_bytes, g->stream)); /* never read before written, but finite */
    return fill_rope(g, c, r->limits.max_context);
}

static fm_status make_ready(fm_run *r, fm_cuda_run *g, const fm_run_cuda_options *o)
{
    if (r->weights->act != FM_BF16 || r->weights->packing != FM_PACK_ROWS)
        return fm_fail(FM_E_NOSUP, "the GPU computes in bfloat16");
    FM_TRY(fm_cuda_open(&g->dev, o->device));
    FM_TRY(fm_cuda_stream_create(&g->stream));
    FM_TRY(allocate(r, g));
    FM_TRY(fm_cuda_experts_init());
    FM_TRY(fm_cuda_mla_init());
    FM_TRY(fm_cuda_linear_init());
    return o->deterministic ? FM_OK : fm_cuda_lt_create(&g->lt, g->lt_space, FM_CUDA_LT_BYTES);
}

fm_status fm_run_create_cuda(fm_run **out, const fm_weights *w, const fm_run_limits *lim,
                             const fm_run_cuda_options *o)
{
    fm_run      *r = calloc(1, sizeof *r);
    fm_cuda_run *g = calloc(1, sizeof *g);
    if (!r || !g) {
        free(r);
        free(g);
        return fm_fail(FM_E_OOM, "run");
    }
    set_bounds(g, lim);
    g->pads    = o->pads;
    g->records = o->pads && o->records;
    *r = (fm_run){.ops = &cuda_ops, .config = w->config, .weights = w, .limits = *lim, .backend = g};
    const fm_status rc = make_ready(r, g, o);
    if (rc != FM_OK) {
        destroy(r);
        return rc;
    }
    *out = r;
    return FM_OK;
}

fm_stream fm_run_cuda_stream(const fm_run *r)
{
    return ((const fm_cuda_run *)r->backend)->stream;
}
