/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU back end: its memory, carved once, and its table of ops. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device/host.h"
#include "device/host_prefault.h"
#include "device/host_threads.h"
#include "llm/op/cpu/cpu_internal.h"

static int max_int(int a, int b)
{
    return a > b ? a : b;
}

static void carve_ffn(fm_cpu *b, const fm_model_config *c, const fm_shard *shard,
                      const fm_run_limits *lim, fm_slab *s)
{
    fm_cpu_exchange     *x       = &b->exchange;
    const fm_columns channel = fm__channels_by(shard->attn, fm_shard_widest_mlp(shard, c));
    const size_t     rows    = (size_t)fm__min(lim->max_rows, FM_PASS_ROWS);
    const size_t     stride   = (size_t)fm__act_stride(b, channel.n, shard->attn.n == 1);
    const size_t     middle  = rows * stride * b->act_bytes;
    x->mlp                   = fm__pieces_of(channel, b->act_bytes, s);
    x->mlp_room              = shard->attn.n > 1 ? fm_slab_take(s, middle) : NULL;
    b->mlp_middle            = fm_slab_take(s, middle);
    if (c->n_expert) fm__carve_experts(b, c, shard, lim, s);
    if (c->fp8_activations && b->act == FM_BF16) fm__carve_quantised(b, c, shard, lim, s);
}

static void carve_latent(fm_cpu *b, const fm_model_config *c, const fm_shard *shard,
                         const fm_run_limits *lim, fm_slab *s)
{
    const size_t H = (size_t)fm_range_len(fm_shard_heads(shard, c)), L = (size_t)c->kv_lora;
    const size_t lanes = fm_round_up(H, FM_LATENT_LANES);
    b->n_unit = max_int((lim->max_context + FM_LATENT_KEYS - 1) / FM_LATENT_KEYS, FM_LATENT_UNITS);
    const size_t units = (size_t)b->n_unit;
    b->q_latent   = fm_slab_take(s, FM_LATENT_UNITS * H * (size_t)fm_kv_width(c) * b->act_bytes);
    b->z_latent   = fm_slab_take(s, FM_LATENT_UNITS * H * L * b->act_bytes);
    b->part       = fm_slab_take(s, units * lanes * L * sizeof(float));
    b->part_stat  = fm_slab_take(s, units * lanes * 2 * sizeof(float));
    b->unit_row   = fm_slab_take(s, units * sizeof(int32_t));
    b->first_unit = fm_slab_take(s, FM_LATENT_UNITS * sizeof(int32_t));
    b->gen_row    = fm_slab_take(s, (size_t)lim->max_rows * sizeof(int32_t));
    b->gen_span   = fm_slab_take(s, (size_t)lim->max_rows * sizeof(int32_t));
}

static void carve_scratch(fm_thread_scratch *t, const fm_cpu *b, const fm_model_config *c, fm_slab *s)
{
    const size_t key_w   = fm_round_up((size_t)(c->nope + c->rope), FM_PANEL);
    const size_t value_w = fm_round_up((size_t)c->v_dim, FM_PANEL);
    const size_t keys = FM_PROMPT_KEYS, es = b->act_bytes;
    const size_t rows = fm__moves_rows(b) ? (size_t)fm__rows_at_once(b, c->hidden) : 0;
    const size_t up   = ((size_t)c->nope + value_w) * (size_t)c->kv_lora;
    _Static_assert(FM_QUERY_TILE * FM_PROMPT_KEYS >= FM_LATENT_KEYS * FM_LATENT_LANES,
                   "scores and weights serve both forms");
    _Static_assert(FM_TILE_ROWS >= FM_PROMPT_KEYS, "a tile takes a block of keys");
    t->tile    = fm_slab_take(s, FM_TILE_ROWS * FM_PANEL * sizeof(float));
    t->query   = fm_slab_take(s, FM_QUERY_TILE * fm__row_stride(b, (int)key_w));
    t->key     = fm_slab_take(s, keys * key_w * es);
    t->value   = fm_slab_take(s, keys * value_w * es);
    t->k_panel = fm_slab_take(s, keys * key_w * es);
    t->v_panel = fm_slab_take(s, keys * value_w * es);
    t->score   = fm_slab_take(s, FM_QUERY_TILE * keys * sizeof(float));
    t->weight  = fm_slab_take(s, FM_QUERY_TILE * keys * es);
    t->out     = fm_slab_take(s, FM_PROMPT_ROWS * value_w * sizeof(float));
    t->lanes   = fm_slab_take(s, FM_LATENT_LANES * (size_t)fm_kv_width(c) * es);
    t->max     = fm_slab_take(s, FM_PROMPT_ROWS * sizeof(float));
    t->sum     = fm_slab_take(s, FM_PROMPT_ROWS * sizeof(float));
    t->row     = fm_slab_take(s, (size_t)c->hidden * sizeof(float));
    t->rows    = fm_slab_take(s, rows * fm__row_stride(b, c->hidden));
    t->up      = fm_slab_take(s, c->fp8 && b->gemm->widen ? up * es : 0);
}

