/* SPDX-License-Identifier: Apache-2.0 */
/* DeepSeek V2, V3, R1 and Kimi-K2: they differ only in their config. */
#include "llm/model/model.h"

/* clang-format off */

/* Multi-head latent attention.  The cache holds only the latent; fm_attend
 * expands it for prompt rows and carries the query into the latent space for
 * generated rows. */
static void mla(fm_run *r, const fm_attn_weights *w, int l)
{
    const fm_acts *a = &r->act;

    fm_rmsnorm      (r, a->h,   a->x,   w->norm);       /* h      = RMSNorm(x)            [T,D] */
    if (r->config->q_lora) {
        fm_linear    (r, a->cq,  a->h,   &w->q_down);   /* cQ     = W^DQ h                [T,q_lora] */
        fm_rmsnorm   (r, a->cqn, a->cq,  w->q_norm);
        fm_linear_act(r, a->q,   a->cqn, &w->q_up);     /* qC|qR  = [W^UQ; W^QR] cQ       [T,H,nope+rope] */
    } else {
        fm_linear_act(r, a->q,   a->h,   &w->q_up);     /* qC|qR  = W^Q h */
    }
    fm_rope_q       (r, a->q);                          /* qR     = RoPE(qR) */

    fm_linear       (r, a->ckv, a->h,   &w->kv_down);   /* cKV|kR = [W^DKV; W^KR] h       [T,kv_lora+rope] */
    fm_store_kv     (r, l, a->ckv, w->kv_norm);         /* cache += RMSNorm(cKV)|RoPE(kR) */

    fm_attend       (r, a->o,   a->q,   l, w);          /* o      = softmax(s q K^T) V    [T,H,v] */

    fm_gather_act   (r, a->o_all, a->o);                /*          of all heads */
    fm_linear       (r, a->y,   a->o_all, &w->out);     /* u      = W^O o                 [T,D] */
    fm_gather_add   (r, a->x,   a->y);                  /* x     += u */
}

static void dense(fm_run *r, const fm_ffn_weights *w)
{
    const fm_acts *a = &r->act;

    fm_rmsnorm   (r, a->h, a->x, w->norm);
    fm_mlp       (r, a->y, a->h, &w->mlp);              /* y  = W2 (silu(W1 h) * W3 h) */
    fm_gather_add(r, a->x, a->y);                       /* x += y */
}

static void moe(fm_run *r, const fm_ffn_weights *w)
{
    const fm_acts *a = &r->act;

    fm_rmsnorm   (r, a->h,     a->x, w->norm);
    fm_linear    (r, a->score, a->h, &w->router);           /* s = h E^T                      [T,E] */
    fm_route     (r, a->route, a->score, w->bias);          /* k experts and their weights g  [T,k] */
    fm_dispatch  (r, a->h_all, a->route_all, a->h, a->route); /* rows on their way to their experts */
    if (w->mlp.inter) {
        fm_mlp        (r, a->y, a->h, &w->mlp);                            /* y = FFN_shared(h) */
        fm_experts_add(r, a->y, a->h_all, a->route_all, w->expert);        /*   + sum_i g_i FFN_i(h), by slot */
    } else {
        fm_experts    (r, a->y, a->h_all, a->route_all, w->expert);
    }
    fm_gather_add(r, a->x,     a->y);                       /* x += y */
}

/* The input of the MTP layer: a row's token, and in h the normed state of the row before. */
static void join(fm_run *r, const fm_mtp_weights *w)
{
    const fm_acts *a = &r->act;

    fm_linear       (r, a->y, a->h, &w->of_state);      /* y  = W^H h'                    [T,D] */
    fm_embed_product(r, a->x, a->h, r->weights->embed, w->enorm, &w->of_embed); /* x  = W^E RMSNorm(Emb(t)) */
    fm_gather_add   (r, a->x, a->y);                    /* x += y */
}

/* The MTP layer's latents of the pass's rows: all that later drafts need of them. */
static void cache_for_drafts(fm_run *r, const fm_mtp_weights *w)
{
    const fm_acts         *a    = &r->act;
    const fm_attn_weights *attn = &w->layer.attn;

    fm_at_layer (r, r->weights->n_layer);
    join        (r, w);
    fm_rmsnorm  (r, a->h,   a->x, attn->norm);
    fm_linear   (r, a->ckv, a->h, &attn->kv_down);
    fm_store_kv (r, r->weights->n_layer, a->ckv, attn->kv_norm);
    fm_at_layer (r, FM_NO_LAYER);
}

static void draft(fm_run *r)
{
    const fm_weights     *m = r->weights;
    const fm_mtp_weights *w = &m->mtp[0];
    const fm_acts        *a = &r->act;

    fm_at_layer   (r, m->n_layer);
    fm_hidden_kept(r, a->h, w->hnorm);                      /* h' = RMSNorm(h), as kept */
    join          (r, w);
    mla           (r, &w->layer.attn, m->n_layer);
    if (w->layer.ffn.is_moe) moe  (r, &w->layer.ffn);
    else                     dense(r, &w->layer.ffn);
    fm_at_layer   (r, FM_NO_LAYER);
    fm_gather_norm(r, a->hl, a->x, w->norm);
    fm_linear_draft(r, a->logits, a->hl, &m->head);
    fm_best       (r, a->logits, a->hl);                    /* the drafts; hl is the next state */
}

