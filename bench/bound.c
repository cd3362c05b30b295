/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/bound.h"

#include <math.h>

enum { BF16 = 2, F32 = 4 };

typedef struct {
    const fm_model_config *c;
    const fm_shape        *s;
    const fm_roof         *l;
    double                 T; /* rows of the pass */
    fm_bound               b;
} step;

static double seconds(fm_cost c, const fm_roof *l, double peak)
{
    return fmax(c.bytes / l->bandwidth, c.flops / peak);
}

double fm_cost_seconds(fm_cost c, const fm_roof *l) { return seconds(c, l, l->bf16); }

/* --- costs ------------------------------------------------------------------- */

static fm_cost both(fm_cost a, fm_cost b)
{
    return (fm_cost){a.bytes + b.bytes, a.flops + b.flops};
}

/* Of weights of `size` bytes each; rows are bf16. */
static fm_cost product(const fm_roof *l, double rows, double n, double k, double size)
{
    return (fm_cost){.bytes = n * k * size + (l->through_memory ? rows * (n + k) * BF16 : 0),
                     .flops = 2 * rows * n * k};
}

fm_cost fm_cost_product(const fm_roof *l, double rows, double n, double k)
{
    return product(l, rows, n, k, BF16);
}

/* E (1 - (1 - k/E)^T) */
double fm_experts_met(const fm_model_config *c, int rows)
{
    return c->n_expert * (1 - pow(1 - (double)c->top_k / c->n_expert, rows));
}

/* A pair of a row and its expert: the row in, the middle out and in, the result out. */
static fm_cost experts(const fm_roof *l, const fm_model_config *c, double rows, double size)
{
    const double pairs = rows * c->top_k, weights = 3.0 * c->hidden * c->moe_inter;
    const double each = 2.0 * (c->hidden + c->moe_inter) * BF16;
    return (fm_cost){.bytes = fm_experts_met(c, (int)rows) * weights * size +
                              (l->through_memory ? pairs * each : 0),
                     .flops = 2 * pairs * weights};
}

fm_cost fm_cost_experts(const fm_roof *l, const fm_model_config *c, int rows)
{
    return experts(l, c, rows, fm_weight_bytes(c));
}

static double rows_of(const fm_shape *s) { return (double)s->n_seq * s->n_row; }

/* Keys that all rows see together. */
static double keys_seen(const fm_shape *s) { return rows_of(s) * (s->pos0 + (s->n_row + 1) / 2.0); }

/* Of kv_b_proj: a GPU makes it bf16 when it is loaded, a CPU reads FP8 if heads are its blocks. */
static double up_bytes(const fm_roof *l, const fm_model_config *c)
{
    return !l->through_memory && c->fp8 && fm_heads_are_blocks(c) ? fm_weight_bytes(c) : BF16;
}

/* Products with k_up and v_up.  Absorbed: the query goes into the latent space and the answer
 * comes back.  Expanded: keys and values of every cached token are rebuilt. */
static fm_cost change_of_space(const fm_roof *l, const fm_model_config *c, const fm_shape *s)
{
    const double H = c->n_head, each = c->nope + c->v_dim, up = H * each * c->kv_lora,
                 T      = rows_of(s);
    const double tokens = (double)s->n_seq * (s->pos0 + s->n_row);
    if (!s->generated) {
        fm_cost x = product(l, tokens, H * each, c->kv_lora, up_bytes(l, c));
        if (!l->through_memory) x.bytes += tokens * (c->kv_lora + c->rope) * BF16; /* the cache */
        return x;
    }
    return (fm_cost){.bytes = up * up_bytes(l, c) +
                              (l->through_memory ? T * H * 2 * c->kv_lora * BF16 : 0),
                     .flops = 2 * T * up};
}

