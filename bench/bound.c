/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/cuda/bound.h"

#include <math.h>

enum { BF16 = 2, F32 = 4 };

typedef struct {
    const fm_model_config *c;
    const fm_shape        *s;
    const fm_gpu_ceilings *l;
    double                 T; /* rows of the pass */
    fm_bound               b;
} sum;

/* Linear weights of a layer; embedding, head, router and kv_b are always bf16. */
static double weight_size(const fm_model_config *c) { return c->fp8 ? 1 : BF16; }

static void add(sum *a, fm_op op, double bytes, double flops, double peak, int times)
{
    const double t = times * fmax(bytes / a->l->bandwidth, flops / peak);
    a->b.op[op] += t;
    a->b.seconds += t;
    a->b.cost.bytes += times * bytes;
    a->b.cost.flops += times * flops;
}

/* y[rows, n] = x[rows, k] w: inputs and outputs are bf16. */
static void add_product(sum *a, fm_op op, double rows, double n, double k, double size,
                        int times)
{
    const double peak = size < BF16 ? a->l->fp8 : a->l->bf16;
    add(a, op, n * k * size + rows * (n + k) * BF16, 2 * rows * n * k, peak, times);
}

static void add_projections(sum *a)
{
    const fm_model_config *c = a->c;
    const double           q = (double)c->n_head * (c->nope + c->rope), size = weight_size(c);
    const int              L = c->n_layer;
    if (c->q_lora) add_product(a, FM_OP_LINEAR, a->T, c->q_lora, c->hidden, size, L);
    add_product(a, FM_OP_LINEAR_ACT, a->T, q, c->q_lora ? c->q_lora : c->hidden, size, L);
    add_product(a, FM_OP_LINEAR, a->T, c->kv_lora + c->rope, c->hidden, size, L);
    add_product(a, FM_OP_LINEAR, a->T, c->hidden, (double)c->n_head * c->v_dim, size, L);
}

/* The query goes into the latent space and the answer comes back; between the
 * two, all heads share one reading of the cache. */
static void add_absorbed(sum *a)
{
    const fm_model_config *c = a->c;
    const double           H = c->n_head, up = H * (c->nope + c->v_dim) * c->kv_lora,
                 kv   = c->kv_lora + c->rope;
    const double keys = a->T * (a->s->pos0 + (a->s->n_row + 1) / 2.0);
    const double read = (double)a->s->n_seq * (a->s->pos0 + a->s->n_row) * kv * BF16;
    add(a, FM_OP_ATTEND, up * BF16 + a->T * H * 2 * c->kv_lora * BF16, 2 * a->T * up, a->l->bf16,
        c->n_layer);
    add(a, FM_OP_ATTEND, read + a->T * H * (kv + c->kv_lora) * BF16,
        2 * H * keys * (kv + c->kv_lora), a->l->bf16, c->n_layer);
}

/* Keys and values of every cached token are rebuilt, then each query meets
 * those before it. */
static void add_expanded(sum *a)
{
    const fm_model_config *c = a->c;
    const double H = c->n_head, each = c->nope + c->v_dim, head = c->nope + c->rope + c->v_dim;
    const double tokens = (double)a->s->n_seq * (a->s->pos0 + a->s->n_row);
    const double keys   = a->T * (a->s->pos0 + (a->s->n_row + 1) / 2.0);
    add_product(a, FM_OP_ATTEND, tokens, H * each, c->kv_lora, BF16, c->n_layer);
    add(a, FM_OP_ATTEND, H * (tokens * each + a->T * head) * BF16, 2 * H * keys * head,
        a->l->bf16, c->n_layer);
}

/* A pair of a row and its expert: the row in, the middle out and in, f32 out. */
static void add_experts(sum *a, int n_moe)
{
    const fm_model_config *c     = a->c;
    const double           pairs = a->T * c->top_k, weights = 3.0 * c->hidden * c->moe_inter;
    const double           each = (double)c->hidden * (BF16 + F32) + 2.0 * c->moe_inter * BF16;
    add(a, FM_OP_EXPERTS, fm_experts_met(c, (int)a->T) * weights * weight_size(c) + pairs * each,
        2 * pairs * weights, c->fp8 ? a->l->fp8 : a->l->bf16, n_moe);
}

static int moe_layers(const fm_model_config *c)
{
    int n = 0;
    for (int i = 0; i < c->n_layer; i++) n += fm_layer_is_moe(c, i);
    return n;
}

fm_bound fm_gpu_bound(const fm_model_config *c, const fm_shape *s, const fm_gpu_ceilings *l)
{
    sum          a     = {.c = c, .s = s, .l = l, .T = (double)s->n_seq * s->n_row};
    const int    n_moe = moe_layers(c);
    const double size  = weight_size(c);
    add_projections(&a);
    if (s->generated)
        add_absorbed(&a);
    else
        add_expanded(&a);
    add_product(&a, FM_OP_MLP, a.T, 3.0 * c->dense_inter, c->hidden, size, c->n_layer - n_moe);
    if (n_moe) {
        add_product(&a, FM_OP_LINEAR, a.T, c->n_expert, c->hidden, BF16, n_moe);
        if (c->n_shared)
            add_product(&a, FM_OP_MLP, a.T, 3.0 * c->n_shared * c->moe_inter, c->hidden, size,
                        n_moe);
        add_experts(&a, n_moe);
    }
    add_product(&a, FM_OP_HEAD, s->n_out, c->vocab, c->hidden, BF16, 1);
    return a.b;
}

double fm_gpu_weight_bytes(const fm_model_config *c)
{
    const double D = c->hidden, H = c->n_head, q = H * (c->nope + c->rope);
    const double size  = weight_size(c);
    const int    n_moe = moe_layers(c);
    const double attn =
        (c->q_lora ? c->q_lora * (D + q) : q * D) + (c->kv_lora + c->rope) * D + D * H * c->v_dim;
    const double up = H * (c->nope + c->v_dim) * c->kv_lora * BF16;
    const double moe =
        3 * D * c->moe_inter * (c->n_expert + c->n_shared) * size + c->n_expert * D * BF16;
    return c->n_layer * (attn * size + up) + (c->n_layer - n_moe) * 3 * D * c->dense_inter * size +
           n_moe * moe + 2.0 * c->vocab * D * BF16;
}
