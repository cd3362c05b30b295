/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/weights/weights.h"

#include <stdio.h>
#include <stdlib.h>

#include "llm/kernel/gemm/gemm.h"

/* Running out of memory is remembered and everything after it does nothing,
 * so that the layout below reads as the model's structure. */
typedef struct {
    fm_weights            *w;
    const fm_model_config *c;
    const fm_shard        *shard;
    const fm_weights_want *want;
    fm_slab               *slab;
    fm_status              rc;
    char                   prefix[64]; /* "model.layers.3.self_attn." */
} layout;

static fm_dtype dtype_of(const layout *l, const char *tensor)
{
    const fm_dtype t = l->want->dtype_of(l->want->ctx, tensor);
    return t == FM_INT4 && l->want->packing == FM_PACK_ROWS ? FM_BF16 : t; /* no kernel for it */
}

static void *heap(layout *l, size_t n, size_t size)
{
    void *p = l->rc == FM_OK ? calloc(n ? n : 1, size) : NULL;
    if (!p && l->rc == FM_OK) l->rc = fm_fail(FM_E_OOM, "no memory for the list of weights");
    return p;
}

/* `part`: of the tensor's rows, those this rank reads. */
static fm_piece *add_piece(layout *l, fm_piece_kind kind, const char *name, int64_t rows,
                           int64_t cols, fm_range part)
{
    fm_weights *w = l->w;
    if (l->rc != FM_OK) return NULL;
    if (w->n_piece == w->cap_piece) {
        const int cap  = w->cap_piece ? w->cap_piece * 2 : 256;
        fm_piece *more = realloc(w->piece, (size_t)cap * sizeof *more);
        if (!more) {
            l->rc = fm_fail(FM_E_OOM, "no memory for the list of weights");
            return NULL;
        }
        w->piece     = more;
        w->cap_piece = cap;
    }
    fm_piece *p = &w->piece[w->n_piece++];
    *p          = (fm_piece){.kind = kind,
                             .rows = rows,
                             .cols = cols,
                             .row0 = part.begin,
                             .n    = fm_range_len(part),
                             .k    = cols};
    snprintf(p->tensor, sizeof p->tensor, "%s%s", l->prefix, name);
    return p;
}

static float *vector(layout *l, const char *name, int n)
{
    float    *v = fm_slab_take(l->slab, (size_t)n * sizeof *v);
    fm_piece *p = add_piece(l, FM_PIECE_VECTOR, name, 1, n, (fm_range){0, 1});
    if (p) p->vector = v;
    return v;
}

static size_t blocks(int n)
{
    return ((size_t)n + FM_FP8_BLOCK - 1) / FM_FP8_BLOCK;
}

/* Numbers of a matrix's memory; `pair`: gate and up in one. */
typedef struct {
    size_t bytes, scales;
} extent;

static extent extent_of(const layout *l, const fm_matrix *m, int pair)
{
    const size_t n_panel = ((size_t)m->n + FM_PANEL - 1) / FM_PANEL, n = (size_t)m->n;
    const int    fp8     = m->dtype == FM_FP8;
    if (l->want->packing == FM_PACK_PANELS)
        return (extent){n_panel * fm_panel_bytes(m->dtype, m->k),
                        fp8 ? n_panel * (size_t)fm_panel_scales(m->k) : 0};
    return (extent){n * (size_t)m->k * fm_dtype_bytes(m->dtype),
                    !fp8   ? 0
                    : pair ? 2 * blocks(m->scale_row0 + m->n / 2) * blocks(m->k)
                           : blocks(m->scale_row0 + m->n) * blocks(m->k)};
}

static void place(layout *l, fm_matrix *m, int pair)
{
    const extent e = extent_of(l, m, pair);
    m->panels      = fm_slab_take(l->slab, e.bytes);
    if (e.scales) m->scale = fm_slab_take(l->slab, e.scales * sizeof *m->scale);
}

static void carve(layout *l, fm_matrix *m, int n, int k, fm_dtype dtype)
{
    *m = (fm_matrix){.n = n, .k = k, .dtype = dtype};
    place(l, m, 0);
}

