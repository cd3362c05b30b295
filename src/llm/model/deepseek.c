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

static void forward(fm_run *r)
{
    const fm_weights *m = r->weights;
    const fm_acts    *a = &r->act;

    if (m->embed) fm_embed  (r, a->x, m->embed);
    else          fm_receive(r, a->x);
    for (int l = 0; l < m->n_layer; l++) {
        const fm_layer_weights *w = &m->layer[l];
        fm_at_layer(r, l);
        mla(r, &w->attn, l);
        if (w->ffn.is_moe) moe  (r, &w->ffn);
        else               dense(r, &w->ffn);
    }
    fm_at_layer(r, FM_NO_LAYER);
    if (m->norm) {
        fm_gather_norm(r, a->hl, a->x, m->norm);            /* only rows whose logits are wanted */
        fm_linear_out (r, a->logits, a->hl, &m->head);
        fm_collect    (r, a->logits);
    } else {
        fm_pass_on    (r, a->x);
    }
}

/* clang-format on */

/* The latent of a token, and with 8 bits its scale. */
static fm_planes planes(const fm_model_config *c, const fm_shard *s, fm_dtype cache)
{
    const int n_layer = fm_range_len(s->layer);
    fm_planes p       = {.plane = {{FM_PLANE_LATENT, fm_kv_width(c), cache, n_layer}}, .n = 1};
    if (cache == FM_FP8) p.plane[p.n++] = (fm_plane){FM_PLANE_SCALE, 1, FM_F32, n_layer};
    return p;
}

static const char *const model_types[] = {"deepseek_v2", "deepseek_v3", "kimi_k2", NULL};

const fm_model fm_model_deepseek = {
    .name        = "deepseek",
    .model_types = model_types,
    .planes      = planes,
    .weights     = fm_weights_layout,
    .forward     = forward,
};
