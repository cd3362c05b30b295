/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU back end: its table of ops, and how one is made. */
#include "llm/op/cuda/cuda.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "llm/kernel/cuda/experts/experts.h"
#include "llm/op/cuda/cuda_internal.h"

/* NCCL waits for recorded steps that have calls of a group to be gone before the
 * group may go. */
static void destroy(fm_run *r)
{
    fm_cuda_run *g = r->backend;
    if (g) {
        if (g->exchange.replica && r->fault == FM_OK) (void)fm__cuda_wait(r);
        for (int i = 0; i < g->n_recorded; i++) {
            fm_cuda_graph_destroy(g->recorded[i].graph);
            fm_cuda_graph_destroy(g->recorded[i].stamped);
        }
        fm__cuda_part(r);
        for (int i = 0; i < FM_CUDA_AHEAD; i++) {
            fm_cuda_mark_destroy(g->read[i]);
            fm_cuda_mark_destroy(g->asked[i].done);
        }
        fm__cuda_side_destroy(&g->side);
        fm__cuda_copies_destroy(&g->copies);
        fm__cuda_stamps_destroy(&g->stamps);
        fm_cuda_lt_destroy(g->lt);
        fm_cuda_stream_destroy(g->stream);
        fm_cuda_free(g->memory);
        fm_cuda_free(g->kv);
        fm_cuda_free_pinned(g->pinned);
        fm_cuda_free_pinned(g->exchange.staging.bytes);
        free(g);
    }
    free(r);
}

/* Logits are gathered after the pass (fm__cuda_collect), so that a recorded pass ends here. */
static void stay(fm_run *r, fm_f32s logits)
{
    (void)r, (void)logits;
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
    .gather_act  = fm__cuda_gather_act,
    .gather_add  = fm__cuda_gather_add,
    .dispatch    = fm__cuda_dispatch,
    .pass_on     = fm__cuda_pass_on,
    .receive     = fm__cuda_receive,
    .collect     = stay,
    .hidden      = fm__cuda_hidden,
    .best        = fm__cuda_best,
    .linear_draft = fm__cuda_linear_draft,
    .drafted     = fm__cuda_drafted,
    .logits      = fm__cuda_logits,
    .sample      = fm__cuda_sample,
    .sampled     = fm__cuda_sampled,
    .copy_pages  = fm__cuda_copy_pages,
    .copied      = fm__cuda_copied,
    .watch       = fm__cuda_watch,
    .destroy     = destroy,
};

/* --- making one ----------------------------------------------------------- */

static fm_status fill_rope(fm_cuda_run *g, const fm_model_config *c, int max_context)
{
    const size_t n     = (size_t)max_context * (size_t)(c->rope / 2);
    float       *angle = malloc(2 * n * sizeof *angle);
    if (!angle) return fm_fail(FM_E_OOM, "rotation table");
    fm_rope_table(c, max_context, angle, angle + n);
    fm_status rc = fm_cuda_upload(g->cos, angle, n * sizeof(float), g->stream);
    if (rc == FM_OK) rc = fm_cuda_upload(g->sin, angle + n, n * sizeof(float), g->stream);
    if (rc == FM_OK) rc = fm_cuda_stream_wait(g->stream);
    free(angle);
    return rc;
}

static fm_status fill_placement(const fm_cuda_run *g, const fm_placement *p)
{
    const fm_cuda_placement *w = &g->exchange.where;
    const size_t             E = p ? (size_t)p->n_expert : 0;
    if (!w->copy0) return FM_OK; /* one set has all experts */
    FM_TRY(fm_cuda_upload((void *)w->copy0, p->copy0, (E + 1) * sizeof *p->copy0, g->stream));
    FM_TRY(fm_cuda_upload((void *)w->copy, p->copy, (size_t)p->copy0[E] * sizeof *p->copy, g->stream));
    return fm_cuda_stream_wait(g->stream);
}

static fm_status allocate_kv(fm_run *r, fm_cuda_run *g)
{
    const fm_planes *planes = &r->limits.planes;
    const size_t     n_page = (size_t)r->limits.n_page, page = (size_t)r->limits.page_size;
    const fm_plane  *latent = fm_planes_find(planes, FM_PLANE_LATENT);
    const fm_plane  *scale  = fm_planes_find(planes, FM_PLANE_SCALE);
    FM_BUG_UNLESS(latent && (latent->dtype == FM_FP8) == (scale != NULL));
    g->kv_bytes = fm_planes_page_bytes(planes, r->limits.page_size) * n_page;
    g->kv_layer = fm_plane_token_bytes(latent) * n_page * page;
    FM_TRY(fm_cuda_alloc((void **)&g->kv, g->kv_bytes, "KV pages"));
    if (scale) g->kv_scale = (float *)(g->kv + fm_planes_offset(planes, scale, n_page * page));
    return fm_cuda_clear(g->kv, g->kv_bytes, g->stream); /* never read before written, but finite */
}