/* Everything but the KV; on a counting slab this is the plan. */
static void carve(fm_cpu *b, fm_acts *a, const fm_model_config *c, const fm_shard *shard,
                  const fm_run_limits *lim, fm_slab *s)
{
    const fm_act_layout acts = {lim->max_rows, lim->max_out, b->act_bytes, fm__act_padding(b)};
    fm_activations_carve(a, &lim->activations, shard, &acts, s);
    fm__carve_exchange(b, a, c, shard, lim, s);
    fm__carve_stages(b, a, c, shard, lim, s);
    carve_ffn(b, c, shard, lim, s);
    carve_latent(b, c, shard, lim, s);
    fm__carve_drafts(b, c, shard, lim, s);
    b->cos = fm_slab_take(s, (size_t)lim->max_context * (size_t)(c->rope / 2) * sizeof(float));
    b->sin = fm_slab_take(s, (size_t)lim->max_context * (size_t)(c->rope / 2) * sizeof(float));
    b->group    = fm_slab_take(s, (size_t)lim->max_rows * sizeof *b->group);
    b->row_span = fm_slab_take(s, (size_t)lim->max_rows * sizeof(int32_t));
    b->scratch  = fm_slab_take(s, (size_t)lim->n_thread * sizeof *b->scratch);
    for (int i = 0; i < lim->n_thread; i++) {
        fm_thread_scratch counted;
        carve_scratch(s->base ? &b->scratch[i] : &counted, b, c, s);
    }
}

size_t fm_run_cpu_workspace(const fm_model_config *c, const fm_shard *shard, fm_dtype act,
                            const fm_run_limits *lim)
{
    fm_cpu  b = {.gemm = fm_gemm_pick(), .act = act, .act_bytes = fm_dtype_bytes(act)};
    fm_acts a;
    fm_slab s = {0};
    carve(&b, &a, c, shard, lim, &s);
    return s.used;
}

static void destroy(fm_run *r)
{
    fm_cpu *b = r->backend;
    if (b) {
        fm__exchange_fini(b);
        fm_prefault_destroy(b->prefault);
        fm_host_free(b->memory, b->memory_bytes);
        fm_host_free(b->kv, b->kv_bytes);
        free(b);
    }
    free(r);
}

static const fm_ops cpu_ops = {
    .name        = "cpu",
    .begin       = fm__cpu_begin,
    .end         = fm__cpu_end,
    .embed       = fm__cpu_embed,
    .rmsnorm     = fm__cpu_rmsnorm,
    .gather_norm = fm__cpu_gather_norm,
    .linear_f32  = fm__cpu_linear_f32,
    .linear_act  = fm__cpu_linear_act,
    .rope_q      = fm__cpu_rope_q,
    .store_kv    = fm__cpu_store_kv,
    .attend      = fm__cpu_attend,
    .route       = fm__cpu_route,
    .mlp         = fm__cpu_mlp,
    .experts     = fm__cpu_experts,
    .gather_act  = fm__cpu_gather_act,
    .gather_add  = fm__cpu_gather_add,
    .dispatch    = fm__cpu_dispatch,
    .pass_on     = fm__cpu_pass_on,
    .receive     = fm__cpu_receive,
    .collect     = fm__cpu_collect,
    .hidden      = fm__cpu_hidden,
    .best        = fm__cpu_best,
    .embed_product = fm__cpu_embed_product,
    .linear_draft = fm__cpu_linear_draft,
    .draft_rows  = fm__cpu_draft_rows,
    .drafted     = fm__cpu_drafted,
    .logits      = fm__cpu_logits,
    .copy_pages  = fm__cpu_copy_pages,
    .destroy     = destroy,
};

static fm_status allocate(fm_run *r, fm_cpu *b)
{
    const fm_model_config *c     = r->config;
    const fm_shard        *shard = &r->weights->shard;
    const fm_planes       *planes = &r->limits.planes;
    const size_t           n_page = (size_t)r->limits.n_page;
    const fm_plane        *latent = fm_planes_find(planes, FM_PLANE_LATENT);
    FM_BUG_UNLESS(latent && latent->dtype == b->act && !fm_planes_find(planes, FM_PLANE_SCALE));
    b->memory_bytes = fm_run_cpu_workspace(c, shard, b->act, &r->limits);
    b->kv_bytes     = fm_planes_page_bytes(planes, r->limits.page_size) * n_page;
    b->kv_token     = fm_plane_token_bytes(latent);
    b->kv_layer     = b->kv_token * n_page * (size_t)r->limits.page_size;
    FM_TRY(fm__check_ranks(r));
    FM_TRY(fm_host_alloc(&b->memory, b->memory_bytes, "step workspace"));
    FM_TRY(fm_host_alloc((void **)&b->kv, b->kv_bytes, "KV pages"));
    fm_threads_spread(r->limits.team, b->kv, b->kv_bytes);
    FM_TRY(fm__prefault(r));
    fm_slab s = {.base = b->memory, .size = b->memory_bytes};
    carve(b, &r->act, c, shard, &r->limits, &s);
    if (b->embedded) memset(b->is_embedded, 0, (size_t)c->vocab);
    fm_rope_table(c, r->limits.max_context, b->cos, b->sin);
    fm__fill_draft_head(r);
    return FM_OK;
}

fm_status fm_run_create_cpu(fm_run **out, const fm_weights *w, const fm_run_limits *lim,
                            fm_ranks ranks)
{
    fm_run *r = calloc(1, sizeof *r);
    fm_cpu *b = calloc(1, sizeof *b);
    if (!r || !b) {
        free(r);
        free(b);
        return fm_fail(FM_E_OOM, "run");
    }
    *b = (fm_cpu){.gemm = fm_gemm_pick(), .pack = fm_pack_pick(), .latent = fm_latent_pick(),
                  .n_thread = lim->n_thread, .act = w->act, .act_bytes = fm_dtype_bytes(w->act)};
    b->few = fm_gemm_few(b->gemm);
    b->few_fp8 = fm_gemm_few_fp8(b->gemm);
    *r = (fm_run){.ops = &cpu_ops, .config = w->config, .weights = w, .limits = *lim, .ranks = ranks,
                  .backend = b};
    const fm_status rc = allocate(r, b);
    if (rc != FM_OK) {
        destroy(r);
        return rc;
    }
    *out = r;
    return FM_OK;
}
