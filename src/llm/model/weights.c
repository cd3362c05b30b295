/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/model/weights.h"

#include <stdio.h>
#include <stdlib.h>

#include "llm/kernel/gemm/gemm.h"

/* Running out of memory is remembered and everything after it does nothing,
 * so that the layout below reads as the model's structure. */
typedef struct {
    fm_weights            *w;
    const fm_model_config *c;
    fm_dtype_of_fn        *dtype_of;
    void                  *ctx;
    fm_slab               *slab;
    fm_status              rc;
    char                   prefix[64]; /* "model.layers.3.self_attn." */
} layout;

static void *heap(layout *l, size_t n, size_t size)
{
    void *p = l->rc == FM_OK ? calloc(n ? n : 1, size) : NULL;
    if (!p && l->rc == FM_OK) l->rc = fm_fail(FM_E_OOM, "no memory for the list of weights");
    return p;
}

static fm_piece *add_piece(layout *l, fm_piece_kind kind, const char *name, int64_t rows,
                           int64_t cols)
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
    *p          = (fm_piece){.kind = kind, .rows = rows, .cols = cols, .n = rows, .k = cols};
    snprintf(p->tensor, sizeof p->tensor, "%s%s", l->prefix, name);
    return p;
}

static float *vector(layout *l, const char *name, int n)
{
    float    *v = fm_slab_take(l->slab, (size_t)n * sizeof *v);
    fm_piece *p = add_piece(l, FM_PIECE_VECTOR, name, 1, n);
    if (p) p->vector = v;
    return v;
}

static void carve(layout *l, fm_matrix *m, int n, int k, fm_dtype dtype)
{
    const size_t n_panel = ((size_t)n + FM_PANEL - 1) / FM_PANEL;
    *m                   = (fm_matrix){.n = n, .k = k, .dtype = dtype};
    m->panels            = fm_slab_take(l->slab, n_panel * fm_panel_bytes(dtype, k));
    if (dtype == FM_FP8)
        m->scale = fm_slab_take(l->slab, n_panel * (size_t)fm_panel_scales(k) * sizeof *m->scale);
}

/* A matrix kept in the type of the activations: never FP8. */
static void plain(layout *l, fm_matrix *m, const char *name, int n, int k)
{
    carve(l, m, n, k, l->w->act);
    fm_piece *p = add_piece(l, FM_PIECE_MATRIX, name, n, k);
    if (p) p->matrix = m;
}

static void linear(layout *l, fm_matrix *m, const char *name, int n, int k)
{
    fm_piece *p = add_piece(l, FM_PIECE_MATRIX, name, n, k);
    if (!p) return;
    p->matrix = m;
    carve(l, m, n, k, l->dtype_of(l->ctx, p->tensor));
}

/* `name` is "mlp." or "mlp.experts.7." */
static void mlp(layout *l, fm_mlp_weights *m, const char *name, int inter)
{
    const int D = l->c->hidden;
    char      full[48];

    m->inter = inter;
    snprintf(full, sizeof full, "%sgate_proj.weight", name);
    fm_piece *p = add_piece(l, FM_PIECE_GATE_UP, full, inter, D);
    if (!p) return;
    snprintf(p->tensor2, sizeof p->tensor2, "%s%sup_proj.weight", l->prefix, name);
    p->matrix = &m->gate_up;
    carve(l, &m->gate_up, 2 * inter, D, l->dtype_of(l->ctx, p->tensor));

    snprintf(full, sizeof full, "%sdown_proj.weight", name);
    linear(l, &m->down, full, D, inter);
}

/* Each head's part of kv_b_proj, in the three shapes attention wants. */
static void kv_up(layout *l, fm_attn_weights *a)
{
    const fm_model_config *c = l->c;
    const size_t           H = (size_t)c->n_head;

    a->k_up     = heap(l, 3 * H, sizeof *a->k_up);
    fm_piece *p = add_piece(l, FM_PIECE_KV_B, "self_attn.kv_b_proj.weight",
                            (int64_t)c->n_head * (c->nope + c->v_dim), c->kv_lora);
    if (!p) return;
    p->attn   = a;
    a->k_up_t = a->k_up + H;
    a->v_up   = a->k_up + 2 * H;
    for (size_t h = 0; h < H; h++) {
        carve(l, &a->k_up[h], c->nope, c->kv_lora, l->w->act);
        carve(l, &a->k_up_t[h], c->kv_lora, c->nope, l->w->act);
        carve(l, &a->v_up[h], c->v_dim, c->kv_lora, l->w->act);
    }
}