static void matrix(layout *l, fm_matrix *m, const char *name, int n, int k, fm_range part,
                   fm_dtype dtype)
{
    carve(l, m, fm_range_len(part), k, dtype);
    fm_piece *p = add_piece(l, FM_PIECE_MATRIX, name, n, k, part);
    if (p) p->matrix = m;
}

/* A matrix kept in the type of the activations: never FP8 or INT4. */
static void plain(layout *l, fm_matrix *m, const char *name, int n, int k, fm_range part)
{
    matrix(l, m, name, n, k, part, l->w->act);
}

/* A product whose type the checkpoint decides; not yet placed. */
static void want_linear(layout *l, fm_matrix *m, const char *name, int n, int k, fm_range part)
{
    fm_piece *p = add_piece(l, FM_PIECE_MATRIX, name, n, k, part);
    if (!p) return;
    p->matrix = m;
    *m        = (fm_matrix){.n          = fm_range_len(part),
                            .k          = k,
                            .dtype      = dtype_of(l, p->tensor),
                            .scale_row0 = part.begin % FM_FP8_BLOCK};
    if (m->dtype == FM_FP8 && part.begin % FM_SHARD_CHANNELS)
        l->rc = fm_fail(FM_E_NOSUP,
                        "%s: rows from %d on cannot be had from FP8 blocks; use fewer ranks",
                        p->tensor, part.begin);
}

static void linear(layout *l, fm_matrix *m, const char *name, int n, int k, fm_range part)
{
    want_linear(l, m, name, n, k, part);
    place(l, m, 0);
}

static fm_range whole(int n)
{
    return (fm_range){0, n};
}

/* `name` is "mlp." or "mlp.experts.7."; `by`: the ranks that divide it. */
static void want_mlp(layout *l, fm_mlp_weights *m, const char *name, int inter, fm_share by)
{
    const int      D       = l->c->hidden;
    const fm_range channel = fm_share_of(by, inter, FM_SHARD_CHANNELS);
    char           full[48];

    m->inter = inter;
    snprintf(full, sizeof full, "%sgate_proj.weight", name);
    fm_piece *p = add_piece(l, FM_PIECE_GATE_UP, full, inter, D, channel);
    if (!p) return;
    snprintf(p->tensor2, sizeof p->tensor2, "%s%sup_proj.weight", l->prefix, name);
    p->matrix  = &m->gate_up;
    m->gate_up = (fm_matrix){.n          = 2 * fm_range_len(channel),
                             .k          = D,
                             .dtype      = dtype_of(l, p->tensor),
                             .scale_row0 = channel.begin % FM_FP8_BLOCK};

    snprintf(full, sizeof full, "%sdown_proj.weight", name);
    want_linear(l, &m->down, full, D, inter, fm_shard_outputs(by, D));
}

static void mlp(layout *l, fm_mlp_weights *m, const char *name, int inter, fm_share by)
{
    want_mlp(l, m, name, inter, by);
    place(l, &m->gate_up, 1);
    place(l, &m->down, 0);
}

/* Products take kv_b_proj in the type of activations.  In memory it stays FP8 where it can be
 * widened in a step and no panel of any layout has two scales for the same k. */
static fm_dtype kv_up_type(const layout *l, const char *tensor)
{
    const int widens = l->w->act == FM_BF16 && fm_gemm_pick()->widen && fm_heads_are_blocks(l->c);
    return widens && dtype_of(l, tensor) == FM_FP8 ? FM_FP8 : l->w->act;
}

static void kv_up_panels(layout *l, fm_attn_weights *a, size_t h, fm_dtype type)
{
    const fm_model_config *c = l->c;
    carve(l, &a->k_up[h], c->nope, c->kv_lora, type);
    carve(l, &a->k_up_t[h], c->kv_lora, c->nope, type);
    carve(l, &a->v_up[h], c->v_dim, c->kv_lora, type);
}

