/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/cpu_bound.h"

#include <math.h>

enum { WEIGHT_BYTES = 2, LATENT_BYTES = 2 }; /* bf16 */

double fm_cost_seconds(fm_cost c, const fm_limits *l)
{
    return fmax(c.bytes / l->read, c.flops / l->peak);
}

double fm_weight_bytes(const fm_model_config *c)
{
    if (c->int4) return 0.5 + 2.0 / 32;
    return c->fp8 ? 1 + 2 * 4.0 / (32 * 128) : WEIGHT_BYTES;
}

fm_cost fm_cost_linear(const fm_model_config *c, int rows, double n, double k)
{
    return (fm_cost){.bytes = n * k * fm_weight_bytes(c), .flops = 2.0 * rows * n * k};
}

fm_cost fm_cost_matrix(int rows, double n, double k)
{
    return (fm_cost){.bytes = n * k * WEIGHT_BYTES, .flops = 2.0 * rows * n * k};
}

/* E (1 - (1 - k/E)^T) */
double fm_experts_met(const fm_model_config *c, int rows)
{
    return c->n_expert * (1 - pow(1 - (double)c->top_k / c->n_expert, rows));
}

fm_cost fm_cost_experts(const fm_model_config *c, int rows)
{
    const double weights = 3.0 * c->hidden * c->moe_inter;
    return (fm_cost){.bytes = fm_experts_met(c, rows) * weights * fm_weight_bytes(c),
                     .flops = 2.0 * rows * c->top_k * weights};
}

fm_cost fm_cost_mlp(const fm_model_config *c, int rows, int inter)
{
    return fm_cost_linear(c, rows, 3.0 * inter, c->hidden);
}

/* Keys that the rows of one sequence see, all rows together. */
static double keys_seen(const fm_shape *s) { return s->n_row * (s->pos0 + (s->n_row + 1) / 2.0); }

/* Absorbed: the query goes into the latent space and the answer comes back
 * through k_up and v_up; scores are as wide as the latent and the rotated key,
 * values as the latent.  Expanded: k_up and v_up rebuild every key and value
 * once, then scores and values have the head's own width. */
fm_cost fm_cost_attention(const fm_model_config *c, const fm_shape *s)
{
    const double H = c->n_head, T = (double)s->n_seq * s->n_row, keys = s->pos0 + s->n_row;
    const double up     = H * (c->nope + c->v_dim) * c->kv_lora; /* values of k_up and v_up */
    const double cached = s->n_seq * keys * (c->kv_lora + c->rope) * LATENT_BYTES;
    const double width  = s->generated ? 2.0 * c->kv_lora + c->rope : c->nope + c->rope + c->v_dim;
    const double meet   = 2 * H * s->n_seq * keys_seen(s) * width;
    const double change = 2 * up * (s->generated ? T : s->n_seq * keys);
    return (fm_cost){.bytes = up * WEIGHT_BYTES + cached, .flops = meet + change};
}

static void add(fm_bound *b, fm_part part, fm_cost c, int times, const fm_limits *l)
{
    const double t = times * fm_cost_seconds(c, l);
    b->part[part] += t;
    b->seconds += t;
    b->cost.bytes += times * c.bytes;
    b->cost.flops += times * c.flops;
}

static void add_linears(fm_bound *b, const fm_model_config *c, int T, const fm_limits *l)
{
    const double q = (double)c->n_head * (c->nope + c->rope);
    const int    L = c->n_layer;
    if (c->q_lora) add(b, FM_PART_LINEAR, fm_cost_linear(c, T, c->q_lora, c->hidden), L, l);
    add(b, FM_PART_LINEAR, fm_cost_linear(c, T, q, c->q_lora ? c->q_lora : c->hidden), L, l);
    add(b, FM_PART_LINEAR, fm_cost_linear(c, T, c->kv_lora + c->rope, c->hidden), L, l);
    add(b, FM_PART_LINEAR, fm_cost_linear(c, T, c->hidden, (double)c->n_head * c->v_dim), L, l);
}

fm_bound fm_bound_step(const fm_model_config *c, const fm_shape *s, const fm_limits *l)
{
    fm_bound  b     = {0};
    const int T     = s->n_seq * s->n_row;
    int       n_moe = 0;
    for (int i = 0; i < c->n_layer; i++) n_moe += fm_layer_is_moe(c, i);
    add_linears(&b, c, T, l);
    add(&b, FM_PART_ATTEND, fm_cost_attention(c, s), c->n_layer, l);
    add(&b, FM_PART_MLP, fm_cost_mlp(c, T, c->dense_inter), c->n_layer - n_moe, l);
    if (n_moe) {
        add(&b, FM_PART_LINEAR, fm_cost_matrix(T, c->n_expert, c->hidden), n_moe, l);
        add(&b, FM_PART_EXPERTS, fm_cost_experts(c, T), n_moe, l);
        add(&b, FM_PART_MLP, fm_cost_mlp(c, T, c->n_shared * c->moe_inter), n_moe, l);
    }
    add(&b, FM_PART_HEAD, fm_cost_matrix(s->n_out, c->vocab, c->hidden), 1, l);
    return b;
}