/* Scores and values.  Absorbed: as wide as the latent, all heads share one reading of the cache. */
static fm_cost meeting(const fm_roof *l, const fm_model_config *c, const fm_shape *s)
{
    const double H = c->n_head, T = rows_of(s), kv = c->kv_lora + c->rope;
    const double tokens = (double)s->n_seq * (s->pos0 + s->n_row);
    const double head   = c->nope + c->rope + c->v_dim;
    const double width  = s->generated ? kv + c->kv_lora : head;
    const double cached = s->generated ? tokens * kv * BF16 : 0;
    const double handed = s->generated ? T * width : tokens * (c->nope + c->v_dim) + T * head;
    return (fm_cost){.bytes = cached + (l->through_memory ? H * handed * BF16 : 0),
                     .flops = 2 * H * keys_seen(s) * width};
}

fm_cost fm_cost_attention(const fm_roof *l, const fm_model_config *c, const fm_shape *s)
{
    return both(change_of_space(l, c, s), meeting(l, c, s));
}

/* --- a step ------------------------------------------------------------------ */

static void add(step *a, fm_op op, fm_cost c, double peak, int times)
{
    const double t = times * seconds(c, a->l, peak);
    a->b.op[op] += t;
    a->b.seconds += t;
    a->b.cost.bytes += times * c.bytes;
    a->b.cost.flops += times * c.flops;
}

/* Linear weights of a layer may be FP8 or INT4, kv_b FP8, the head INT4; embedding and router are
 * always bf16. */
static int is_fp8(const step *a) { return a->c->fp8 && a->l->fp8 > 0; }

double fm_weight_bytes(const fm_model_config *c)
{
    if (c->int4) return 0.5 + 2.0 / 32;
    return c->fp8 ? 1 + 2 * 4.0 / (32 * 128) : BF16;
}

/* A GPU keeps rows instead of panels, a scale for each 128 x 128. */
static double weight_bytes(const step *a)
{
    return is_fp8(a) ? 1 : fm_weight_bytes(a->c);
}

static void add_linear(step *a, fm_op op, double n, double k, int times)
{
    const fm_cost c = product(a->l, a->T, n, k, weight_bytes(a));
    add(a, op, c, is_fp8(a) ? a->l->fp8 : a->l->bf16, times);
}

static void add_projections(step *a)
{
    const fm_model_config *c = a->c;
    const double           q = (double)c->n_head * (c->nope + c->rope);
    if (c->q_lora) add_linear(a, FM_OP_LINEAR, c->q_lora, c->hidden, c->n_layer);
    add_linear(a, FM_OP_LINEAR_ACT, q, c->q_lora ? c->q_lora : c->hidden, c->n_layer);
    add_linear(a, FM_OP_LINEAR, c->kv_lora + c->rope, c->hidden, c->n_layer);
    add_linear(a, FM_OP_LINEAR, c->hidden, (double)c->n_head * c->v_dim, c->n_layer);
}

static void add_experts(step *a, int n_moe)
{
    const fm_model_config *c = a->c;
    add(a, FM_OP_LINEAR, fm_cost_product(a->l, a->T, c->n_expert, c->hidden), a->l->bf16, n_moe);
    add(a, FM_OP_EXPERTS, experts(a->l, c, a->T, weight_bytes(a)),
        is_fp8(a) ? a->l->fp8 : a->l->bf16, n_moe);
    if (c->n_shared) add_linear(a, FM_OP_MLP, 3.0 * c->n_shared * c->moe_inter, c->hidden, n_moe);
}

static double head_bytes(const fm_model_config *c) { return c->int4 ? fm_weight_bytes(c) : BF16; }

fm_bound fm_bound_step(const fm_model_config *c, const fm_shape *s, const fm_roof *l)
{
    step a     = {.c = c, .s = s, .l = l, .T = rows_of(s)};
    int  n_moe = 0;
    for (int i = 0; i < c->n_layer; i++) n_moe += fm_layer_is_moe(c, i);
    add_projections(&a);
    add(&a, FM_OP_ATTEND, change_of_space(l, c, s), l->bf16, c->n_layer);
    add(&a, FM_OP_ATTEND, meeting(l, c, s), l->bf16, c->n_layer);
    add_linear(&a, FM_OP_MLP, 3.0 * c->dense_inter, c->hidden, c->n_layer - n_moe);
    if (n_moe) add_experts(&a, n_moe);
    add(&a, FM_OP_HEAD, product(l, s->n_out, c->vocab, c->hidden, head_bytes(c)), l->bf16, 1);
    return a.b;
}