static void attention(layout *l, fm_attn_weights *a)
{
    const fm_model_config *c    = l->c;
    const int              D    = c->hidden;
    const int              n_qk = c->n_head * (c->nope + c->rope);

    a->norm = vector(l, "input_layernorm.weight", D);
    if (c->q_lora) {
        linear(l, &a->q_down, "self_attn.q_a_proj.weight", c->q_lora, D);
        a->q_norm = vector(l, "self_attn.q_a_layernorm.weight", c->q_lora);
        linear(l, &a->q_up, "self_attn.q_b_proj.weight", n_qk, c->q_lora);
    } else {
        linear(l, &a->q_up, "self_attn.q_proj.weight", n_qk, D);
    }
    linear(l, &a->kv_down, "self_attn.kv_a_proj_with_mqa.weight", c->kv_lora + c->rope, D);
    a->kv_norm = vector(l, "self_attn.kv_a_layernorm.weight", c->kv_lora);
    kv_up(l, a);
    linear(l, &a->out, "self_attn.o_proj.weight", D, c->n_head * c->v_dim);
}

static void moe(layout *l, fm_ffn_weights *f)
{
    const fm_model_config *c = l->c;
    char                   name[32];

    plain(l, &f->router, "mlp.gate.weight", c->n_expert, c->hidden);
    if (c->route == FM_ROUTE_NOAUX_TC)
        f->bias = vector(l, "mlp.gate.e_score_correction_bias", c->n_expert);
    if (c->n_shared) mlp(l, &f->mlp, "mlp.shared_experts.", c->n_shared * c->moe_inter);

    f->expert = heap(l, (size_t)c->n_expert, sizeof *f->expert);
    for (int e = 0; f->expert && e < c->n_expert; e++) {
        snprintf(name, sizeof name, "mlp.experts.%d.", e);
        mlp(l, &f->expert[e], name, c->moe_inter);
    }
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
        mlp(l, &w->ffn.mlp, "mlp.", l->c->dense_inter);
}

/* Its embedding and head are copies of the main ones and are not read. */
static void mtp(layout *l, fm_mtp_weights *m, int i)
{
    const int D = l->c->hidden;
    snprintf(l->prefix, sizeof l->prefix, "model.layers.%d.", i);
    m->enorm = vector(l, "enorm.weight", D);
    m->hnorm = vector(l, "hnorm.weight", D);
    plain(l, &m->eh_proj, "eh_proj.weight", D, 2 * D);
    layer(l, &m->layer, i, l->c->n_expert > 0);
    m->norm = vector(l, "shared_head.norm.weight", D);
}

static void embedding(layout *l)
{
    const fm_model_config *c = l->c;
    fm_weights            *w = l->w;

    w->embed = fm_slab_take(l->slab, (size_t)c->vocab * (size_t)c->hidden * fm_dtype_bytes(w->act));
    fm_piece *p = add_piece(l, FM_PIECE_TABLE, "model.embed_tokens.weight", c->vocab, c->hidden);
    if (p) p->table = w->embed;
}

fm_status fm_weights_layout(fm_weights *w, const fm_model_config *config, fm_dtype act,
                            int n_mtp_present, fm_dtype_of_fn *dtype_of, void *ctx, fm_slab *slab)
{
    layout l = {.w = w, .c = config, .dtype_of = dtype_of, .ctx = ctx, .slab = slab, .rc = FM_OK};

    *w       = (fm_weights){.config = config, .act = act, .n_head = config->n_head};
    w->layer = heap(&l, (size_t)config->n_layer, sizeof *w->layer);
    w->mtp   = heap(&l, (size_t)n_mtp_present, sizeof *w->mtp);
    if (l.rc == FM_OK) w->n_mtp_present = n_mtp_present;

    embedding(&l);
    for (int i = 0; l.rc == FM_OK && i < config->n_layer; i++)
        layer(&l, &w->layer[i], i, fm_layer_is_moe(config, i));
    l.prefix[0] = 0;
    w->norm     = vector(&l, "model.norm.weight", config->hidden);
    plain(&l, &w->head, "lm_head.weight", config->vocab, config->hidden);
    for (int i = 0; l.rc == FM_OK && i < n_mtp_present; i++)
        mtp(&l, &w->mtp[i], config->n_layer + i);

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
    for (int i = 0; w->layer && i < w->config->n_layer; i++) layer_fini(&w->layer[i]);
    for (int i = 0; w->mtp && i < w->n_mtp_present; i++) layer_fini(&w->mtp[i].layer);
    free(w->layer);
    free(w->mtp);
    free(w->piece);
    *w = (fm_weights){0};
}