static void kv_up_rows(layout *l, fm_attn_weights *a, size_t n_head)
{
    const fm_model_config *c   = l->c;
    const size_t           row = (size_t)c->kv_lora * fm_dtype_bytes(l->w->act);
    fm_matrix              all;
    carve(l, &all, (int)n_head * (c->nope + c->v_dim), c->kv_lora, l->w->act);
    for (size_t h = 0; h < n_head; h++) {
        char *at   = (char *)all.panels;
        at         = at ? at + h * (size_t)(c->nope + c->v_dim) * row : NULL;
        a->k_up[h] = (fm_matrix){.n = c->nope, .k = c->kv_lora, .dtype = all.dtype, .panels = at};
        a->v_up[h] = (fm_matrix){.n      = c->v_dim,
                                 .k      = c->kv_lora,
                                 .dtype  = all.dtype,
                                 .panels = at ? at + (size_t)c->nope * row : NULL};
    }
}

/* Each head's part of kv_b_proj, in the shapes attention wants. */
static void kv_up(layout *l, fm_attn_weights *a)
{
    const fm_model_config *c    = l->c;
    const fm_range         head = fm_shard_heads(l->shard, c);
    const size_t           H    = (size_t)fm_range_len(head);
    const int              rows = c->nope + c->v_dim; /* of one head */

    a->k_up     = heap(l, 3 * H, sizeof *a->k_up);
    fm_piece *p = add_piece(l, FM_PIECE_KV_B, "self_attn.kv_b_proj.weight",
                            (int64_t)c->n_head * rows, c->kv_lora,
                            (fm_range){head.begin * rows, head.end * rows});
    if (!p) return;
    p->attn   = a;
    a->k_up_t = a->k_up + H;
    a->v_up   = a->k_up + 2 * H;
    if (l->want->packing == FM_PACK_ROWS) {
        kv_up_rows(l, a, H);
        return;
    }
    const fm_dtype type = kv_up_type(l, p->tensor);
    for (size_t h = 0; h < H; h++) kv_up_panels(l, a, h, type);
}

static void attention(layout *l, fm_attn_weights *a)
{
    const fm_model_config *c    = l->c;
    const int              D    = c->hidden;
    const int              qk   = c->nope + c->rope;
    const fm_range         head = fm_shard_heads(l->shard, c);
    const fm_range         q    = {head.begin * qk, head.end * qk};

    a->norm = vector(l, "input_layernorm.weight", D);
    if (c->q_lora) {
        linear(l, &a->q_down, "self_attn.q_a_proj.weight", c->q_lora, D, whole(c->q_lora));
        a->q_norm = vector(l, "self_attn.q_a_layernorm.weight", c->q_lora);
        linear(l, &a->q_up, "self_attn.q_b_proj.weight", c->n_head * qk, c->q_lora, q);
    } else {
        linear(l, &a->q_up, "self_attn.q_proj.weight", c->n_head * qk, D, q);
    }
    linear(l, &a->kv_down, "self_attn.kv_a_proj_with_mqa.weight", c->kv_lora + c->rope, D,
           whole(c->kv_lora + c->rope));
    a->kv_norm = vector(l, "self_attn.kv_a_layernorm.weight", c->kv_lora);
    kv_up(l, a);
    linear(l, &a->out, "self_attn.o_proj.weight", D, c->n_head * c->v_dim,
           fm_shard_outputs(l->shard->attn, D));
}

static fm_mlp_weights *in_slot(const layout *l, fm_mlp_weights *expert, int slot)
{
    return &expert[fm_placement_expert(l->shard->placement, l->shard->expert.index, slot)];
}

/* One array of all own experts' matrices, one of all their scales, by slot. */
static void place_array(layout *l, fm_mlp_weights *expert, int n, fm_matrix *(*of)(fm_mlp_weights *),
                        int pair)
{
    const extent each  = n ? extent_of(l, of(in_slot(l, expert, 0)), pair) : (extent){0, 0};
    char        *bytes = fm_slab_take(l->slab, (size_t)n * each.bytes);
    float       *scale = fm_slab_take(l->slab, (size_t)n * each.scales * sizeof *scale);
    for (int i = 0; i < n && bytes; i++) {
        fm_matrix *m = of(in_slot(l, expert, i));
        m->panels    = bytes + (size_t)i * each.bytes;
        m->scale     = each.scales ? scale + (size_t)i * each.scales : NULL;
    }
}

