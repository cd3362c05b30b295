/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/op/cost.h"

#include <math.h>

enum { MAX_EXPERT = 4096, SCALE_BLOCK = 128, SCALE_GROUP = 32 };

static void add(fm_op_cost *to, double bytes, double flops)
{
    to->bytes += bytes;
    to->flops += flops;
}

/* Scales included: two floats for each 32 x 128 of FP8, a BF16 for each 32 of INT4. */
double fm_matrix_bytes(const fm_matrix *w)
{
    const double n = (double)w->n * w->k;
    switch (w->dtype) {
    case FM_F32: return 4 * n;
    case FM_FP8: return n * (1 + 8.0 / (SCALE_GROUP * SCALE_BLOCK));
    case FM_INT4: return n * (0.5 + 2.0 / SCALE_GROUP);
    default: return 2 * n;
    }
}

static void add_product(fm_op_cost *to, const fm_matrix *w, double rows)
{
    add(to, fm_matrix_bytes(w), 2 * rows * w->n * w->k);
}

static void add_mlp(fm_op_cost *to, const fm_mlp_weights *w, double rows)
{
    add_product(to, &w->gate_up, rows);
    add_product(to, &w->down, rows);
}

/* --- experts ----------------------------------------------------------------- */

static int rows_of_all_groups(const fm_run *r)
{
    const fm_batch *b = r->batch;
    int             n = 0;
    if (!b->group_rows) return b->n_row;
    for (int g = 0; g < r->weights->shard.group.n; g++) n += b->group_rows[g];
    return n;
}

/* Distinct experts of this rank that rows chose, and how many (row, expert) pairs they make. */
static void count_chosen(const fm_run *r, const fm_mlp_weights *expert, int *n_expert, int *n_pair)
{
    const int32_t *chosen               = r->act.route_all.expert;
    const int      n                    = rows_of_all_groups(r) * r->config->top_k;
    uint64_t       met[MAX_EXPERT / 64] = {0};
    for (int i = 0; i < n; i++) {
        const int32_t e = chosen[i];
        if (e < 0 || e >= r->config->n_expert || e >= MAX_EXPERT || !expert[e].gate_up.n) continue;
        *n_expert += !(met[e / 64] >> e % 64 & 1);
        met[e / 64] |= (uint64_t)1 << e % 64;
        ++*n_pair;
    }
}

static const fm_mlp_weights *any_expert(const fm_run *r, const fm_mlp_weights *expert)
{
    for (int e = 0; e < r->config->n_expert; e++)
        if (expert[e].gate_up.n) return &expert[e];
    return NULL;
}

/* E (1 - (1 - k/E)^rows), of which this rank has a part. */
static double expected_experts(const fm_run *r, double rows)
{
    const fm_model_config *c   = r->config;
    const double           met = 1 - pow(1 - (double)c->top_k / c->n_expert, rows);
    return met * fm_shard_n_expert(&r->weights->shard, c);
}

static fm_op_cost experts_cost(const fm_run *r, const fm_mlp_weights *expert, int on_host)
{
    const fm_mlp_weights *w   = any_expert(r, expert);
    fm_op_cost            one = {0}, all = {0};
    const double          rows     = rows_of_all_groups(r);
    int                   n_expert = 0, n_pair = 0;
    if (!w) return all;
    if (on_host) count_chosen(r, expert, &n_expert, &n_pair);
    add_mlp(&one, w, 1);
    const double share =
        (double)fm_shard_n_expert(&r->weights->shard, r->config) / r->config->n_expert;
    add(&all, one.bytes * (on_host ? n_expert : expected_experts(r, rows)),
        one.flops * (on_host ? n_pair : rows * r->config->top_k * share));
    return all;
}

/* --- attention --------------------------------------------------------------- */

/* Keys that the rows of a span see together. */
static double keys_seen(const fm_span *s) { return s->n_row * (s->pos0 + (s->n_row + 1) / 2.0); }

fm_attend_sizes fm_attend_sizes_of(const fm_model_config *c, const fm_attn_weights *w, int n_head)
{
    const fm_matrix up = {.n     = n_head * (c->nope + c->v_dim),
                          .k     = c->kv_lora,
                          .dtype = n_head ? w->v_up[0].dtype : FM_BF16};
    return (fm_attend_sizes){.up       = (double)up.n * up.k,
                             .up_bytes = fm_matrix_bytes(&up),
                             .wide     = 2.0 * c->kv_lora + c->rope,
                             .head     = c->nope + c->rope + c->v_dim,
                             .out      = (double)c->n_head * c->v_dim};
}

/* Generated rows read the latents once for all heads.  Keys and values of prompt rows are rebuilt
 * from the latents; blocks of a prompt that has them in a cache are read as often. */
static void add_span(fm_op_cost *to, const fm_run *r, const fm_span *s, const fm_attend_sizes *a)
{
    const double cached = (double)fm_plane_token_bytes(&r->limits.planes.plane[0]);
    const double tokens = s->pos0 + s->n_row, pairs = r->weights->n_head * keys_seen(s);
    if (s->form == FM_FORM_GENERATED)
        add(to, tokens * cached, 2 * s->n_row * a->up + 2 * pairs * a->wide);
    else
        add(to, tokens * cached, 2 * tokens * a->up + 2 * pairs * a->head);
}

static fm_op_cost attend_cost(const fm_run *r, const fm_attn_weights *w)
{
    const fm_attend_sizes a   = fm_attend_sizes_of(r->config, w, r->weights->n_head);
    fm_op_cost            all = {0};
    for (int i = 0; i < r->batch->n_span; i++) add_span(&all, r, &r->batch->span[i], &a);
    if (r->batch->n_span) add(&all, a.up_bytes, 0);
    return all;
}

/* --- which op ---------------------------------------------------------------- */

fm_op_cost fm_op_cost_of(const fm_run *r, const fm_op_call *c, int on_host)
{
    fm_op_cost all = {0};
    switch (c->op) {
    case FM_OP_LINEAR:
    case FM_OP_LINEAR_ACT:
    case FM_OP_HEAD:
        if (c->n_row) add_product(&all, c->weights, c->n_row);
        return all;
    case FM_OP_MLP:
        if (c->n_row) add_mlp(&all, c->weights, c->n_row);
        return all;
    case FM_OP_EXPERTS: return experts_cost(r, c->weights, on_host);
    case FM_OP_ATTEND: return attend_cost(r, c->weights);
    default: return all;
    }
}

static fm_dtype weight_type(const fm_run *r, const fm_op_call *c)
{
    const fm_mlp_weights *expert = NULL;
    switch (c->op) {
    case FM_OP_LINEAR:
    case FM_OP_LINEAR_ACT:
    case FM_OP_HEAD: return ((const fm_matrix *)c->weights)->dtype;
    case FM_OP_MLP: return ((const fm_mlp_weights *)c->weights)->gate_up.dtype;
    case FM_OP_EXPERTS: expert = any_expert(r, c->weights); break;
    default: break;
    }
    return expert ? expert->gate_up.dtype : r->weights->act;
}

/* A CPU multiplies FP8 and INT4 weights as BF16. */
fm_dtype fm_op_factor(const fm_run *r, const fm_op_call *c, int on_host)
{
    const fm_dtype t = weight_type(r, c);
    if (r->weights->act == FM_F32) return FM_F32;
    return t == FM_FP8 && !on_host ? FM_FP8 : FM_BF16;
}