static fm_status allocate(fm_run *r, fm_cuda_run *g)
{
    const fm_model_config *c     = r->config;
    const fm_shard        *shard = &r->weights->shard;
    fm_slab                here = {0}, there = {0};
    g->pinned_bytes = fm_run_cuda_pinned(c, shard, &r->limits);
    g->memory_bytes = fm_run_cuda_workspace(c, shard, FM_BF16, &r->limits);
    FM_TRY(fm_cuda_alloc((void **)&g->memory, g->memory_bytes, "step workspace"));
    FM_TRY(fm_cuda_alloc_pinned((void **)&g->pinned, g->pinned_bytes, "step lists"));
    FM_TRY(allocate_kv(r, g));
    here  = (fm_slab){.base = g->pinned, .size = g->pinned_bytes};
    there = (fm_slab){.base = g->memory, .size = g->memory_bytes};
    fm__cuda_carve_pinned(g, c, shard, &r->limits, &here);
    fm__cuda_carve(g, &r->act, c, shard, &r->limits, &there);
    memset(g->edit_at, 0, (size_t)c->vocab * sizeof *g->edit_at);
    FM_TRY(fill_placement(g, shard->placement));
    return fill_rope(g, c, r->limits.max_context);
}

/* What the kernels cannot take is refused here: they call it a bug. */
static fm_status check_shapes(const fm_model_config *c)
{
    const struct {
        const char *name;
        int         n, unit;
    } all[] = {
        {"hidden_size", c->hidden, 16},
        {"q_lora_rank", c->q_lora, 16},
        {"kv_lora_rank", c->kv_lora, 16},
        {"qk_nope_head_dim", c->nope, 8},
        {"qk_rope_head_dim", c->rope, 8},
        {"v_head_dim", c->v_dim, 8},
        {"n_routed_experts", c->n_expert, 2},
        {"vocab_size", c->vocab, 2},
        {"moe_intermediate_size", c->moe_inter, 16},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].n % all[i].unit)
            return fm_fail(FM_E_NOSUP, "config.json: %s is %d; the GPU takes multiples of %d",
                           all[i].name, all[i].n, all[i].unit);
    return FM_OK;
}

static fm_status make_ready(fm_run *r, fm_cuda_run *g, const fm_run_cuda_options *o)
{
    if (r->weights->act != FM_BF16 || r->weights->packing != FM_PACK_ROWS)
        return fm_fail(FM_E_NOSUP, "the GPU computes in bfloat16");
    FM_TRY(check_shapes(r->config));
    FM_TRY(fm_cuda_open(&g->dev, o->device));
    FM_TRY(fm_cuda_stream_create(&g->stream));
    for (int i = 0; i < FM_CUDA_AHEAD; i++) {
        FM_TRY(fm_cuda_mark_create(&g->read[i]));
        FM_TRY(fm_cuda_mark_create(&g->asked[i].done));
    }
    FM_TRY(fm__cuda_side_create(&g->side));
    FM_TRY(fm__cuda_copies_create(&g->copies));
    FM_TRY(allocate(r, g));
    FM_TRY(fm__cuda_meet(r, o));
    FM_TRY(fm_cuda_experts_init());
    FM_TRY(fm_cuda_mla_init());
    FM_TRY(fm_cuda_linear_init());
    if (r->config->fp8_activations || g->draft_head.panels) FM_TRY(fm_cuda_fp8_init());
    FM_TRY(fm__cuda_fill_draft_head(r));
    return fm_cuda_lt_create(&g->lt, g->lt_space, FM_CUDA_LT_BYTES);
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
    fm__cuda_set_bounds(g, w->config, lim);
    g->immediate = o->immediate;
    g->pads      = o->pads;
    g->records   = o->pads && o->records;
    g->ops       = cuda_ops;
    *r = (fm_run){.ops = &g->ops, .config = w->config, .weights = w, .limits = *lim, .backend = g};
    const fm_status rc = make_ready(r, g, o);
    if (rc != FM_OK) {
        destroy(r);
        return rc;
    }
    fm__cuda_ranges_open(r);
    *out = r;
    return FM_OK;
}