static fm_matrix *gate_up_of(fm_mlp_weights *m)
{
    return &m->gate_up;
}

static fm_matrix *down_of(fm_mlp_weights *m)
{
    return &m->down;
}

static fm_status alike(const layout *l, fm_mlp_weights *expert, int n)
{
    for (int i = 1; i < n; i++) {
        const fm_mlp_weights *a = in_slot(l, expert, 0), *b = in_slot(l, expert, i);
        if (a->gate_up.dtype != b->gate_up.dtype || a->down.dtype != b->down.dtype)
            return fm_fail(FM_E_NOSUP, "experts %d and %d of a layer are of different types",
                           (int)(a - expert), (int)(b - expert));
    }
    return FM_OK;
}

static void experts(layout *l, fm_mlp_weights *expert)
{
    const int n          = fm_shard_n_expert(l->shard, l->c);
    const int one_by_one = l->want->packing == FM_PACK_PANELS;
    char      name[32];

    for (int i = 0; l->rc == FM_OK && i < n; i++) {
        fm_mlp_weights *e = in_slot(l, expert, i);
        snprintf(name, sizeof name, "mlp.experts.%d.", (int)(e - expert));
        if (one_by_one) mlp(l, e, name, l->c->moe_inter, l->shard->channel);
        else want_mlp(l, e, name, l->c->moe_inter, l->shard->channel);
    }
    if (one_by_one || l->rc != FM_OK) return;
    l->rc = alike(l, expert, n);
    place_array(l, expert, n, gate_up_of, 1);
    place_array(l, expert, n, down_of, 0);
}

static void moe(layout *l, fm_ffn_weights *f)
{
    const fm_model_config *c = l->c;

    plain(l, &f->router, "mlp.gate.weight", c->n_expert, c->hidden, whole(c->n_expert));
    if (c->route == FM_ROUTE_NOAUX_TC)
        f->bias = vector(l, "mlp.gate.e_score_correction_bias", c->n_expert);
    if (c->n_shared)
        mlp(l, &f->mlp, "mlp.shared_experts.", c->n_shared * c->moe_inter, l->shard->attn);
    f->expert = heap(l, (size_t)c->n_expert, sizeof *f->expert);
    if (f->expert) experts(l, f->expert);
}

static void layer(layout *l, fm_layer_weights *w, int i, int is_moe)
{
    snprintf(l->prefix, sizeof l->prefix, "model.layers.%d.", i);
    attention(l, &w->attn);
    w->ffn.norm   = vector(l, "post_attention_layernorm.weight", l->c->hidden);
    w->ffn.is_moe = is_moe;
    if (is_moe)
        moe(l, &w->ffn);
    else
        mlp(l, &w->ffn.mlp, "mlp.", l->c->dense_inter, l->shard->attn);
}

/* Columns [col0, col0 + D) of eh_proj. */
static void half_of_join(layout *l, fm_matrix *m, int col0, fm_range part)
{
    const int D = l->c->hidden;
    carve(l, m, fm_range_len(part), D, l->w->act);
    fm_piece *p = add_piece(l, FM_PIECE_MATRIX, "eh_proj.weight", D, 2 * D, part);
    if (!p) return;
    p->matrix = m;
    p->col0   = col0;
    p->k      = D;
}

/* Its embedding and head are copies of the main ones and are not read. */
static void mtp(layout *l, fm_mtp_weights *m, int i)
{
    const int D = l->c->hidden;
    snprintf(l->prefix, sizeof l->prefix, "model.layers.%d.", i);
    m->enorm = vector(l, "enorm.weight", D);
    m->hnorm = vector(l, "hnorm.weight", D);
    half_of_join(l, &m->of_embed, 0, whole(D));
    half_of_join(l, &m->of_state, D, fm_shard_outputs(l->shard->attn, D));
    layer(l, &m->layer, i, l->c->n_expert > 0);
    m->norm = vector(l, "shared_head.norm.weight", D);
}