static void forward(fm_run *r)
{
    const fm_weights *m = r->weights;
    const fm_acts    *a = &r->act;

    if (fm_shard_is_first(&m->shard)) fm_embed  (r, a->x, m->embed);
    else                              fm_receive(r, a->x);
    for (int l = 0; l < m->n_layer; l++) {
        const fm_layer_weights *w = &m->layer[l];
        fm_at_layer(r, l);
        mla(r, &w->attn, l);
        if (w->ffn.is_moe) moe  (r, &w->ffn);
        else               dense(r, &w->ffn);
    }
    fm_at_layer(r, FM_NO_LAYER);
    const int drafts = m->n_mtp && fm_draft_rows(r);
    if (drafts) fm_hidden(r, a->h, a->x, m->norm, m->mtp[0].hnorm); /* h' = RMSNorm(h) of the row before; kept */
    if (m->norm) {
        fm_gather_norm(r, a->hl, a->x, m->norm);            /* only rows whose logits are wanted */
        fm_linear_out (r, a->logits, a->hl, &m->head);
        fm_collect    (r, a->logits);
    } else {
        fm_pass_on    (r, a->x);
    }
    if (drafts) cache_for_drafts(r, &m->mtp[0]);
}

/* clang-format on */

/* The latent of a token and, in an 8-bit cache, its scale; the same two for the MTP layer. */
static fm_planes planes(const fm_model_config *c, const fm_shard *s, fm_dtype cache)
{
    const int n_layer = fm_range_len(s->layer), drafts = s->n_mtp && fm_shard_is_last(s, c);
    const int width   = fm_kv_width(c);
    fm_planes p       = {.plane = {{FM_PLANE_LATENT, width, cache, n_layer}}, .n = 1};
    if (drafts) p.plane[p.n++] = (fm_plane){FM_PLANE_DRAFT, width, cache, 1};
    if (cache != FM_FP8) return p;
    p.plane[p.n++] = (fm_plane){FM_PLANE_SCALE, 1, FM_F32, n_layer};
    if (drafts) p.plane[p.n++] = (fm_plane){FM_PLANE_DRAFT_SCALE, 1, FM_F32, 1};
    return p;
}

static fm_activations activations(const fm_model_config *c, const fm_shard *s)
{
    const int        D = c->hidden, V = fm_range_len(fm_shard_outputs(s->attn, c->vocab));
    const int        H = fm_range_len(fm_shard_heads(s, c));
    const fm_columns head = {s->attn.n, c->n_head, 1, c->v_dim};
    const fm_columns out  = {s->attn.n, D, FM_SHARD_OUTPUTS, 1};
    const int        part = fm_range_len(fm_columns_part(out, s->attn.index));
    /* clang-format off */
#define BUFFER(name, type, use, ...) {#name, offsetof(fm_acts, name), FM_ACT_##type, FM_ACT_##use, __VA_ARGS__}
    const fm_activations l = {.n = 15, .buffer = {
        BUFFER(x,         F32,     OWN,      D),
        BUFFER(h,         INPUT,   SENT,     D),
        BUFFER(cq,        F32,     OWN,      c->q_lora),
        BUFFER(cqn,       INPUT,   OWN,      c->q_lora),
        BUFFER(q,         INPUT,   OWN,      H * (c->nope + c->rope)),
        BUFFER(ckv,       F32,     OWN,      c->kv_lora + c->rope),
        BUFFER(o,         INPUT,   PIECE,    H * c->v_dim, head),
        BUFFER(o_all,     INPUT,   GATHERED, c->n_head * c->v_dim),
        BUFFER(y,         F32,     PIECE,    part, out),
        BUFFER(score,     F32,     OWN,      c->n_expert),
        BUFFER(route,     ROUTING, SENT,     c->top_k),
        BUFFER(h_all,     INPUT,   RECEIVED, D),
        BUFFER(route_all, ROUTING, RECEIVED, c->top_k),
        BUFFER(hl,        INPUT,   OUT,      D),
        BUFFER(logits,    F32,     LOGITS,   V),
    }};
#undef BUFFER
    /* clang-format on */
    return l;
}

static int linears(const fm_layer_weights *l, const fm_matrix *out[FM_MAX_LINEAR])
{
    int n    = 0;
    out[n++] = &l->attn.q_down;
    out[n++] = &l->attn.q_up;
    out[n++] = &l->attn.kv_down;
    out[n++] = &l->attn.out;
    return n;
}

const fm_model fm_model_deepseek = {
    .name        = "deepseek",
    .config      = &fm_config_deepseek,
    .weights     = fm_weights_layout,
    .planes      = planes,
    .activations = activations,
    .linears     = linears,
    .attention   = fm_attend_sizes_of,
    .forward     = forward,
    .draft       = draft,
};