static void embedding(layout *l)
{
    const fm_model_config *c    = l->c;
    fm_weights            *w    = l->w;
    const fm_range         word = fm_shard_outputs(l->shard->attn, c->vocab);
    const size_t           row  = (size_t)c->hidden * fm_dtype_bytes(w->act);

    w->embed    = fm_slab_take(l->slab, (size_t)fm_range_len(word) * row);
    fm_piece *p = add_piece(l, FM_PIECE_TABLE, "model.embed_tokens.weight", c->vocab, c->hidden, word);
    if (p) p->table = w->embed;
}

/* INT4 where the checkpoint has it so; published FP8 checkpoints leave it in BF16. */
static fm_dtype head_type(const layout *l)
{
    return dtype_of(l, "lm_head.weight") == FM_INT4 ? FM_INT4 : l->w->act;
}

static void head(layout *l)
{
    const fm_model_config *c = l->c;
    l->prefix[0]             = 0;
    l->w->norm               = vector(l, "model.norm.weight", c->hidden);
    matrix(l, &l->w->head, "lm_head.weight", c->vocab, c->hidden,
           fm_shard_outputs(l->shard->attn, c->vocab), head_type(l));
}

static fm_status find_placement(const layout *l)
{
    fm_weights *w = l->w;
    if (!l->c->n_expert || w->shard.placement) return FM_OK;
    FM_TRY(fm_placement_create_even(&w->even, l->c->n_expert, w->shard.expert.n));
    w->shard.placement = w->even;
    return FM_OK;
}

fm_status fm_weights_layout(fm_weights *w, const fm_model_config *config,
                            const fm_weights_want *want, fm_slab *slab)
{
    const fm_shard  all   = fm_shard_whole(config);
    const fm_shard *shard = want->shard ? want->shard : &all;
    layout l = {.w = w, .c = config, .shard = &w->shard, .want = want, .slab = slab, .rc = FM_OK};

    const int n_layer = fm_range_len(shard->layer);
    const int n_mtp   = fm_shard_is_last(shard, config) ? want->n_mtp : 0;

    *w       = (fm_weights){.config  = config,
                            .packing = want->packing,
                            .shard   = *shard,
                            .act     = want->act,
                            .n_head  = fm_range_len(fm_shard_heads(shard, config))};
    l.rc     = find_placement(&l);
    w->layer = heap(&l, (size_t)n_layer, sizeof *w->layer);
    w->mtp   = heap(&l, (size_t)n_mtp, sizeof *w->mtp);
    if (l.rc == FM_OK) w->n_layer = n_layer, w->n_mtp = n_mtp;

    if (fm_shard_is_first(shard) || n_mtp) embedding(&l);
    for (int i = 0; l.rc == FM_OK && i < n_layer; i++)
        layer(&l, &w->layer[i], shard->layer.begin + i,
              fm_layer_is_moe(config, shard->layer.begin + i));
    if (fm_shard_is_last(shard, config)) head(&l);
    for (int i = 0; l.rc == FM_OK && i < n_mtp; i++) mtp(&l, &w->mtp[i], config->n_layer + i);

    if (l.rc != FM_OK) fm_weights_fini(w);
    return l.rc;
}

static void layer_fini(fm_layer_weights *w)
{
    free(w->attn.k_up); /* k_up_t and v_up lie in the same block */
    free(w->ffn.expert);
}

void fm_weights_fini(fm_weights *w)
{
    for (int i = 0; w->layer && i < w->n_layer; i++) layer_fini(&w->layer[i]);
    for (int i = 0; w->mtp && i < w->n_mtp; i++) layer_fini(&w->mtp[i].layer);
    free(w->layer);
    free(w->mtp);
    free(w->piece);
    fm_placement_destroy(w->even);
    *w = (fm_weights){0};
}
